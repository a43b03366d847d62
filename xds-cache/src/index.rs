//! Finding what an arena holds by a part of that: an entry is its key in the arena, five bytes with its share of the table.

use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

use hashbrown::HashTable;

use crate::arena::{Arena, Key};

/// To give back as little room is not worth it.
const FEW: usize = 64;

/// What is found by a part of itself. That part may not change while it is indexed.
pub(crate) trait Keyed {
    type By<'a>: Hash + Eq
    where
        Self: 'a;

    fn by(&self) -> Self::By<'_>;
}

/// Where in an arena an entry is, by that part of it. They come from the network, so the hash is seeded.
pub(crate) struct Index<K, T> {
    table: HashTable<K>,
    seed: RandomState,
    of: PhantomData<fn() -> T>,
}

impl<K, T> Default for Index<K, T> {
    fn default() -> Self {
        Self { table: HashTable::new(), seed: RandomState::default(), of: PhantomData }
    }
}

impl<K: Key, T: Keyed> Index<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Everything indexed, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = K> {
        self.table.iter().copied()
    }

    pub(crate) fn find<'a>(&self, entries: &'a Arena<K, T>, by: T::By<'a>) -> Option<K> {
        self.table.find(self.seed.hash_one(&by), |at| entries[*at].by() == by).copied()
    }

    /// Indexes what is at `at`, and is not found yet.
    pub(crate) fn insert(&mut self, entries: &Arena<K, T>, at: K) {
        let hash = |at: K| self.seed.hash_one(entries[at].by());
        self.table.insert_unique(hash(at), at, |at| hash(*at));
    }

    /// To be called while it still is at `at`.
    pub(crate) fn remove(&mut self, entries: &Arena<K, T>, at: K) {
        let hash = self.seed.hash_one(entries[at].by());
        if let Ok(entry) = self.table.find_entry(hash, |found| *found == at) {
            entry.remove();
        }
        // Twice what is left, so that as many come or go before it is made anew.
        if self.table.len() < self.table.capacity() / 8 && self.table.capacity() > FEW {
            self.table.shrink_to(2 * self.table.len(), |at| self.seed.hash_one(entries[*at].by()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SlotKey;

    impl Keyed for String {
        type By<'a> = &'a str;

        fn by(&self) -> &str {
            self
        }
    }

    #[test]
    fn what_is_left_has_room_for_as_many_again_and_not_for_far_more() {
        let (mut arena, mut index) = (Arena::<SlotKey, String>::default(), Index::<_, String>::default());
        let keys: Vec<_> = (0..4_000).map(|number: usize| arena.add(number.to_string())).collect();
        keys.iter().for_each(|at| index.insert(&arena, *at));
        let mut made_anew = 0;
        for at in keys {
            let before = index.table.capacity();
            index.remove(&arena, at);
            arena.remove(at);
            let room = index.table.capacity();
            if room < before / 2 {
                made_anew += 1;
                assert!((2 * index.len()..=4 * index.len()).contains(&room), "{room} for {}", index.len());
            }
        }
        assert!((3..8).contains(&made_anew), "{made_anew} times");
    }
}
