//! What admin pages and metrics see of a scope. Nobody waits for them: they hold its lock for a part at a time.

use std::ops::Bound;

use xdstp_cache::{Interest, Stored, SubscriberId};

use super::{BATCH, Scope};
use crate::federation::demand::Wish;
use xds_transport::Frame;

impl Scope {
    /// Whether there is anything to see of it.
    pub fn is_dormant(&self) -> bool {
        self.is_idle() && self.lock().cache.resources().next().is_none()
    }

    /// How many resources are known from before a restart only.
    pub fn stale_count(&self) -> usize {
        self.lock().cache.stale_count()
    }

    /// How many subscribers it has.
    pub fn subscriber_count(&self) -> usize {
        self.lock().cache.subscriber_count()
    }

    /// Visits what is `picked` of every name that something is known of, while others may use the scope.
    pub fn visit_stored<T>(&self, picked: impl Fn(Stored<'_, Frame>) -> T, mut visitor: impl FnMut(T)) {
        let mut next = Some(0);
        while let Some(from) = next {
            let part: Vec<_>;
            (part, next) = {
                let state = self.lock();
                let (part, next) = state.cache.resources_from(from, BATCH);
                (part.map(&picked).collect(), next)
            };
            part.into_iter().for_each(&mut visitor);
        }
    }

    /// The names and collections that are subscribed upstream.
    pub fn subscriptions(&self) -> Vec<Wish> {
        let mut subscriptions: Vec<Wish> = Vec::new();
        loop {
            let before = subscriptions.len();
            let after = subscriptions.last().cloned().map_or(Bound::Unbounded, Bound::Excluded);
            if let Some(demand) = &self.lock().demand {
                subscriptions.extend(demand.wanted().range((after, Bound::Unbounded)).take(BATCH).cloned());
            }
            if subscriptions.len() == before {
                return subscriptions;
            }
        }
    }

    /// How many these are.
    pub fn subscription_count(&self) -> usize {
        self.lock().demand.as_ref().map_or(0, |demand| demand.wanted().len())
    }

    /// What a subscriber asks for: bounded by what a stream may.
    pub fn interests(&self, id: SubscriberId) -> Vec<Interest> {
        self.lock().cache.interests(id).collect()
    }
}
