//! What the requests of a delta session ask for, hold and answer.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use xdstp_cache::{Interest, TypeUrl, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use super::Delta;
use crate::server::error::ProtocolError;
use crate::server::session::counts::Counts;
use crate::server::session::delta::held;
use crate::server::session::delta::unacked::Sent;
use crate::server::session::odd::{kept, name_of};
use crate::server::session::opening::Opening;
use crate::server::session::room::Room;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::weight::{held_weight, weight};
use crate::types::TypeRule;
use crate::wire::{DeltaDiscoveryRequest, Status};

impl Delta {
    /// Opens the session with the first request of its type.
    pub(crate) fn open(
        opening: Opening<'_>,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        source: &mut impl Source,
    ) -> (Self, Result<(), ProtocolError>) {
        let Opening { type_url, rule, now, features, room } = opening;
        let mut session = Self::new(Subscriber::open(type_url, source), rule, source);
        let names = session.fields_that_count(features.dialect, request, names);
        // Rule 40: no names at all on the first request is a wildcard, for the types that have it.
        if rule.legacy_wildcard && names.is_empty() && request.resource_locators_subscribe.is_empty() {
            source.subscribe(session.subscriber.id, &Interest::Wildcard);
            (session.wildcard, session.refuses) = (true, session.no_wildcard);
            session.comes_to_collection = true;
        }
        let held = session.held_by(request);
        let opened = room
            .check_brought(session.brought)
            .and_then(|()| session.change_subscription(type_url, request, names, room, source));
        let opened = opened.and_then(|()| {
            let held = session.resume_located(held, room, source)?;
            session.resume(held, names, rule, features.ttl.then_some(now), source);
            Ok(())
        });
        (session, opened)
    }

    /// What the client has from a stream before.
    fn held_by(&mut self, request: &DeltaDiscoveryRequest) -> HashMap<ResourceName, Version> {
        let mut held = HashMap::new();
        for (text, version) in held::entries(request) {
            let Ok(name) = ResourceName::parse(text) else { continue };
            // Rule 95; where it asks for the name, it is that spelling that counts.
            self.spelling.note(&name, text);
            self.brought += held_weight(&name, version);
            held.insert(name, Version::from(version));
        }
        held
    }

    fn resume(
        &mut self,
        mut held: HashMap<ResourceName, Version>,
        names: &[&str],
        rule: &TypeRule,
        heartbeats: Option<Instant>,
        source: &mut impl Source,
    ) {
        // What it asks for and is no name is told as gone for that.
        for name in self.malformed.iter().flat_map(ResourceName::parse) {
            held.remove(&name);
        }
        if source.selects(self.subscriber.id) {
            held.values_mut().for_each(|version| *version = version.wanted_again());
        } else if !rule.skip_known_on_resume && !held.is_empty() {
            for asked in names.iter().flat_map(|text| ResourceName::parse(text)) {
                // It is sent whatever its version, and is held all the same: no silence takes it away (rule 150).
                held.entry(asked).and_modify(|version| *version = version.wanted_again());
            }
        }
        if rule.absent_by_alias {
            self.holds.extend(held.keys().cloned());
        }
        if let Some(now) = heartbeats {
            for (name, version) in &held {
                self.resume_ttl(now, name, version, source);
            }
        }
        source.resume(self.subscriber.id, held.into_iter().collect());
    }

    /// What the client has is not sent again, but it is refreshed.
    fn resume_ttl(&mut self, now: Instant, name: &ResourceName, version: &Version, source: &impl Source) {
        source.look_up(self.subscriber.id, name, &mut |resource| {
            if resource.version == *version && resource.value.ttl().is_some() {
                self.subscriber.refreshes.resumed(now, name.clone(), version.clone());
            }
        });
    }

    /// A request that is an ACK and nothing else.
    pub(crate) fn accepted(&mut self, now: Instant, nonce: &str, source: &mut impl Source) {
        self.subscriber.tally.requests += 1;
        self.acknowledge(now, nonce, None, source);
    }

