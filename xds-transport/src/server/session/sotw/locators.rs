//! What one SotW request asks for with dynamic parameters, beside that of the one before it.

use std::collections::HashSet;

use bytes::Bytes;
use xdstp_cache::{Interest, Selector};

use crate::Dialect;
use crate::server::session::counts::Counts;

/// The locators of the last request.
#[derive(Default)]
pub(super) struct Locators {
    pub(super) dialect: Dialect,
    pub(super) counts: Counts,
    pub(super) wanted: HashSet<(Selector, Interest)>,
    /// Rule 40: where any were ever asked for, an empty list is nothing.
    pub(super) ever: bool,
}

impl Locators {
    /// Of a session whose first request has these.
    pub(super) fn new(dialect: Dialect, first: &[Bytes]) -> Self {
        let counts = Counts::first(dialect, !first.is_empty());
        Self { dialect, counts, wanted: HashSet::new(), ever: !first.is_empty() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    pub(super) fn were_ever(&self) -> bool {
        self.ever
    }
}
