//! Who is told of changes.

use crate::arena::{key_at, place};
use crate::keys::SubscriberKey;

/// One subscriber: one type of one stream.
///
/// The id of one that is [closed](crate::Cache::close) is nobody's from then on: a cache has nothing to say to it, and nobody
/// else's comes to be equal to it.
///
/// ```
/// use xdstp_cache::{Cache, Options};
///
/// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// let mut cache = Cache::<()>::new(Options::default());
/// let first = cache.open(&clusters);
/// cache.close(first);
/// let second = cache.open(&clusters);
/// assert_eq!(first.index(), second.index());
/// assert!(first != second && !cache.is_open(first) && cache.is_open(second));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId {
    key: SubscriberKey,
    /// 0 is no cache's.
    generation: u32,
}

impl SubscriberId {
    /// A small number, unique among the open subscribers of a source: an index for a table beside it.
    pub fn index(self) -> usize {
        place(self.key) - 1
    }

    /// The subscriber with an index, for sources that number their own: no cache has it, and which ids are over is for
    /// the source to know.
    pub fn from_index(index: u32) -> Self {
        Self { key: key_at(index as usize + 1, 0), generation: 0 }
    }

    /// Of the subscriber with a key that is the so-manyeth of its cache.
    pub(crate) fn of(key: SubscriberKey, generation: u32) -> Self {
        Self { key, generation }
    }

    pub(crate) fn key(self) -> SubscriberKey {
        self.key
    }

    pub(crate) fn generation(self) -> u32 {
        self.generation
    }
}
