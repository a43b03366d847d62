//! How many names one type of a stream may have.

use crate::server::error::ProtocolError;

/// How many names one type of a stream may have, by their weight.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    pub(crate) names: usize,
    /// How many it may bring along.
    pub(crate) brought: usize,
    /// All types together.
    pub(crate) limit: usize,
    /// How long each may be, in bytes.
    pub(crate) name_bytes: usize,
    /// With how many sets of dynamic parameters, and with how many all types together.
    pub(crate) selectors: usize,
    pub(crate) selectors_limit: usize,
}

impl Room {
    pub(crate) fn check(self, names: usize) -> Result<(), ProtocolError> {
        self.compare(names, self.names)
    }

    pub(crate) fn check_brought(self, names: usize) -> Result<(), ProtocolError> {
        self.compare(names, self.brought)
    }

    fn compare(self, names: usize, most: usize) -> Result<(), ProtocolError> {
        if names <= most { Ok(()) } else { Err(ProtocolError::TooMany { what: "names", limit: self.limit }) }
    }
}