    /// A later request of the same type.
    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        type_url: &TypeUrl,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        self.subscriber.tally.requests += 1;
        let left = self.acknowledge(now, &request.response_nonce, request.error_detail.as_ref(), source);
        self.unacked.reads(left);
        // Rule 19: a nonce never gates a change of the subscription.
        self.change_subscription(type_url, request, names, room, source)?;
        self.unacked.read();
        self.resume_located(HashMap::new(), room, source).map(drop)
    }

    /// Rule 22: an ACK or NACK of a response answers those before it too. What the client had left of them.
    fn acknowledge(
        &mut self,
        now: Instant,
        nonce: &str,
        error: Option<&Status>,
        source: &mut impl Source,
    ) -> Vec<ResourceName> {
        let Self { unacked, subscriber, .. } = self;
        let count = unacked.answered(nonce);
        let mut left_before = Vec::new();
        if count == 0 {
            return left_before;
        }
        let mut last = (0, now);
        for behind in (0..count).rev() {
            let Some(Sent { nonce, at, resources, puts, left }) = unacked.take() else { break };
            last = (nonce, at);
            if !left.is_empty() {
                left_before.extend(left);
            }
            let error = error.filter(|_| behind == 0);
            subscriber.tell(nonce, error, &puts, source);
            if error.is_some() {
                subscriber.refreshes.refused(now, nonce, resources);
                subscriber.located.iter_mut().for_each(|located| located.was_refused(now, nonce, resources));
                subscriber.refused.refuse(nonce, puts.into_names());
            } else {
                subscriber.refreshes.accepted(nonce);
                subscriber.located.iter_mut().for_each(|located| located.accepted(nonce));
                subscriber.refused.accept(&puts);
            }
        }
        subscriber.answered(now, last, error, source);
        left_before
    }

    /// Rule 47: subscribes first, then unsubscribes. Only a subscription could end the legacy wildcard, and over delta
    /// none does (rules 44, 45). To leave what was never subscribed is ignored (rule 50), and to leave is not answered
    /// (rule 51) unless something else covers the name (rules 52, 53): then the source has it to be pulled.
    fn change_subscription(
        &mut self,
        type_url: &TypeUrl,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let (names, left) = match self.counts {
            Counts::Locators => (&[][..], &[][..]),
            Counts::Both | Counts::Names => (names, &*request.resource_names_unsubscribe),
        };
        let leaving: usize = left.iter().map(|text| weight(text)).sum();
        let mut again = HashSet::new();
        for text in names {
            let canonical = CanonicalText::new(text);
            let fits = text.len() <= room.name_bytes;
            // That is no collection.
            if let Some((_, new)) = fits.then(|| source.subscribe_known(self.subscriber.id, &canonical)).flatten() {
                self.spelling.forget(&canonical);
                self.names += if new { weight(text) } else { 0 };
            } else {
                self.subscribe(text, room, &mut again, source);
            }
            // Some of what there is may go with the same request.
            room.check(self.names().saturating_sub(leaving))?;
        }
        for text in left {
            let Ok(name) = name_of(text, room.name_bytes) else {
                self.malformed.remove(&kept(text, room.name_bytes));
                continue;
            };
            self.leave(&Interest::from(name), source);
        }
        if self.counts != Counts::Names {
            self.change_locators(type_url, request, room, source)?;
        }
        if !(left.is_empty() && request.resource_locators_unsubscribe.is_empty()) {
            self.unacked.leave_unless(|name| self.subscriber.asks_for(name, source));
        }
        self.tell_kept(source);
        room.check(self.names())
    }

    pub(super) fn leave(&mut self, interest: &Interest, source: &mut impl Source) {
        if source.unsubscribe(self.subscriber.id, interest) {
            self.names -= weight(interest.as_str()).min(self.names);
            self.unacked.leave(interest);
        }
        match interest {
            Interest::Wildcard => (self.wildcard, self.refuses) = (false, false),
            Interest::Name(name) => {
                self.spelling.forget(name);
                self.holds.remove(name);
            }
        }
    }

    /// What is written may be no name. Of collections that one request repeats, once is enough: all of each is to be sent
    /// again (rule 48).
    pub(super) fn subscribe(
        &mut self,
        text: &str,
        room: Room,
        again: &mut HashSet<Interest>,
        source: &mut impl Source,
    ) {
        let name = match name_of(text, room.name_bytes) {
            Ok(name) => name,
            Err(reason) => {
                if self.malformed.insert(&kept(text, room.name_bytes)) && reason.is_too_long() {
                    source.too_long_name();
                }
                return;
            }
        };
        let interest = self.interest(name, text);
        if interest.is_collection() && again.contains(&interest) {
            return;
        }
        let new = source.subscribe(self.subscriber.id, &interest);
        self.comes_to_collection |= interest.is_collection();
        if !new && interest.is_collection() {
            again.insert(interest.clone());
        }
        self.names += if new { weight(interest.as_str()) } else { 0 };
        if new && interest.is_collection() {
            self.resume_crossing(&interest, source);
        }
    }

    fn resume_crossing(&mut self, collection: &Interest, source: &mut impl Source) {
        let crossing = self.unacked.crossing(collection, |name| source.covers(self.subscriber.id, name));
        if crossing.is_empty() {
            return;
        }
        if self.absent_by_alias {
            self.holds.extend(crossing.iter().map(|(name, _)| name.clone()));
        }
        source.resume(self.subscriber.id, crossing);
    }

    fn interest(&mut self, name: ResourceName, text: &str) -> Interest {
        let interest = Interest::from(name);
        match &interest {
            Interest::Wildcard => (self.wildcard, self.refuses) = (true, self.no_wildcard),
            Interest::Name(name) => self.spelling.note(name, text),
        }
        interest
    }
}
