//! What a scope of several servers knows of them.

use std::collections::{BTreeMap, HashSet};

use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use crate::federation::choice::Choice;

/// The servers of a scope that has several.
pub(super) struct Several {
    pub(super) choice: Choice,
    /// Nothing that is wanted is unknown, as far as was looked.
    pub(super) looked: bool,
    /// What is here of servers that are not asked any more, until the one that counts spoke of it.
    pub(super) of_others: BTreeMap<TypeUrl, HashSet<ResourceName>>,
    /// How often another one began to count.
    pub(super) switches: u64,
}

impl Several {
    pub(super) fn new(servers: usize) -> Self {
        Self { choice: Choice::new(servers), looked: false, of_others: BTreeMap::new(), switches: 0 }
    }

    /// Something is wanted that nothing is known of.
    pub(super) fn lacks(&mut self) {
        self.looked = false;
    }

    /// Nothing is wanted any more.
    pub(super) fn rest(&mut self) {
        let _ = self.choice.unwanted();
        self.of_others.clear();
        self.looked = false;
    }

    /// A server fails. Whether it is to be looked whether anything is wanted that nothing is known of.
    pub(super) fn failed(&mut self, server: usize, reason: &str, anew: bool) -> bool {
        // Whether that is so still is looked at.
        let _ = self.choice.unknown(false);
        let _ = self.choice.failed(server, reason);
        self.looked &= !anew;
        self.choice.may_fall_back() && !std::mem::replace(&mut self.looked, true)
    }

    /// Whether what a server says counts.
    pub(super) fn heeds(&self, server: usize) -> bool {
        self.choice.counts().map_or(self.choice.is_asked(server), |counts| counts == server)
    }
}
