//! How far what a client asks for was looked at since what it may ask for has changed.

use xdstp_cache::{Interest, SubscriberId};

/// What is yet to be looked at.
pub(crate) struct Judging {
    /// How often the client was judged when this began.
    pub(crate) by: u64,
    pub(crate) rest: Vec<(SubscriberId, Interest)>,
}

impl Judging {
    /// As of a client that asks for nothing yet.
    pub(crate) fn by(by: u64) -> Self {
        Self { by, rest: Vec::new() }
    }
}
