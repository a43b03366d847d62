//! What a session did so far, for people and for counters.

use std::time::Instant;

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
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64, error: Option<&Status>) {
        match error {
            None => self.acks += 1,
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
    use super::{NackReason, Tally};

    #[test]
    fn what_sessions_did_is_added_up() {
        let session = Tally { nacks: 2, nacks_by_reason: [1; NackReason::ALL.len()], ..Tally::default() };
        let mut all = Tally::default();
        all.add(&session);
        assert_eq!(all, session);
        all.add(&session);
        assert_eq!((all.nacks, all.nacks_by_reason), (4, [2; NackReason::ALL.len()]));
    }
}
