//! Finding what a slab holds by a key that it holds too: an entry is an index, five bytes with its share of the table.

use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

use hashbrown::HashTable;
use slab::Slab;

/// To give back as little room is not worth it.
const FEW: usize = 64;

/// What is found by a part of itself. The key may not change while it is indexed.
pub(crate) trait Keyed {
    type Key<'a>: Hash + Eq
    where
        Self: 'a;

    fn key(&self) -> Self::Key<'_>;
}

/// Where in a slab the value with a key is. Keys come from the network, so the hash is seeded.
pub(crate) struct Index<T> {
    table: HashTable<u32>,
    seed: RandomState,
    of: PhantomData<fn() -> T>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { table: HashTable::new(), seed: RandomState::new(), of: PhantomData }
    }
}

impl<T: Keyed> Index<T> {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Everything indexed, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.table.iter().copied()
    }

    pub(crate) fn find<'a>(&self, slab: &'a Slab<T>, key: T::Key<'a>) -> Option<u32> {
        self.table.find(self.seed.hash_one(&key), |at| slab[*at as usize].key() == key).copied()
    }

    /// The same, by what is hashed as a key and need not be one: `is` says what it is the key of.
    pub(crate) fn find_by(&self, slab: &Slab<T>, key: &impl Hash, is: impl Fn(&T) -> bool) -> Option<u32> {
        self.table.find(self.seed.hash_one(key), |at| is(&slab[*at as usize])).copied()
    }

    /// Indexes what is at `at`, whose key is not indexed yet.
    pub(crate) fn insert(&mut self, slab: &Slab<T>, at: u32) {
        let hash = |at: u32| self.seed.hash_one(slab[at as usize].key());
        self.table.insert_unique(hash(at), at, |at| hash(*at));
    }

    /// To be called while it still is at `at`.
    pub(crate) fn remove(&mut self, slab: &Slab<T>, at: u32) {
        let hash = self.seed.hash_one(slab[at as usize].key());
        if let Ok(entry) = self.table.find_entry(hash, |found| *found == at) {
            entry.remove();
        }
        // Twice what is left, so that as many come or go before it is made anew.
        if self.table.len() < self.table.capacity() / 8 && self.table.capacity() > FEW {
            self.table.shrink_to(2 * self.table.len(), |at| self.seed.hash_one(slab[*at as usize].key()));
        }
    }
}
