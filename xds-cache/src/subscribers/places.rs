//! Where in a list of its own something is, by the hash of it: places in two bytes as long as they fit.

use hashbrown::HashTable;

/// Places in a list. Each is there once.
pub(crate) enum Places {
    Few(HashTable<u16>),
    Many(HashTable<u32>),
}

impl Places {
    /// For so many at first.
    pub(crate) fn with_room(most: usize) -> Self {
        if most <= FEW { Self::Few(HashTable::with_capacity(most)) } else { Self::Many(HashTable::with_capacity(most)) }
    }

    /// Whether there may be so many.
    pub(crate) fn fits(&self, count: usize) -> bool {
        count <= FEW || matches!(self, Self::Many(_))
    }

    /// The place of what has a hash, of those of which `is` says so.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Self::Few(places) => places.find(hash, |at| is(usize::from(*at))).map(|at| usize::from(*at)),
            Self::Many(places) => places.find(hash, |at| is(*at as usize)).map(|at| *at as usize),
        }
    }

    /// `rehash` says of each place which hash what is there has.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, at: usize, rehash: impl Fn(usize) -> u64) {
        match self {
            Self::Few(places) => _ = places.insert_unique(hash, at as u16, |at| rehash(usize::from(*at))),
            Self::Many(places) => _ = places.insert_unique(hash, at as u32, |at| rehash(*at as usize)),
        }
    }

    /// What has a hash and was at one place is at another one, where nothing is.
    pub(crate) fn set(&mut self, hash: u64, from: usize, to: usize) {
        match self {
            Self::Few(places) => {
                let place = places.find_mut(hash, |at| usize::from(*at) == from);
                place.into_iter().for_each(|at| *at = to as u16);
            }
            Self::Many(places) => {
                let place = places.find_mut(hash, |at| *at as usize == from);
                place.into_iter().for_each(|at| *at = to as u32);
            }
        }
    }

    pub(crate) fn remove(&mut self, hash: u64, from: usize) {
        match self {
            Self::Few(places) => {
                if let Ok(place) = places.find_entry(hash, |at| usize::from(*at) == from) {
                    place.remove();
                }
            }
            Self::Many(places) => {
                if let Ok(place) = places.find_entry(hash, |at| *at as usize == from) {
                    place.remove();
                }
            }
        }
    }
}

/// So many have places of two bytes.
const FEW: usize = 1 << u16::BITS;
