//! A type whose own stream ended while those of others went on.

use std::collections::BTreeSet;

use xdstp_cache::{Interest, ResourceError};

/// The stream of a type is over, and did not answer since.
#[derive(Debug, Default)]
pub(super) struct Over {
    /// Why, as who wants something of it is told.
    pub(super) error: Option<ResourceError>,
    /// Another may be opened.
    pub(super) is_asked: bool,
    /// What has that error, and nobody was told of.
    pub(super) untold: BTreeSet<Interest>,
    /// What has that error.
    pub(super) told: BTreeSet<Interest>,
}
