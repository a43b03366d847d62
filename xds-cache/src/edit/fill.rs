//! A cache that gets all there is later than it is there.

use crate::cache::Cache;
use crate::edit::Edit;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::Target;
use crate::store::{Answer, State};

impl<V> Edit<'_, V> {
    /// Records that all there is is here: from now on a name that is not in an authoritative cache does not exist, and who
    /// waits for one is told so. Once it [is](crate::Options::filled), this changes nothing.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Pull, Removals};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut options = Options::default();
    /// options.filled = false;
    /// let mut cache = Cache::<()>::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Name("cart".parse()?));
    /// cache.pull(subscriber, Removals::Include, &mut |_| unreachable!("nothing is known of it"));
    ///
    /// let mut edit = cache.edit(Instant::now());
    /// edit.fill();
    /// assert!(edit.finish().into_iter().eq([subscriber]));
    /// cache.pull(subscriber, Removals::Include, &mut |pull| {
    ///     assert!(matches!(pull, Pull::Removed { .. }));
    ///     ControlFlow::Continue(())
    /// });
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn fill(&mut self) {
        self.change(|cache, _, woken| cache.fill(woken));
    }
}

impl<V> Cache<V> {
    fn fill(&mut self, woken: &mut Vec<SubscriberId>) {
        if std::mem::replace(&mut self.store.options.filled, true) || !self.store.options.authoritative {
            return;
        }
        let unknown = self.store.slots().iter().filter(|(_, slot)| matches!(slot.state, State::Unknown));
        for at in unknown.map(|(at, _)| at).collect::<Vec<_>>() {
            let seq = self.store.next_seq();
            let slot = &mut self.store[at];
            (slot.state, slot.seq) = (State::Absent, seq);
            self.mark(Target::Slot(at), woken);
        }
        let unanswered = self.store.lists().values().filter(|list| list.answer != Answer::Complete);
        let collections: Vec<_> = unanswered
            .map(|list| {
                let collection = list.glob.clone().map_or(Interest::Wildcard, Interest::Name);
                (self.store[list.type_key].url.clone(), collection)
            })
            .collect();
        for (type_url, collection) in collections {
            self.answered(&type_url, &collection, woken);
            // That it was recalled is all that kept it.
            let Some(type_key) = self.store.type_keys.get(&type_url).copied() else { continue };
            if let Some(list) = self.store.list_of(type_key, &collection) {
                self.store.drop_list_if_unused(list);
            }
            self.store.drop_type_if_unused(type_key);
        }
    }
}
