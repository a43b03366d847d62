//! What links are to, and what they are found by.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::arena::{Arena, Key};
use crate::keys::{LinkKey, Target, WalkKey};
use crate::subscribers::link::{Link, To, Walk};

/// All links, to be asked what they are to.
#[derive(Clone, Copy)]
pub(crate) struct Targets<'a> {
    pub(crate) links: &'a Arena<LinkKey, Link>,
    pub(crate) walks: &'a Arena<WalkKey, Walk>,
    /// Nobody elsewhere chooses the keys of targets: a hash that is fast will do.
    pub(crate) seed: &'a RandomState,
}

impl Targets<'_> {
    #[inline]
    pub(crate) fn of(&self, at: LinkKey) -> Target {
        match self.links[at].to() {
            To::Slot(slot) => Target::Slot(slot),
            To::Walk(walk) => Target::List(self.walks[walk].list),
        }
    }

    /// Of a slot and a list of one key it is the same, and of no more.
    #[inline]
    pub(crate) fn hash(&self, target: Target) -> u64 {
        let raw = match target {
            Target::Slot(slot) => slot.raw(),
            Target::List(list) => list.raw(),
        };
        self.seed.hash_one(raw.get())
    }

    #[inline]
    pub(crate) fn hash_of(&self, at: LinkKey) -> u64 {
        self.hash(self.of(at))
    }
}
