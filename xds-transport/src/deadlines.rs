//! What is due when.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A set of keys, each with the time it is due.
#[derive(Debug)]
pub(crate) struct Deadlines<K>(BTreeSet<(Instant, K)>);

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord> Deadlines<K> {
    pub(crate) fn insert(&mut self, due: Instant, key: K) {
        self.0.insert((due, key));
    }

    pub(crate) fn remove(&mut self, due: Instant, key: K) {
        self.0.remove(&(due, key));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// When the next key is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(due, _)| *due)
    }

    /// The next key.
    pub(crate) fn first(&self) -> Option<&K> {
        self.0.first().map(|(_, key)| key)
    }

    /// Takes one key that is due at `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, key)| key)
    }
}

/// When a TTL is over; one beyond what the clock can hold never is.
pub(crate) fn expiry(now: Instant, ttl: Option<Duration>) -> Option<Instant> {
    now.checked_add(ttl?)
}
