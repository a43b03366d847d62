//! What is visited alike for several subscribers: who is at one place of a collection is visited the same from there.

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{ListKey, SlotKey};
use crate::moments::Seq;
use crate::subscribers::Debt;

/// Where a subscriber is on its first way through the one collection that it asks for, where nothing else is to be said to it
/// before the rest of that. As long as nothing changes, all who are there are visited the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    list: ListKey,
    /// How much there was, of what is evicted without a change too.
    live: u32,
    changes: Seq,
    cursor: Seq,
    at: Option<SlotKey>,
}

impl<V> Cache<V> {
    /// Where a subscriber is on its first way through the one collection that it asks for; none where something of its own may be
    /// in what it is visited next, or in what it was visited just now.
    ///
    /// Who has been visited what is between two places can have another one [pass](Self::pass) it, which is sent the same then.
    pub fn place(&self, id: SubscriberId) -> Option<Place> {
        let subscriber = self.subscribers.find(id)?;
        let [link] = subscriber.links.as_slice() else { return None };
        let (list, walk) = self.subscribers.to_list(*link)?;
        let (link, walk) = (&self.subscribers[*link], &self.subscribers[walk]);
        let owed = &subscriber.owed;
        let is_alike = subscriber.selector.is_none()
            && subscriber.claims.is_empty()
            && subscriber.looked.is_empty()
            && !(owed.minds_additions() || owed.owes_any(Debt::Answer) || owed.owes_any(Debt::Error))
            && self.store[subscriber.type_key].errors.is_empty();
        is_alike.then(|| Place {
            list,
            live: self.store[list].live,
            changes: self.store.seq,
            cursor: link.cursor(),
            at: walk.at,
        })
    }

    /// A subscriber is sent, without being visited, what another one was that came from the first of two places to the second. Whether
    /// there is more of the collection; none where the subscriber is not at the first, and nothing is done then.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// let mut edit = cache.edit(Instant::now());
    /// for name in ["a", "b"] {
    ///     edit.put(&clusters, &name.parse().unwrap(), Resource::unversioned(7, ()));
    /// }
    /// let _ = edit.finish();
    /// let [one, other] = [(); 2].map(|()| cache.open(&clusters));
    /// cache.subscribe(one, &Interest::Wildcard);
    /// cache.subscribe(other, &Interest::Wildcard);
    /// let from = cache.place(one).unwrap();
    /// cache.pull(one, Removals::Include, &mut |_| ControlFlow::Continue(()));
    /// let to = cache.place(one).unwrap();
    /// assert_eq!(cache.pass(other, &from, &to), Some(false));
    /// assert_eq!(cache.pass(other, &from, &to), None);
    /// cache.pull(other, Removals::Include, &mut |_| panic!("it was sent all of it"));
    /// ```
    pub fn pass(&mut self, id: SubscriberId, from: &Place, to: &Place) -> Option<bool> {
        let is_same = (to.list, to.live, to.changes) == (from.list, from.live, from.changes);
        if !is_same || self.place(id) != Some(*from) {
            return None;
        }
        let link = *self.subscribers[id].links.as_slice().first()?;
        self.subscribers[link].set_cursor(to.cursor);
        let walk = self.subscribers[link].walk()?;
        let walk = &mut self.subscribers[walk];
        walk.at = to.at;
        walk.spoken |= to.cursor > from.cursor;
        Some(to.at.is_some_and(|at| self.store.after(to.list, at).is_some()))
    }
}
