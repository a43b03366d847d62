//! A collection: its members, and what went from it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::keys::{SlotKey, TypeKey};
use crate::moments::Seq;
use crate::store::slot::Side;
use crate::watchers::Watchers;

/// The members of a collection, in order of last change.
pub(crate) struct List {
    /// The glob; `None` for the wildcard of the type.
    pub(crate) glob: Option<ResourceName>,
    pub(crate) type_key: TypeKey,
    /// Which of a slot's two places belongs to this list.
    pub(super) side: Side,
    pub(super) newest: Option<SlotKey>,
    pub(super) oldest: Option<SlotKey>,
    pub(crate) live: u32,
    pub(crate) answer: Answer,
    pub(crate) watchers: Watchers,
    /// Whether it ever had one.
    pub(crate) watched: bool,
    /// Tombstones for those who were away, oldest first.
    pub(crate) gone: VecDeque<Gone>,
    /// How many of them are of names that somebody asked for, and nobody here has seen.
    pub(crate) unseen: usize,
    /// Older ones that a link has not passed yet, oldest first.
    pub(crate) owed: VecDeque<Gone>,
    /// How many of `owed` a link needed when that was last looked at.
    pub(crate) needed: usize,
    /// The `gone_cursor`s of its links, and how many have each.
    pub(crate) passed: BTreeMap<Seq, u32>,
    /// The glob itself and names below it that have an error, by when they got it.
    pub(crate) failed: BTreeMap<Seq, ResourceName>,
}

impl List {
    pub(crate) fn new(glob: Option<ResourceName>, type_key: TypeKey, answer: Answer) -> Self {
        let side = if glob.is_some() { Side::Directory } else { Side::Wildcard };
        Self {
            glob,
            type_key,
            side,
            newest: None,
            oldest: None,
            live: 0,
            answer,
            watchers: Watchers::default(),
            watched: false,
            gone: VecDeque::new(),
            unseen: 0,
            owed: VecDeque::new(),
            needed: 0,
            passed: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    pub(crate) fn newest_gone(&self) -> Seq {
        self.gone.back().or(self.owed.back()).map_or(0, |gone| gone.seq)
    }

    /// The names that went after a moment, oldest first.
    pub(crate) fn gone_after(&self, cursor: Seq) -> impl Iterator<Item = &ResourceName> {
        let after = |gone: &VecDeque<Gone>| gone.partition_point(|gone| gone.seq <= cursor);
        let (owed, gone) = (after(&self.owed), after(&self.gone));
        self.owed.iter().skip(owed).chain(self.gone.iter().skip(gone)).map(|gone| &gone.name)
    }

    /// The names that went up to a moment, each with when, and are not said to be gone after it too.
    pub(crate) fn gone_before(&self, moment: Seq) -> BTreeMap<&ResourceName, Seq> {
        let mut before: BTreeMap<_, _> =
            self.gone.iter().take_while(|gone| gone.seq <= moment).map(|gone| (&gone.name, gone.seq)).collect();
        if !before.is_empty() {
            self.gone_after(moment).for_each(|name| _ = before.remove(name));
        }
        before
    }

    /// The last tombstone or error.
    pub(crate) fn newest_gone_or_failed(&self) -> Seq {
        self.newest_gone().max(self.failed.last_key_value().map_or(0, |(seq, _)| *seq))
    }
}

/// A tombstone.
#[derive(Clone)]
pub(crate) struct Gone {
    pub(crate) name: ResourceName,
    pub(crate) seq: Seq,
    pub(crate) at: Instant,
    /// When what is gone came; [`NEVER`](crate::moments::NEVER) if it was not here.
    pub(crate) born: Seq,
    /// Somebody asked for it, and nobody here has seen it.
    pub(crate) unseen: bool,
    /// It had no variants, or none at first.
    pub(crate) plain: bool,
}

/// How far a collection is answered. What is in it is there; that something is not, only a complete answer says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Answer {
    /// Nothing is known of it.
    None,
    /// Some of it came; more may be on its way (rule 151).
    Begun,
    /// It was complete, and its origin has not said since that it still is (rule 150).
    Stale,
    /// What is in it is all there is.
    Complete,
}
