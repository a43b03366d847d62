//! The names of what a scope holds of servers that do not count any more, until the one that does has spoken of it.

use std::collections::{BTreeMap, HashSet};

use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

#[derive(Default)]
pub(super) struct OfOthers {
    pub(super) held: BTreeMap<TypeUrl, HashSet<ResourceName>>,
    /// How often another server began to count, before a restart, too.
    pub(super) turns: u64,
    /// The one that counts never had any of it, and nobody says that it should: that it has none is no word of these.
    pub(super) only_gives: bool,
}

impl OfOthers {
    /// Another server begins to count. What is here then is to be noted for this turn.
    pub(super) fn begin(&mut self) -> u64 {
        self.held.clear();
        self.only_gives = false;
        self.turns += 1;
        self.turns
    }

    /// This is here, too, of one that did.
    pub(super) fn holds(&mut self, type_url: TypeUrl, name: ResourceName) {
        self.held.entry(type_url).or_default().insert(name);
    }

    /// Nothing is here any more.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}
