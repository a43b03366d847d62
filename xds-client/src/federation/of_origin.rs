//! What the scopes of one origin have in common on the streams to its servers, which those of others may share.

use crate::federation::mixed::Mixed;

/// The same of each seat that one of them has there.
pub(crate) struct OfOrigin {
    /// What it is called.
    pub(crate) name: String,
    /// It has several servers.
    pub(crate) has_several: bool,
    pub(crate) mixed: Mixed,
}
