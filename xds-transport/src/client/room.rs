//! How much one request may hold: what is more goes in several, or cannot be asked for.

use crate::client::selecting::Selecting;

/// What gRPC servers take unless they are told otherwise, in bytes (rule 132).
pub const DEFAULT_MAX_REQUEST_SIZE: usize = 4 << 20;

/// A tag and a length go with every text.
const FRAMING: usize = 6;

/// How many bytes of names, each with [some more](name_size), one request of at most so many bytes may hold. An eighth is
/// left for what else is in it: the node, a version and a nonce, and what is wrong with a response.
#[must_use]
pub fn room_for_names(max_request_size: usize) -> usize {
    max_request_size - max_request_size / 8
}

/// How many bytes a name takes in a request, at most.
#[must_use]
pub fn name_size(name: &str) -> usize {
    name.len() + FRAMING
}

/// How many names a request may have beside those of the first: what comes of them is handled as a whole, on this side and
/// on the other, and others wait meanwhile.
const MAX_NAMES: usize = 2048;

/// What is left in a request for names and versions.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    names: usize,
    empty: bool,
    /// What goes beside each name.
    beside: usize,
}

impl Room {
    pub(crate) fn of(max_request_size: usize) -> Self {
        Self { left: room_for_names(max_request_size), names: usize::MAX, empty: true, beside: 0 }
    }

    /// The same for names that go with parameters.
    pub(crate) fn with(self, selecting: Option<&Selecting>) -> Self {
        Self { beside: selecting.map_or(0, Selecting::size), ..self }
    }

    /// The same for a request that may as well be several.
    pub(crate) fn of_part(self) -> Self {
        Self { names: self.names.min(MAX_NAMES), ..self }
    }

    /// Whether there was room. For the first there always is, or it would never be sent.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left && self.names > 0 || self.empty;
        if fits {
            self.left = self.left.saturating_sub(bytes);
            self.names = self.names.saturating_sub(1);
            self.empty = false;
        }
        fits
    }

    pub(crate) fn take_name(&mut self, name: &str) -> bool {
        self.take(self.size_of(name))
    }

    /// How many bytes it takes, with what goes beside it.
    pub(crate) fn size_of(&self, name: &str) -> usize {
        name_size(name) + self.beside
    }
}

/// How many bytes an entry of `initial_resource_versions` takes, at most.
pub(crate) fn version_size(name: &str, version: &str) -> usize {
    name_size(name) + name_size(version) + FRAMING
}
