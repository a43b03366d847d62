//! What a subscriber is told from another source than the cache: that one may have some of its names, too.

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::Target;

impl<V> Cache<V> {
    /// Whether a subscriber is yet to be told what became of a name that it brought along. If so, it will be told,
    /// whichever version it said it has: for who says something else of the name meanwhile.
    pub fn will_tell(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        self.subscribers[id].owed.lapse(name)
    }

    /// A subscriber was told that a name is gone: it holds nothing of it, and if it went from here, that is told.
    ///
    /// ```
    /// use std::{ops::ControlFlow, time::Instant};
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource};
    ///
    /// let now = Instant::now();
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse().unwrap();
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, ()));
    /// let _ = edit.finish();
    /// cache.pull(subscriber, Removals::Include, &mut |_| ControlFlow::Continue(()));
    ///
    /// let mut edit = cache.edit(now);
    /// edit.remove(&clusters, &cart);
    /// assert!(edit.finish().into_iter().eq([subscriber]));
    /// cache.told_gone(subscriber, &cart);
    /// cache.pull(subscriber, Removals::Include, &mut |_| unreachable!("it was told"));
    /// ```
    pub fn told_gone(&mut self, id: SubscriberId, name: &ResourceName) {
        if !self.is_open(id) {
            return;
        }
        let type_key = self.subscribers[id].type_key;
        let at = self.store.slot_of(type_key, name);
        if let Some(at) = at.filter(|at| self.is_absent_for(id, self.store.resolve(*at)))
            && let Some(link) = self.subscribers.link_of(id, Target::Slot(at))
        {
            let _ = self.pull_slot(id, link, &mut |_| ControlFlow::Continue(()));
        }
        let covering: Vec<_> = self.covering(id, type_key, name).collect();
        self.subscribers[id].parting.extend(covering);
        self.pull_parting(id);
        self.drop_brought(id, name);
        // An error is told all the same.
        if self.is_gone(id, name) && !self.waits_for_error(id, name) {
            self.subscribers[id].owed.stays(name);
            self.take_held(id, name);
        }
    }
}
