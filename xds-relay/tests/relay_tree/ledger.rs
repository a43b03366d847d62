//! What the origin said, and what clients were told of it.

use std::collections::{BTreeMap, BTreeSet};

/// A name, and whose it is: of everybody, or of one node group.
pub(crate) type Key = (Option<usize>, String);

/// What the origin has, and what went, since there is one.
#[derive(Default)]
pub(crate) struct Ledger {
    present: BTreeMap<Key, u64>,
    removed: BTreeSet<Key>,
    serial: u64,
    /// What is waited for: a resource as it is now, and since when.
    awaited: Option<(Key, u64, u64)>,
    /// When it reached each client, in µs since it was put.
    pub(crate) reached: Vec<u64>,
    /// What a client was told to be gone that the origin did not say.
    pub(crate) false_removals: Vec<String>,
    /// What came though it was held, over delta.
    pub(crate) resent: u64,
}

impl Ledger {
    /// Something changes, and its number is this from now on.
    pub(crate) fn put(&mut self, now: u64, key: Key) -> u64 {
        self.serial += 1;
        self.removed.remove(&key);
        self.present.insert(key.clone(), self.serial);
        self.awaited = Some((key, self.serial, now));
        self.reached.clear();
        self.serial
    }

    pub(crate) fn remove(&mut self, key: Key) {
        self.present.remove(&key);
        self.removed.insert(key);
    }

    /// A client was sent a resource.
    pub(crate) fn told(&mut self, now: u64, key: &Key, serial: u64) {
        if let Some((awaited, newest, since)) = &self.awaited
            && (awaited, *newest) == (key, serial)
        {
            self.reached.push(now - since);
        }
    }

    /// A client was told that a name is gone.
    pub(crate) fn told_gone(&mut self, who: &str, key: Key) {
        if !self.removed.contains(&key) {
            self.false_removals.push(format!("{who}: {key:?}"));
        }
    }

    /// Whether who is of a group holds what the origin has for it.
    pub(crate) fn is_held(&self, group: usize, held: &BTreeMap<Key, u64>) -> bool {
        let is_for = |(of, _): &&Key| of.is_none_or(|of| of == group);
        let has = self.present.iter().filter(|(key, _)| is_for(key));
        has.eq(held.iter())
    }
}
