//! What a SotW session asks for: each request names all that is wanted, and may be an answer too.

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use xdstp_cache::Interest;

use super::{Named, Sotw};
use crate::client::selecting::Selecting;
use crate::client::session::absence::Silence;
use crate::wire::{DiscoveryRequest, walk};

/// What makes a version another one, that no server has given: something is held, and it is not what has this version.
const OTHER: &str = "?";

impl Sotw {
    /// The next request but for its node, and its names, encoded: every name that is wanted (rule 58), and `*` or nothing
    /// for everything, whatever was sent before (rule 43). They are most of it, and an ACK repeats them as they are.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(DiscoveryRequest, Bytes)> {
        // A first request without names would ask for everything (rule 61).
        if !self.common.opened && self.common.wanted.is_empty() {
            return None;
        }
        let answer = self.answer.take();
        // Any request with the newest nonce acknowledges that response: what is wanted waits for the verdict, or a
        // NACK would come too late (rules 22, 25).
        if answer.is_none() && (self.common.wanted.is_told() || self.common.unfinished.owes_answer()) {
            return None;
        }
        let surely_read = answer.is_some() || !self.common.opened;
        if self.full_state && !self.heard && self.stay(now) {
            return None;
        }
        // A name must be seen to leave before it comes again, or the server does not send it (rule 55).
        if surely_read {
            for crossed in std::mem::take(&mut self.left) {
                self.common.wanted.ask_again(crossed);
            }
        } else {
            self.left.extend(self.common.wanted.leaving().iter().cloned());
        }
        self.crossable = !surely_read;
        self.encode_names(now, surely_read);
        // An origin that is silent because everything is as it was (rule 87) looks like one that has not answered, which
        // is no answer to a relay (rule 150).
        let first = !self.common.opened;
        let must_answer = first && self.full_state && self.common.silence == Silence::IsNoAnswer;
        self.common.opened = true;
        if !self.names.is_empty() && self.named != Named::Read {
            self.named = if surely_read { Named::Read } else { Named::Sent };
        }
        // Nor is a version named that what waits for its verdict is about to replace.
        let awaits_verdict = surely_read && answer.is_none() && self.common.unfinished.any();
        let holds = self.common.unfinished.any() || self.common.held.iter().next().is_some();
        // Who has it all is sent nothing (rule 87), and not that a TTL was taken back meanwhile.
        let expires = first && self.common.held.next_expiry().is_some();
        // Nor that an error was (rule 118).
        let fails = first && self.common.failed_unsaid;
        let mixed = first && (self.dropped || self.full_state && self.common.unfinished.is_mixed());
        let version = match self.outgrown || must_answer || awaits_verdict || expires || fails || mixed {
            // Nothing was ever accepted as a whole, and of what was refused something is held (rule 29).
            false if first && self.version.is_empty() && holds => OTHER.to_owned(),
            false => self.version.clone(),
            // Who names no version on a new stream holds nothing, and is sent what there is of an answer (rule 151).
            true if first && !must_answer && holds => self.version.clone() + OTHER,
            true => String::new(),
        };
        let request = DiscoveryRequest {
            version_info: version,
            type_url: self.common.type_url(),
            response_nonce: self.nonce.clone(),
            error_detail: answer.flatten(),
            ..DiscoveryRequest::default()
        };
        Some((request, self.names.clone()))
    }

    /// Before the first response all there is of names that left and are wanted anew is yet to come, and need not be sent once
    /// more. Whether the origin knows of all else, too, so that a request would say nothing (rule 25).
    fn stay(&mut self, now: Instant) -> bool {
        let says_nothing = self.common.wanted.stay() && self.common.opened;
        if says_nothing {
            let asked = self.common.wanted.sent(&BTreeSet::new());
            self.await_answers(now, asked);
        }
        says_nothing
    }

    /// The names of the next request, which are those of the last if nothing else is wanted.
    fn encode_names(&mut self, now: Instant, surely_read: bool) {
        let repeats = self.common.opened && self.common.wanted.is_told() && !self.common.wanted.is_empty();
        if !repeats {
            let names = self.name_all(now);
            self.names = encode(&names, self.common.selecting.as_deref());
        }
        if surely_read {
            self.incomplete.values_mut().for_each(|is_next| *is_next = true);
        }
    }

    /// What the next request names, taken as told.
    fn name_all(&mut self, now: Instant) -> Vec<Interest> {
        // A response to this may lack it, though it is there.
        self.common.wanted.leaving().iter().for_each(|left| _ = self.incomplete.remove(left));
        let again: BTreeSet<_> =
            self.common.wanted.leaving().intersection(self.common.wanted.unsent()).cloned().collect();
        let mut names: Vec<_> = self.common.wanted.all();
        names.retain(|interest| !again.contains(interest));

        if self.common.legacy_wildcard && names.is_empty() && matches!(self.named, Named::Never | Named::Crossed) {
            // Only names end the wildcard that an empty list began, so an empty list cannot (rules 40, 57).
            names.push(Interest::Wildcard);
            self.common.wanted.leave_wildcard();
        } else {
            let asked = self.common.wanted.sent(&again);
            self.asked |= !asked.is_empty();
            self.await_answers(now, asked);
            let may_be_empty = self.common.legacy_wildcard && self.common.selecting.is_none();
            if may_be_empty && self.named == Named::Never && names == [Interest::Wildcard] {
                names.clear();
            }
        }
        names
    }

    fn await_answers(&mut self, now: Instant, asked: Vec<Interest>) {
        for interest in asked {
            if self.full_state {
                self.incomplete.entry(interest.clone()).or_default();
            }
            if !self.is_cached(&interest) {
                self.common.absences.asked(now, interest, &mut self.common.wanted);
            }
        }
    }
}

/// As `DiscoveryRequest.resource_names`, or `resource_locators` of who selects among variants.
fn encode(names: &[Interest], selecting: Option<&Selecting>) -> Bytes {
    let mut encoded = BytesMut::new();
    for name in names {
        match selecting {
            Some(selecting) => walk::put_bytes(&mut encoded, 7, &selecting.locator(name.as_str())),
            None => walk::put_bytes(&mut encoded, 3, name.as_str().as_bytes()),
        }
    }
    encoded.freeze()
}
