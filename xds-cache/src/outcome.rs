//! What changing a cache did.

use crate::resource::Resource;

/// What a [`put`](crate::Edit::put) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The name was not there.
    Added,
    /// The content changed.
    Changed,
    /// The same content at a new version.
    Reversioned,
    /// New content at an old version: an origin's fault. It is passed on.
    ChangedAtSameVersion,
    /// Nothing changed but that an error is over: it is told by sending the resource again.
    Recovered,
    /// Nothing changed, and nobody is told.
    Unchanged,
}

impl Outcome {
    /// What putting a resource in the place of another one does.
    pub(crate) fn of<V>(old: &Resource<V>, new: &Resource<V>) -> Self {
        match (old.version == new.version, old.digest() == new.digest()) {
            (true, true) => Self::Unchanged,
            (true, false) => Self::ChangedAtSameVersion,
            (false, true) => Self::Reversioned,
            (false, false) => Self::Changed,
        }
    }
}

/// How many names of a cache had which [`Outcome`], and how many went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcomes {
    /// [`Outcome::Added`].
    pub added: u64,
    /// [`Outcome::Changed`].
    pub changed: u64,
    /// [`Outcome::Reversioned`].
    pub reversioned: u64,
    /// [`Outcome::ChangedAtSameVersion`].
    pub changed_at_same_version: u64,
    /// [`Outcome::Recovered`].
    pub recovered: u64,
    /// [`Outcome::Unchanged`].
    pub unchanged: u64,
    /// Resources that were there, and were removed.
    pub removed: u64,
    /// Resources that were forgotten because nobody was subscribed to them.
    pub evicted: u64,
    /// How often two variants of a name were found equally good for somebody who selects, which is for their control plane to avoid:
    /// TP2 does not say who gets which. Here it is the first, in the order of `xds_matcher`, which has a lint that finds all.
    pub overlapping: u64,
}

impl Outcomes {
    pub(crate) fn count(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Added => &mut self.added,
            Outcome::Changed => &mut self.changed,
            Outcome::Reversioned => &mut self.reversioned,
            Outcome::ChangedAtSameVersion => &mut self.changed_at_same_version,
            Outcome::Recovered => &mut self.recovered,
            Outcome::Unchanged => &mut self.unchanged,
        };
        *counter += 1;
    }

    /// What happened after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            added: self.added - earlier.added,
            changed: self.changed - earlier.changed,
            reversioned: self.reversioned - earlier.reversioned,
            changed_at_same_version: self.changed_at_same_version - earlier.changed_at_same_version,
            recovered: self.recovered - earlier.recovered,
            unchanged: self.unchanged - earlier.unchanged,
            removed: self.removed - earlier.removed,
            evicted: self.evicted - earlier.evicted,
            overlapping: self.overlapping - earlier.overlapping,
        }
    }
}
