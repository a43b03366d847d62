//! What a report is to be of.

use std::collections::BTreeSet;
use std::time::Instant;

/// As a server asks for it.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) now: Instant,
    pub(super) wanted: &'a Wanted,
    /// Endpoints are told apart.
    pub(super) endpoints: bool,
    /// It is of clusters only of which there is anything.
    pub(super) only_news: bool,
    /// What measures so much is a message.
    pub(super) bytes: usize,
}

/// Which clusters a server asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    These(BTreeSet<String>),
}

impl Wanted {
    pub(super) fn has(&self, cluster: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(cluster),
        }
    }
}
