//! What is kept for as long as anybody else holds it.

use std::hash::Hash;
use std::sync::Mutex;

use indexmap::IndexMap;

use crate::federation::lock::lock;

/// More than this is not kept.
const MOST: usize = 1 << 20;
/// How much, and which part of all, one sweep looks at: a slice after the other, as others wait for the lock.
const SWEEP: usize = 4096;
const SWEEP_PART: usize = 16;
const SLICE: usize = 1024;

#[derive(Debug)]
pub(crate) struct WeakTable<K, V>(Mutex<Entries<K, V>>);

#[derive(Debug)]
struct Entries<K, V> {
    entries: IndexMap<K, V>,
    /// Where the next sweep begins.
    swept: usize,
}

impl<K, V> Default for WeakTable<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Entries { entries: IndexMap::default(), swept: 0 }))
    }
}

impl<K: Hash + Eq, V> WeakTable<K, V> {
    /// Reads what is kept under a key.
    pub(crate) fn find<T>(&self, key: &K, read: impl FnOnce(&K, &V) -> T) -> Option<T> {
        lock(&self.0).entries.get_key_value(key).map(|(key, value)| read(key, value))
    }

    /// Keeps a value, if there is room, and none is kept under its key.
    pub(crate) fn insert(&self, key: K, value: V) {
        let Entries { entries, .. } = &mut *lock(&self.0);
        if entries.len() == entries.capacity() {
            // An eighth more: of that many, half a table would be too much to have empty.
            entries.reserve_exact((entries.len() / 8).max(SWEEP / SWEEP_PART));
        }
        if entries.len() < MOST {
            entries.entry(key).or_insert(value);
        }
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).entries.len()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        lock(&self.0).entries.capacity()
    }

    /// Drops some of what nobody holds: to be called every second or so.
    pub(crate) fn sweep(&self, is_held: impl Fn(&K, &V) -> bool) {
        let mut left = self.len();
        left = SWEEP.max(left / SWEEP_PART).min(left);
        while left > 0 {
            let slice = left.min(SLICE);
            self.sweep_slice(slice, &is_held);
            left -= slice;
        }
        let Entries { entries, .. } = &mut *lock(&self.0);
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to(entries.len() * 2);
        }
    }

    fn sweep_slice(&self, most: usize, is_held: &impl Fn(&K, &V) -> bool) {
        let mut dropped = Vec::new();
        let Entries { entries, swept } = &mut *lock(&self.0);
        for _ in 0..most {
            match entries.get_index(*swept) {
                Some((key, value)) if is_held(key, value) => *swept += 1,
                // The last takes its place, and is looked at next.
                Some(_) => dropped.extend(entries.swap_remove_index(*swept)),
                None => *swept = 0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn everything_is_looked_at_within_a_few_sweeps() {
        let table = WeakTable::default();
        let is_held = |_: &usize, value: &Arc<usize>| Arc::strong_count(value) > 1;
        let held = |index: usize| {
            let value = Arc::new(index);
            table.insert(index, value.clone());
            value
        };
        let kept: Vec<_> = (0..3 * SWEEP).map(held).step_by(2).collect();
        (0..5).for_each(|_| table.sweep(is_held));
        assert_eq!(table.len(), kept.len());
        drop(kept);
        (0..5).for_each(|_| table.sweep(is_held));
        assert!(table.len() == 0 && table.capacity() < SWEEP, "{}", table.capacity());
    }

    #[test]
    fn more_than_so_much_is_not_kept() {
        let table = WeakTable::default();
        (0..=MOST).for_each(|index| table.insert(index, ()));
        assert_eq!(table.len(), MOST);
        assert_eq!(table.find(&MOST, |_, ()| ()), None);
    }
}
