//! What a session did so far, for people and for counters.

use std::time::Instant;

use crate::server::latencies::Latencies;
use crate::server::nack_reason::NackReason;
use crate::server::transmit::Transmit;
use crate::wire::Status;

/// What one session did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Requests handled.
    pub requests: u64,
    /// Responses sent.
    pub responses: u64,
    /// Resources sent.
    pub resources: u64,
    /// Removals sent.
    pub removed: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Responses the client accepted.
    pub acks: u64,
    /// Responses the client rejected.
    pub nacks: u64,
    /// How many of these for which reason, in the order of [`NackReason::ALL`].
    pub nacks_by_reason: [u64; NackReason::ALL.len()],
    /// How long it took from when the [source heard](crate::server::Source::heard_at) of what is new until a response with
    /// resources began to be sent, where the source says when it heard. It has waited for a client that reads slowly, too.
    pub sent_after: Latencies,
    /// How long it took until a response was accepted, from when it began to be sent.
    pub accepted_after: Latencies,
    /// The last rejection.
    pub last_nack: Option<Nack>,
}

/// A response that a client rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nack {
    /// The nonce of the response.
    pub nonce: u64,
    /// What the client said.
    pub message: String,
    /// When it said so.
    pub at: Instant,
}

impl Tally {
    /// Adds what another session did.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.responses += other.responses;
        self.resources += other.resources;
        self.removed += other.removed;
        self.bytes += other.bytes;
        self.acks += other.acks;
        self.nacks += other.nacks;
        self.nacks_by_reason.iter_mut().zip(other.nacks_by_reason).for_each(|(nacks, other)| *nacks += other);
        self.sent_after.add(&other.sent_after);
        self.accepted_after.add(&other.accepted_after);
        if other.last_nack.as_ref().map(|nack| nack.at) > self.last_nack.as_ref().map(|nack| nack.at) {
            self.last_nack.clone_from(&other.last_nack);
        }
    }

    pub(crate) fn sent(&mut self, transmit: &Transmit) {
        self.responses += 1;
        self.bytes += transmit.remaining() as u64;
        self.resources += u64::from(transmit.resources);
        self.removed += u64::from(transmit.removed);
    }

    /// Rule 21: a NACK is an error detail, whatever its code.
    pub(crate) fn answered(&mut self, now: Instant, (nonce, sent): (u64, Instant), error: Option<&Status>) {
        match error {
            None => {
                self.acks += 1;
                self.accepted_after.record(now.saturating_duration_since(sent));
            }
            Some(error) => {
                self.nacks += 1;
                let reasons = self.nacks_by_reason.iter_mut().zip(NackReason::ALL);
                let is_reason = NackReason::of_code(error.code);
                reasons.filter(|(_, reason)| *reason == is_reason).for_each(|(nacks, _)| *nacks += 1);
                self.last_nack = Some(Nack { nonce, message: error.message.chars().take(1024).collect(), at: now });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prost::Message as _;
    use xdstp_cache::{Cache, Options};

    use crate::server::{Settings, Stream};
    use crate::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Status};
    use crate::{Frame, Protocol};

    const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn answer(protocol: Protocol, nonce: &str, error_detail: Option<Status>) -> Vec<u8> {
        let (type_url, response_nonce) = (CLUSTERS.to_owned(), nonce.to_owned());
        match protocol {
            Protocol::Delta => {
                DeltaDiscoveryRequest { type_url, response_nonce, error_detail, ..Default::default() }.encode_to_vec()
            }
            Protocol::Sotw => {
                DiscoveryRequest { type_url, response_nonce, error_detail, ..Default::default() }.encode_to_vec()
            }
        }
    }

    #[test]
    fn what_is_accepted_took_as_long_as_since_it_was_sent() {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = std::time::Instant::now();
        for protocol in [Protocol::Delta, Protocol::Sotw] {
            let mut cache = Cache::new(Options::default());
            let mut stream = Stream::new(protocol, Settings::default());
            stream.handle_message(start, answer(protocol, "", None).into(), &mut cache).unwrap();
            // Each is sent a second after the one before, and answered so long later: the second is refused.
            for (version, answered, refused) in [("1", 300, false), ("2", 300, true), ("3", 700, false)] {
                let at = start + Duration::from_secs(version.parse().unwrap());
                let resource = Frame::of_message(&CLUSTERS.into(), b"\x0a\x01a").into_resource(Some(version.into()));
                let mut edit = cache.edit(at);
                edit.put(&CLUSTERS.into(), &"a".parse().unwrap(), resource);
                let _ = edit.finish();
                while stream.poll_transmit(at, &mut cache).unwrap().is_some() {}
                let error = refused.then(Status::default);
                // The nonces are numbers, too.
                let answer = answer(protocol, version, error);
                stream.handle_message(at + Duration::from_millis(answered), answer.into(), &mut cache).unwrap();
            }
            let session = stream.sessions().next().unwrap();
            let took = &session.tally.accepted_after;
            assert_eq!((took.count(), took.sum()), (2, Duration::from_secs(1)), "{protocol:?}");
            assert_eq!(session.tally.sent_after.count(), 0, "a cache does not say when it heard");
        }
    }
}
