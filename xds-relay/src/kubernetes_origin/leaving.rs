//! Objects that were deleted a moment ago.
//!
//! Kubernetes has no transactions: who deletes much, deletes one object after the other. So those of a moment go together, that a
//! removal of much is known for what it is; and one that is created again in that moment has never been away.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the first of them waits for others.
pub(super) const MOMENT: Duration = Duration::from_secs(2);

/// Those that go next.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// What their keys begin with.
    prefixes: BTreeSet<String>,
    due: Option<Instant>,
}

impl Leaving {
    pub(super) fn add(&mut self, prefix: String, now: Instant) {
        self.prefixes.insert(prefix);
        self.due.get_or_insert(now + MOMENT);
    }

    /// It is there again.
    pub(super) fn stays(&mut self, prefix: &str) {
        self.prefixes.remove(prefix);
        if self.prefixes.is_empty() {
            self.due = None;
        }
    }

    /// Nobody heard for a while whether they are there again.
    pub(super) fn wait(&mut self, now: Instant) {
        self.due = self.due.map(|due| due.max(now + MOMENT));
    }

    /// When they go.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Those that go now.
    pub(super) fn take(&mut self) -> BTreeSet<String> {
        self.due = None;
        std::mem::take(&mut self.prefixes)
    }
}
