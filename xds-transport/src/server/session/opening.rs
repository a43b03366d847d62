//! What a session is opened with.

use std::time::Instant;

use xdstp_cache::TypeUrl;

use crate::server::features::Features;
use crate::server::session::room::Room;
use crate::types::TypeRule;

/// Beside the first request of its type.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) type_url: &'a TypeUrl,
    pub(crate) rule: &'a TypeRule,
    pub(crate) now: Instant,
    pub(crate) features: Features,
    pub(crate) room: Room,
}
