//! Removals that a subscriber has not been told yet: other types may go first (rule 122).

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey, Target};
use crate::moments::Seq;
use crate::subscribers::Names;

impl<V> Cache<V> {
    /// How many changes there were: another number whenever anything did that a subscriber may be told of.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Options, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// let before = cache.changes();
    /// let mut edit = cache.edit(Instant::now());
    /// edit.put(&clusters, &"a".parse().unwrap(), Resource::unversioned(7, ()));
    /// let _ = edit.finish();
    /// assert!(cache.changes() > before);
    /// ```
    pub fn changes(&self) -> u64 {
        self.store.seq
    }

    /// A number that is another one whenever a removal has joined those that a subscriber is yet to be told of: when the newest
    /// of them happened, by the count of changes, or 0.
    ///
    /// O(changes that it was not told of).
    pub fn newest_removal(&self, id: SubscriberId) -> u64 {
        if !self.is_open(id) {
            return 0;
        }
        let subscriber = &self.subscribers[id];
        let chained = self.subscribers.chain(subscriber.slots).chain(self.subscribers.chain(subscriber.lists));
        let links = chained.chain(subscriber.parting.iter().copied()).map(|link| self.removed_at(link));
        let names = subscriber.owed.removals().iter().filter_map(|name| self.store.slot_of(subscriber.type_key, name));
        let gone_at = |at: SlotKey| {
            let slot = &self.store[at];
            self.look_of(id, &slot.name).map_or(slot.seq, |look| look.seq)
        };
        links.chain(names.map(gone_at)).max().unwrap_or(0)
    }

    /// When the newest removal happened that a link has not passed.
    fn removed_at(&self, link: LinkKey) -> Seq {
        match self.subscribers.target(link) {
            Target::Slot(at) => match &self.store[at] {
                slot if self.store.is_absent_for(at, self.subscribers[self.subscribers[link].subscriber].selector) => {
                    slot.seq
                }
                _ => 0,
            },
            Target::List(list) => {
                let newest = self.store[list].newest_gone();
                if self.subscribers.walk(link).is_some_and(|walk| newest > walk.gone_cursor) { newest } else { 0 }
            }
        }
    }
}
