//! Where entries are kept that name each other: an arena for each kind of entry, and a key for each arena.

mod tenants;

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use self::tenants::Tenants;

/// To give back as few entries is not worth it.
const FEW: usize = 64;

/// What an entry of one arena is found by, in four bytes; and in no more where there may be none. It is in order of places.
pub(crate) trait Key: Copy + Ord + Hash + Debug {
    /// None is before it.
    const FIRST: Self;

    fn new(raw: NonZeroU32) -> Self;

    fn raw(self) -> NonZeroU32;
}

/// Makes types of keys: one for each arena, so that no key can be used with another one.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) struct $name(std::num::NonZeroU32);

        impl $crate::arena::Key for $name {
            const FIRST: Self = Self(std::num::NonZeroU32::MIN);

            #[inline]
            fn new(raw: std::num::NonZeroU32) -> Self {
                Self(raw)
            }

            #[inline]
            fn raw(self) -> std::num::NonZeroU32 {
                self.0
            }
        }
    )*};
}

pub(crate) use keys;

/// Entries of one kind.
///
/// It grows by an eighth, because where there are a hundred thousand, half of them empty is too many; and it gives back its end
/// when much of it was removed. The first entry is nobody's, so that a key is never 0. At first there is room for one more: a
/// cache may be one of many that have one subscriber of one type.
pub(crate) struct Arena<K, T> {
    entries: Vec<Entry<T>>,
    /// Where the next one goes: vacant entries are a chain, and 0 is its end.
    vacant: u32,
    len: usize,
    /// How many were removed since it was made smaller.
    removed: usize,
    tenants: Tenants,
    keys: PhantomData<fn(K) -> K>,
}

enum Entry<T> {
    /// With the next vacant one.
    Vacant(u32),
    Occupied(T),
}

impl<T> Entry<T> {
    fn get(&self) -> Option<&T> {
        match self {
            Self::Occupied(value) => Some(value),
            Self::Vacant(_) => None,
        }
    }

    fn get_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Occupied(value) => Some(value),
            Self::Vacant(_) => None,
        }
    }
}

impl<K, T> Default for Arena<K, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), vacant: 0, len: 0, removed: 0, tenants: Tenants::default(), keys: PhantomData }
    }
}

/// The place of the entry that a key is for. None is at the first.
#[inline]
pub(crate) fn place(key: impl Key) -> usize {
    (key.raw().get() >> tenants::BITS) as usize
}

/// The key of the tenant of a place.
#[inline]
pub(crate) fn key_at<K: Key>(place: usize, tenant: u8) -> K {
    let raw = (place as u32) << tenants::BITS | u32::from(tenant);
    debug_assert!(place > 0 && (raw >> tenants::BITS) as usize == place, "{place} is no place of a key");
    K::new(NonZeroU32::new(raw).unwrap_or(NonZeroU32::MIN))
}

