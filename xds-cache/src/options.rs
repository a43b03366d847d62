//! What kind of cache it is.

use std::time::Duration;

/// What kind of cache it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Whether a name that is not in the cache does not exist. A control plane's cache is authoritative;
    /// a relay's is not: there a missing name was not answered yet.
    pub authoritative: bool,
    /// Whether an authoritative cache has its content already. If not, a missing name was not answered yet until it is
    /// [filled](crate::Edit::fill).
    pub filled: bool,
    /// Whether a wildcard also covers `xdstp:` names. It does where everything in the cache is the
    /// answer to one node's wildcard; elsewhere those names have collections of their own.
    pub wildcard_covers_xdstp: bool,
    /// How many tombstones a collection keeps for those who were away. It is also how many names that were never here it
    /// tells as gone, in the time that these are kept, to who does not say what it holds.
    pub tombstones: usize,
    /// How long it keeps them.
    pub tombstone_age: Duration,
    /// How long it keeps the content of what is gone, for [who is sent full states](crate::Cache::visit_leaving) and is not told
    /// yet. It should be longer than a removal is deferred.
    pub departed_age: Duration,
    /// How many resources a relay's cache holds before it evicts what nobody is subscribed to, the one least
    /// recently wanted or changed first; see [`evict`](crate::Cache::evict). Without one it evicts nothing of its own accord.
    ///
    /// What somebody is subscribed to is never evicted, and counts. An authoritative cache has no capacity: what
    /// is not in it does not exist, so that to evict would be to delete.
    pub capacity: Option<usize>,
    /// How many names that it does not visit a pull looks at before it [pauses](crate::Pulled::paused): at least one.
    pub looks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            authoritative: true,
            filled: true,
            wildcard_covers_xdstp: false,
            tombstones: 1000,
            tombstone_age: Duration::from_secs(3600),
            departed_age: Duration::from_secs(30),
            capacity: None,
            // Some milliseconds' worth.
            looks: 4096,
        }
    }
}
