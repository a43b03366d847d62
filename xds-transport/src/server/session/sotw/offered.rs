//! What the last response offered, and what became of the last offers.

use xdstp_uri::ResourceName;

/// The responses of one session, as far as one answer is for all that is in one.
#[derive(Default)]
pub(crate) struct Offered {
    /// The version of the last response.
    version: String,
    /// What is in it, where it is not a full state: that has all there is.
    names: Vec<ResourceName>,
    accepted: Option<String>,
    /// The nonce of the last full state, if that was refused.
    refused: Option<u64>,
}

impl Offered {
    /// A response is to be written that is no full state.
    pub(crate) fn begin(&mut self) {
        self.names.clear();
    }

    /// It has this in it.
    pub(crate) fn put(&mut self, name: &ResourceName) {
        self.names.push(name.clone());
    }

    /// What it has in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.names.iter()
    }

    /// A response was sent.
    pub(crate) fn send(&mut self, version: String) {
        self.version = version;
        self.names.shrink_to_fit();
    }

    /// The last response was accepted. What is in it, unless it is a full state.
    pub(crate) fn accept(&mut self) -> Vec<ResourceName> {
        self.refused = None;
        self.accepted = Some(std::mem::take(&mut self.version));
        std::mem::take(&mut self.names)
    }

    /// It was refused, and is a full state or not.
    pub(crate) fn refuse(&mut self, nonce: u64, full_state: bool) -> Vec<ResourceName> {
        self.refused = full_state.then_some(nonce);
        std::mem::take(&mut self.names)
    }

    pub(crate) fn has(&self, name: &ResourceName, full_state: bool) -> bool {
        full_state || self.names.contains(name)
    }

    pub(crate) fn accepted(&self) -> Option<&str> {
        self.accepted.as_deref()
    }

    pub(crate) fn refused(&self) -> Option<u64> {
        self.refused
    }
}