impl<K: Key, T> Arena<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The key of what is added next.
    pub(crate) fn next_key(&self) -> K {
        self.key_at(if self.vacant == 0 { self.entries.len().max(1) } else { self.vacant as usize })
    }

    /// The key of the entry at a place, or of the one that it has next.
    fn key_at(&self, at: usize) -> K {
        key_at(at, self.tenants.of(at))
    }

    /// A key is used for the entry that it was made for, or when that is gone and nothing is in its place.
    #[inline]
    fn check(&self, key: K) {
        debug_assert!(
            key == self.key_at(place(key)) || self.peek(key).is_none(),
            "{key:?} is too old: another entry has its place"
        );
    }

    pub(crate) fn add(&mut self, value: T) -> K {
        let key = self.next_key();
        self.len += 1;
        if let Some(entry) = self.entries.get_mut(place(key)) {
            if let Entry::Vacant(next) = std::mem::replace(entry, Entry::Occupied(value)) {
                self.vacant = next;
            }
            return key;
        }
        if self.entries.len() == self.entries.capacity() {
            let len = self.entries.len();
            self.entries.reserve_exact((len / 8).max(len.clamp(2, 4)));
        }
        if self.entries.is_empty() {
            self.entries.push(Entry::Vacant(0));
        }
        self.entries.push(Entry::Occupied(value));
        key
    }

    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&T> {
        self.check(key);
        self.peek(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut T> {
        self.check(key);
        self.entries.get_mut(place(key))?.get_mut()
    }

    /// What is in the place of a key that may be too old: whether it is what the key was made for, is for its owner to know.
    #[inline]
    pub(crate) fn peek(&self, key: K) -> Option<&T> {
        self.entries.get(place(key))?.get()
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn remove(&mut self, key: K) -> T {
        self.check(key);
        let taken = self.entries.get_mut(place(key));
        let taken = taken.map(|entry| std::mem::replace(entry, Entry::Vacant(self.vacant)));
        let Some(Entry::Occupied(value)) = taken else { vacant(key) };
        self.vacant = place(key) as u32;
        self.tenants.leave(place(key));
        self.len -= 1;
        self.removed += 1;
        let ends_vacant = matches!(self.entries.last(), Some(Entry::Vacant(_)));
        // All of it is gone through: once for so many removals.
        if ends_vacant && self.removed > FEW + self.len / 8 && self.len < self.entries.capacity() / 2 {
            self.shrink();
        }
        value
    }

    #[inline(never)]
    fn shrink(&mut self) {
        let last = self.entries.iter().rposition(|entry| entry.get().is_some());
        self.entries.truncate(last.map_or(0, |last| last + 1));
        self.entries.shrink_to_fit();
        self.vacant = 0;
        for (at, entry) in self.entries.iter_mut().enumerate().skip(1).rev() {
            if let Entry::Vacant(next) = entry {
                *next = std::mem::replace(&mut self.vacant, at as u32);
            }
        }
        self.removed = 0;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.entries.iter().enumerate().filter_map(|(at, entry)| entry.get().map(|value| (self.key_at(at), value)))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(Entry::get)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(Entry::get_mut)
    }

    /// A part of what [`values`](Self::values) visits: what is in `most` places from one on, of which the first is 0. And
    /// the place behind them, if there is any.
    pub(crate) fn part(&self, from: usize, most: usize) -> (impl Iterator<Item = &T>, Option<usize>) {
        let places = self.entries.get(1..).unwrap_or_default();
        let end = from.saturating_add(most).min(places.len());
        let part = places.get(from..end).unwrap_or_default();
        (part.iter().filter_map(Entry::get), (end < places.len()).then_some(end))
    }
}

/// Lets what has an arena be indexed by the keys of that.
macro_rules! indexed {
    ([$($parameter:ident)?] $of:ty: $key:ty => $arena:ident: $entry:ty) => {
        impl $(<$parameter>)? std::ops::Index<$key> for $of {
            type Output = $entry;

            #[inline]
            fn index(&self, key: $key) -> &$entry {
                &self.$arena[key]
            }
        }

        impl $(<$parameter>)? std::ops::IndexMut<$key> for $of {
            #[inline]
            fn index_mut(&mut self, key: $key) -> &mut $entry {
                &mut self.$arena[key]
            }
        }
    };
}

pub(crate) use indexed;

impl<K: Key, T> Index<K> for Arena<K, T> {
    type Output = T;

    #[inline]
    fn index(&self, key: K) -> &T {
        match self.get(key) {
            Some(value) => value,
            None => vacant(key),
        }
    }
}

impl<K: Key, T> IndexMut<K> for Arena<K, T> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut T {
        match self.get_mut(key) {
            Some(value) => value,
            None => vacant(key),
        }
    }
}

/// Keys are not made up: who has one has it of what is there.
#[cold]
#[inline(never)]
#[allow(clippy::panic, reason = "there is nothing else to do, and it does not depend on what comes from the network")]
fn vacant(key: impl Key) -> ! {
    panic!("nothing is kept for {key:?}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    keys! {
        Number,
    }

    #[test]
    fn a_key_that_may_be_none_is_four_bytes() {
        assert_eq!(size_of::<Option<Number>>(), 4);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "too old"))]
    fn a_key_whose_place_another_entry_has_is_refused_in_debug() {
        let mut arena = Arena::<Number, char>::default();
        let first = arena.add('a');
        arena.remove(first);
        assert_eq!((arena.get(first), arena.peek(first)), (None, None), "it is gone, and says so");
        assert_eq!(place(arena.add('b')), place(first));
        assert_eq!(arena.peek(first), Some(&'b'));
        arena.get(first);
    }

    #[test]
    fn places_that_were_given_back_make_new_keys() {
        let mut arena = Arena::<Number, usize>::default();
        let before: Vec<_> = (0..300).map(|number| arena.add(number)).collect();
        before.iter().rev().for_each(|key| _ = arena.remove(*key));
        assert!(arena.entries.len() < 100, "its end is given back");
        let after: Vec<_> = (0..300).map(|number| arena.add(number)).collect();
        let same = before.iter().filter(|key| after.contains(key)).count();
        assert_eq!(same, if cfg!(debug_assertions) { 0 } else { 300 });
    }

    #[test]
    fn what_is_vacant_is_used_first_though_the_end_was_given_back() {
        let mut arena = Arena::<Number, usize>::default();
        let keys: Vec<_> = (0..300).map(|number| arena.add(number)).collect();
        keys.iter().step_by(2).chain(keys[150..].iter().skip(1).step_by(2)).for_each(|key| _ = arena.remove(*key));
        let places = arena.entries.len();
        assert!(places < 300, "its end is given back");
        while arena.len() < places - 1 {
            arena.add(0);
        }
        assert_eq!(arena.entries.len(), places);
    }

    #[test]
    fn growing_and_shrinking_cost_little_for_each_of_what_comes_and_goes() {
        let mut arena = Arena::<Number, usize>::default();
        let (mut keys, mut rooms) = (Vec::new(), Vec::new());
        for number in 0..10_000 {
            keys.push(arena.add(number));
            rooms.push(arena.entries.capacity());
        }
        rooms.dedup();
        assert!(rooms.len() < 100, "made anew {} times", rooms.len());
        let room = arena.entries.capacity();
        for number in 1..=4_000 {
            arena.remove(keys.pop().unwrap());
            assert_eq!((arena.removed, arena.entries.capacity()), (number, room), "it is not gone through");
        }
        while arena.len() > room / 2 - 500 {
            arena.remove(keys.pop().unwrap());
        }
        assert!(arena.entries.capacity() < 6_000);
    }

    proptest! {
        #[test]
        fn an_arena_is_a_map_that_makes_its_keys(steps in proptest::collection::vec((0..3_u8, 0..400_usize), 0..1200)) {
            let (mut arena, mut model) = (Arena::<Number, usize>::default(), BTreeMap::new());
            for (step, number) in steps {
                if step > 0 && model.len() < 300 {
                    let next = arena.next_key();
                    let key = arena.add(number);
                    assert_eq!((key, model.insert(key, number)), (next, None));
                } else if let Some(key) = model.keys().nth(number % model.len().max(1)).copied() {
                    assert_eq!(Some(arena.remove(key)), model.remove(&key));
                    assert!(!arena.contains(key));
                }
            }
            assert_eq!(arena.len(), model.len());
            assert!(arena.iter().eq(model.iter().map(|(key, number)| (*key, number))));
            assert!(arena.values().eq(model.values()));
            let (mut parts, mut next) = (Vec::<&usize>::new(), Some(0));
            while let Some(from) = next {
                let (part, after) = arena.part(from, 7);
                parts.extend(part);
                next = after;
            }
            assert!(parts.into_iter().eq(model.values()));
            for key in model.into_keys() {
                arena.remove(key);
            }
            assert!(arena.len() == 0 && arena.entries.len() <= 2 * FEW + 2);
        }
    }
}
