//! Where entries are kept that name each other by their index.

use std::ops::{Deref, DerefMut};

use slab::Slab;

/// To give back as few entries is not worth it.
const FEW: usize = 64;

/// A slab that grows by an eighth, because where there are a hundred thousand, half of them empty is too many; and that gives
/// back its end when much of it was removed.
pub(crate) struct Pool<T> {
    slab: Slab<T>,
    /// Behind everything that was added since it was made smaller, and how many were removed since.
    end: usize,
    removed: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { slab: Slab::new(), end: 0, removed: 0 }
    }
}

impl<T> Pool<T> {
    pub(crate) fn add(&mut self, value: T) -> u32 {
        if self.slab.len() == self.slab.capacity() {
            self.slab.reserve_exact((self.slab.len() / 8).max(4));
        }
        let at = self.slab.insert(value);
        self.end = self.end.max(at + 1);
        at as u32
    }

    pub(crate) fn remove(&mut self, at: u32) -> T {
        let value = self.slab.remove(at as usize);
        self.removed += 1;
        let is_empty_at_its_end = !self.slab.contains(self.end - 1);
        // All of it is gone through: once for so many removals.
        if is_empty_at_its_end && self.removed > FEW + self.slab.len() / 8 && self.slab.len() < self.slab.capacity() / 2
        {
            self.slab.shrink_to_fit();
            self.end = self.slab.iter().next_back().map_or(0, |(last, _)| last + 1);
            self.removed = 0;
        }
        value
    }
}

impl<T> Deref for Pool<T> {
    type Target = Slab<T>;

    fn deref(&self) -> &Slab<T> {
        &self.slab
    }
}

impl<T> DerefMut for Pool<T> {
    fn deref_mut(&mut self) -> &mut Slab<T> {
        &mut self.slab
    }
}
