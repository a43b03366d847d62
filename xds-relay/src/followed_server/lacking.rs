//! What may be lacking in what there is, where nothing is served that could stand in for it: all clients would lose it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::gathered::Gathered;
use super::judge::AllRefused;
use crate::keyed_origin::{Name, shown_name};
use crate::relay_core::RelayCore;

/// How often it is looked what clients use: it is work in proportion to all that they ask for.
const LOOKED: Duration = Duration::from_secs(5);

/// What may be lacking.
#[derive(Debug, Default)]
pub(super) struct Lacking {
    /// Names that something that is there refers to and of which nothing is known, each with one that refers to it.
    open: BTreeMap<Name, Name>,
    /// Names that clients ask for, or had before a restart, and that nothing brought.
    used: BTreeSet<Name>,
    is_refused: bool,
    is_empty: bool,
}

/// What clients use that is not there, as it was when that was looked at last.
#[derive(Debug, Default)]
pub(super) struct Used {
    names: BTreeSet<Name>,
    looked_at: Option<Instant>,
}

impl Used {
    fn look(&mut self, (core, position): (&RelayCore, usize), gathered: &Gathered, now: Instant) {
        if self.looked_at.is_none_or(|at| now.saturating_duration_since(at) >= LOOKED) {
            self.looked_at = Some(now);
            self.names = core.used_of(position, &|name| gathered.is_released(name) && !gathered.is_known(name));
        }
        self.names.retain(|name| !gathered.is_known(name));
    }
}

impl Lacking {
    pub(super) fn of(
        core: (&RelayCore, usize),
        gathered: &Gathered,
        refused: &AllRefused,
        used: &mut Used,
        now: Instant,
    ) -> Self {
        used.look(core, gathered, now);
        Self {
            open: gathered.open(),
            used: used.names.clone(),
            is_refused: refused.names.iter().any(|name| gathered.is_released(name)),
            is_empty: gathered.is_empty(),
        }
    }

    pub(super) fn is_any(&self) -> bool {
        self.is_refused || self.is_empty || !self.open.is_empty() || !self.used.is_empty()
    }

    /// How many names, and one of them in words.
    pub(super) fn in_words(&self) -> (usize, Option<String>) {
        let open = self.open.iter().map(|(name, by)| (name, format!("which {} refers to", shown_name(by))));
        let used =
            self.used.iter().map(|name| (name, "which clients ask for, or had before the relay started".to_owned()));
        let on = "nothing is released before that is known, or somebody has it go on";
        let first = open.chain(used).next().map(|(name, why)| format!("{}, {why}; {on}", shown_name(name)));
        let empty = self.is_empty.then(|| format!("any resource at all, of which it says that there is none; {on}"));
        (self.open.len() + self.used.len() + usize::from(self.is_empty), empty.or(first))
    }
}
