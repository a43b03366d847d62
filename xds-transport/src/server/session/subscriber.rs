//! What a session is to its source and to its client, whichever protocol it speaks.

use std::time::Instant;

use xdstp_cache::{SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::server::session::refreshes::Refreshes;
use crate::server::session::refused::Refused;
use crate::server::source::{Answer, Source};
use crate::server::tally::Tally;
use crate::server::transmit::Transmit;
use crate::wire::Status;

/// A subscriber of the source, and what its client was told.
pub(crate) struct Subscriber {
    pub(crate) id: SubscriberId,
    pub(crate) tally: Tally,
    pub(crate) refreshes: Refreshes,
    /// The newest response that the client accepted, and when.
    pub(crate) accepted: Option<(u64, Instant)>,
    pub(crate) refused: Refused,
    /// The source is still looking for what there is to say.
    pub(crate) paused: bool,
}

impl Subscriber {
    /// With the first request of its type.
    pub(crate) fn open(type_url: &TypeUrl, source: &mut impl Source) -> Self {
        let id = source.open(type_url);
        let tally = Tally { requests: 1, ..Tally::default() };
        let (refreshes, refused) = (Refreshes::default(), Refused::default());
        Self { id, tally, refreshes, accepted: None, refused, paused: false }
    }

    /// The client answered a response.
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64, error: Option<&Status>) {
        self.tally.answered(now, nonce, error);
        if error.is_none() {
            self.accepted = Some((nonce, now));
        }
    }

    /// The same, told to its source: of each response that it is an answer to.
    pub(crate) fn tell(
        &self,
        nonce: u64,
        error: Option<&Status>,
        resources: &[ResourceName],
        source: &mut impl Source,
    ) {
        let error = error.map(|error| error.message.as_str());
        source.answered(self.id, &Answer { nonce, error, resources });
    }

    /// A response has all there is to say: it ends with what every response ends with, and counts as sent.
    pub(crate) fn close(
        &mut self,
        transmit: &mut Transmit,
        protocol: Protocol,
        version: Option<&str>,
        nonce: u64,
        identifier: &str,
    ) {
        transmit.close(protocol, version, nonce, identifier);
        self.tally.sent(transmit);
    }
}
