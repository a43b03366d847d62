//! Subscribers come and go.

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::SelectorKey;
use crate::subscribers::{Names, Subscriber};
use crate::text::TypeUrl;

impl<V> Cache<V> {
    /// A new subscriber to resources of one type, interested in nothing yet.
    pub fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.open_as(type_url, None)
    }

    pub(crate) fn open_as(&mut self, type_url: &TypeUrl, selector: Option<SelectorKey>) -> SubscriberId {
        let type_key = self.store.type_key(type_url);
        self.store[type_key].subscriber_count += 1;
        // After four thousand million others, what was forgotten that long may come again: but never 0.
        self.subscribers.generation = self.subscribers.generation.checked_add(1).unwrap_or(1);
        let generation = self.subscribers.generation;
        SubscriberId::of(self.subscribers.all.add(Subscriber::new(type_key, selector, generation)), generation)
    }

    /// Whether a subscriber was opened here, and is not closed.
    pub fn is_open(&self, id: SubscriberId) -> bool {
        self.subscribers.find(id).is_some()
    }

    /// How many subscribers there are.
    pub fn subscriber_count(&self) -> usize {
        self.subscribers.all.len()
    }

    /// Ends a subscriber. Returns what nobody is interested in any more.
    pub fn close(&mut self, id: SubscriberId) -> Vec<Interest> {
        self.close_part(id, usize::MAX).0
    }

    /// Does what [`close`](Self::close) does, of not more than `most` interests at once: for who must not keep others from
    /// the cache for as long as all of it takes. Whether the subscriber is closed comes with what nobody is interested in
    /// any more. Nothing else may be done with it meanwhile.
    ///
    /// ```
    /// use xdstp_cache::{Cache, Interest, Options};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// for name in ["a", "b", "c"] {
    ///     cache.subscribe(subscriber, &Interest::Name(name.parse().unwrap()));
    /// }
    /// let (left, closed) = cache.close_part(subscriber, 2);
    /// assert!(left.len() == 2 && !closed);
    /// let (left, closed) = cache.close_part(subscriber, 2);
    /// assert!(left.len() == 1 && closed && !cache.is_open(subscriber));
    /// ```
    pub fn close_part(&mut self, id: SubscriberId, most: usize) -> (Vec<Interest>, bool) {
        if !self.is_open(id) {
            return (Vec::new(), true);
        }
        let (part, is_last) = self.subscribers.close_part(id, most);
        let mut left = Vec::new();
        for at in part {
            let target = self.subscribers.target(at);
            // After that there may be no name of it.
            let interest = (self.watchers(target) == 1).then(|| self.store.interest_of(target));
            if self.drop_link(at) {
                left.extend(interest);
            }
        }
        if !is_last {
            return (left, false);
        }
        self.subscribers.bringing.remove(&id.key());
        let Subscriber { type_key, owed, looked, selector, .. } = self.subscribers.all.remove(id.key());
        for (name, look) in looked.into_looks() {
            if let Some(at) = self.store.slot_of(type_key, &name) {
                self.store.look_away(at, selector, look.of);
            }
        }
        self.store.selectors.release(selector);
        if !self.store.options.authoritative {
            owed.brought().iter().for_each(|name| self.forget_error(type_key, name));
        }
        self.end_full_states(type_key, id.key());
        self.store[type_key].subscriber_count -= 1;
        self.store.drop_type_if_unused(type_key);
        self.make_room();
        (left, true)
    }
}
