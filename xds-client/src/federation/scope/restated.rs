//! What changed in a way that it must not.

use xdstp_uri::ResourceName;

/// What changed though its version did not.
#[derive(Default)]
pub(crate) struct Restated {
    pub(crate) resources: u64,
    pub(crate) first: Option<ResourceName>,
}

impl Restated {
    pub(crate) fn add(&mut self, other: Self) {
        self.resources += other.resources;
        self.first = self.first.take().or(other.first);
    }
}
