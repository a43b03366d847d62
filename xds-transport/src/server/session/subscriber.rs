//! What a session is to its source and to its client, whichever protocol it speaks.

use xdstp_cache::{SubscriberId, TypeUrl};

use crate::server::session::refreshes::Refreshes;
use crate::server::source::Source;
use crate::server::tally::Tally;
use crate::server::transmit::Transmit;

/// A subscriber of the source, and what its client was told.
pub(crate) struct Subscriber {
    pub(crate) id: SubscriberId,
    pub(crate) tally: Tally,
    pub(crate) refreshes: Refreshes,
    /// The source is still looking for what there is to say.
    pub(crate) paused: bool,
}

impl Subscriber {
    /// With the first request of its type.
    pub(crate) fn open(type_url: &TypeUrl, source: &mut impl Source) -> Self {
        let id = source.open(type_url);
        let tally = Tally { requests: 1, ..Tally::default() };
        Self { id, tally, refreshes: Refreshes::default(), paused: false }
    }

    /// A response has all there is to say: it ends with what every response ends with, and counts as sent.
    pub(crate) fn close(&mut self, transmit: &mut Transmit, version: Option<&str>, nonce: u64, identifier: &str) {
        transmit.close(version, nonce, identifier);
        self.tally.sent(transmit);
    }
}
