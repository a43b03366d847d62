//! What a response is written with, whichever protocol it is of.

use std::time::Instant;

use xdstp_cache::{Cause, Removals, ResourceError, TypeUrl};

use crate::server::features::Features;
use crate::server::session::reference::Reference;
use crate::server::session::refreshes::Told;
use crate::types::TypeRule;

/// What a session needs of its stream to write a response.
pub(crate) struct Outgoing<'a> {
    pub(crate) type_url: &'a TypeUrl,
    pub(crate) rule: &'a TypeRule,
    pub(crate) identifier: &'a str,
    pub(crate) now: Instant,
    pub(crate) features: Features,
    /// How long a name may be, in bytes.
    pub(crate) name_bytes: usize,
    pub(crate) nonces: &'a mut u64,
    /// Names that must be sent again because what refers to them was sent (rule 124).
    pub(crate) references: &'a mut Vec<Reference>,
}

impl Outgoing<'_> {
    /// The response to be, to whoever keeps books of what it tells.
    pub(crate) fn told(&self) -> Told {
        Told::new(self.now, *self.nonces + 1)
    }

    /// Whether an error is told. Of what an origin was not asked for it said nothing: a relay would have its clients take that for its
    /// word, and where all that lacks is gone, an error cannot be told apart from that.
    pub(crate) fn tells(&self, error: &ResourceError, full_state: bool) -> bool {
        error.cause != Cause::Unasked || !(full_state || self.features.for_others)
    }

    /// Rule 13: never empty, never twice on a stream.
    pub(crate) fn nonce(&mut self) -> u64 {
        *self.nonces += 1;
        *self.nonces
    }
}

/// What a response may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// What takes nothing from the client, such errors too or not.
    Additions { errors: bool },
    /// Everything.
    All,
}

impl Tells {
    pub(crate) fn removals(self) -> Removals {
        match self {
            Self::Additions { .. } => Removals::Defer,
            Self::All => Removals::Include,
        }
    }

    pub(crate) fn errors(self) -> bool {
        self != Self::Additions { errors: false }
    }
}
