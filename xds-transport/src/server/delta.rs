//! One type of one delta stream.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::Instant;

use bytes::Bytes;
use xdstp_cache::{Interest, Pull, Removals, SubscriberId, TypeUrl, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::server::error::ProtocolError;
use crate::server::odd::{Odd, name_of};
use crate::server::outgoing::{BUDGET, Outgoing, Tells};
use crate::server::refreshes::{Refreshes, Told};
use crate::server::source::Source;
use crate::server::spelling::Spelling;
use crate::server::stream::{Reference, Room, Tally};
use crate::server::transmit::Transmit;
use crate::server::unacked::{Puts, Sent, Unacked};
use crate::server::weight::{held_weight, weight};
use crate::type_rules::{self, TypeRule};
use crate::wire::walk::text_at;
use crate::wire::{DeltaDiscoveryRequest, Status};

/// How many responses of one type may wait for their ACK.
const UNACKED: usize = 8;

pub(crate) struct Session {
    pub(crate) id: SubscriberId,
    pub(crate) tally: Tally,
    wildcard: bool,
    names: usize,
    /// How many it brought along, by their weight.
    brought: usize,
    spelling: Spelling,
    unacked: Unacked,
    responded: bool,
    owes_answer: bool,
    /// Names that are none: told as removed, because they cannot exist.
    malformed: Odd,
    /// A wildcard has no answer here, and whether the client is to be told that it asked for one.
    no_wildcard: bool,
    refuses: bool,
    /// The source is still looking for what there is to say.
    paused: bool,
    refreshes: Refreshes,
    /// What the client was sent, of a type whose absent names are aliases of nothing: only what it has is removed
    /// (rule 106).
    holds: HashSet<ResourceName>,
    absent_by_alias: bool,
}

impl Session {
    /// Opens the session with the first request of its type; what the client has is refreshed at `heartbeats`.
    pub(crate) fn open(
        type_url: &TypeUrl,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        rule: &TypeRule,
        heartbeats: Option<Instant>,
        room: Room,
        source: &mut impl Source,
    ) -> (Self, Result<(), ProtocolError>) {
        let id = source.open(type_url);
        let mut session = Self {
            id,
            tally: Tally { requests: 1, ..Tally::default() },
            wildcard: false,
            names: 0,
            brought: 0,
            spelling: Spelling::default(),
            unacked: Unacked::default(),
            responded: false,
            owes_answer: false,
            malformed: Odd::default(),
            no_wildcard: rule.delta_only && source.has_sotw_origin(),
            refuses: false,
            paused: false,
            refreshes: Refreshes::default(),
            holds: HashSet::new(),
            absent_by_alias: rule.absent_by_alias,
        };
        // Rule 40: no names at all on the first request is a wildcard, for the types that have it.
        if rule.legacy_wildcard && names.is_empty() {
            source.subscribe(id, &Interest::Wildcard);
            (session.wildcard, session.refuses) = (true, session.no_wildcard);
        }
        let mut held = HashMap::new();
        for (text, version) in request.initial_resource_versions.iter().filter_map(held_at) {
            let Ok(name) = ResourceName::parse(text) else { continue };
            // Rule 95; where it asks for the name, it is that spelling that counts.
            session.spelling.note(&name, text);
            session.brought += held_weight(&name, version);
            held.insert(name, Version::from(version));
        }
        let opened = room
            .check_brought(session.brought)
            .and_then(|()| session.change_subscription(request, names, room, source));
        if opened.is_err() {
            return (session, opened);
        }
        // What it asks for and is no name is told as gone for that.
        for name in session.malformed.iter().flat_map(ResourceName::parse) {
            held.remove(&name);
        }
        if !rule.skip_known_on_resume && !held.is_empty() {
            for asked in names.iter().flat_map(|text| ResourceName::parse(text)) {
                // It is sent whatever its version, and is held all the same: no silence takes it away (rule 150).
                held.entry(asked).and_modify(|version| *version = Version::from(""));
            }
        }
        if rule.absent_by_alias {
            session.holds.extend(held.keys().cloned());
        }
        if let Some(now) = heartbeats {
            for (name, version) in &held {
                session.resume_ttl(now, name, version, source);
            }
        }
        source.resume(id, held.into_iter().collect());
        (session, Ok(()))
    }

    /// What the client has is not sent again, but it is refreshed.
    fn resume_ttl(&mut self, now: Instant, name: &ResourceName, version: &Version, source: &impl Source) {
        source.look_up(self.id, name, &mut |resource| {
            if resource.version == *version && resource.value.ttl().is_some() {
                self.refreshes.resumed(now, name.clone(), version.clone());
            }
        });
    }

    /// A request that is an ACK and nothing else.
    pub(crate) fn accepted(&mut self, now: Instant, nonce: &str) {
        self.tally.requests += 1;
        self.acknowledge(now, nonce, None);
    }

    /// A later request of the same type.
    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        self.tally.requests += 1;
        self.acknowledge(now, &request.response_nonce, request.error_detail.as_ref());
        // Rule 19: a nonce never gates a change of the subscription.
        self.change_subscription(request, names, room, source)
    }

    /// Rule 22: an ACK or NACK of a response answers those before it too.
    fn acknowledge(&mut self, now: Instant, nonce: &str, error: Option<&Status>) {
        let answered = self.unacked.answered(nonce);
        let count = answered.len();
        if count == 0 {
            return;
        }
        for (at, Sent { nonce, resources, .. }) in answered.enumerate() {
            match error {
                Some(_) if at + 1 == count => self.refreshes.refused(now, nonce, resources),
                _ => self.refreshes.accepted(nonce),
            }
        }
        self.tally.answered(now, error);
    }

    /// Rule 47: subscribes first, then unsubscribes. Only a subscription could end the legacy wildcard, and over delta
    /// none does (rules 44, 45). To leave what was never subscribed is ignored (rule 50), and to leave is not answered
    /// (rule 51) unless something else covers the name (rules 52, 53): then the source has it to be pulled.
    fn change_subscription(
        &mut self,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let leaving: usize = request.resource_names_unsubscribe.iter().map(|text| weight(text)).sum();
        let mut again = HashSet::new();
        for text in names {
            let canonical = CanonicalText::new(text);
            let fits = text.len() <= room.name_bytes;
            // That is no collection.
            if let Some((_, new)) = fits.then(|| source.subscribe_known(self.id, &canonical)).flatten() {
                self.spelling.forget(&canonical);
                self.names += if new { weight(text) } else { 0 };
            } else {
                self.subscribe(text, room, &mut again, source);
            }
            // Some of what there is may go with the same request.
            room.check(self.names().saturating_sub(leaving))?;
        }
        for text in &request.resource_names_unsubscribe {
            let Ok(name) = name_of(text, room.name_bytes) else {
                self.malformed.remove(text);
                continue;
            };
            let interest = Interest::from(name);
            let held = source.unsubscribe(self.id, &interest);
            if held {
                self.names -= weight(interest.as_str()).min(self.names);
                self.unacked.leave(&interest);
            }
            match &interest {
                Interest::Wildcard => (self.wildcard, self.refuses) = (false, false),
                Interest::Name(name) => {
                    self.spelling.forget(name);
                    self.holds.remove(name);
                }
            }
        }
        room.check(self.names())
    }

    /// What is written may be no name. Of collections that one request repeats, once is enough: all of each is to be sent
    /// again (rule 48).
    fn subscribe(&mut self, text: &str, room: Room, again: &mut HashSet<Interest>, source: &mut impl Source) {
        let name = match name_of(text, room.name_bytes) {
            Ok(name) => name,
            Err(reason) => {
                if self.malformed.insert(text) && reason.is_too_long() {
                    source.too_long_name();
                }
                return;
            }
        };
        let interest = self.interest(name, text);
        if interest.is_collection() && again.contains(&interest) {
            return;
        }
        let new = source.subscribe(self.id, &interest);
        if !new && interest.is_collection() {
            again.insert(interest.clone());
        }
        self.names += if new { weight(interest.as_str()) } else { 0 };
        if new && interest.is_collection() {
            self.resume_crossing(&interest, source);
        }
    }

    fn resume_crossing(&mut self, collection: &Interest, source: &mut impl Source) {
        let crossing = self.unacked.crossing(collection);
        if crossing.is_empty() {
            return;
        }
        if self.absent_by_alias {
            self.holds.extend(crossing.iter().map(|(name, _)| name.clone()));
        }
        source.resume(self.id, crossing);
    }

    fn interest(&mut self, name: ResourceName, text: &str) -> Interest {
        let interest = Interest::from(name);
        match &interest {
            Interest::Wildcard => (self.wildcard, self.refuses) = (true, self.no_wildcard),
            Interest::Name(name) => self.spelling.note(name, text),
        }
        interest
    }

    /// How many names it brought along: most are compared before long, but an origin that is silent may keep all of them.
    pub(crate) fn brought(&self) -> usize {
        self.brought
    }

    pub(crate) fn names(&self) -> usize {
        self.names + self.malformed.weight() + self.spelling.weight()
    }

    /// Nobody is there to send an ACK.
    pub(crate) fn expect_no_answer(&mut self) {
        self.unacked.clear();
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        self.owes_answer || self.refuses || !self.malformed.is_empty() || source.has_work(self.id)
    }

    /// The same, as far as other types may have to wait for it.
    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        source.has_additions(self.id)
    }

    /// When something must be refreshed.
    pub(crate) fn next_refresh(&self) -> Option<Instant> {
        self.refreshes.next()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.unacked.len() < UNACKED
    }

    pub(crate) fn has_responded(&self) -> bool {
        self.responded
    }

    /// Whether the last look was not over when it paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// The next response, if one is due: newest state only, whatever happened in between (rules 38, 128). What was
    /// pulled is not pulled again until it changes or is asked for, ACK or NACK (rules 23, 37); what changed meanwhile
    /// is not held back by a NACK (rule 24).
    pub(crate) fn poll_transmit(
        &mut self,
        tells: Tells,
        rule: &TypeRule,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Result<Option<Transmit>, ProtocolError> {
        let removals = tells.removals();
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let (mut names, mut gone) = (Puts::new(), Vec::new());
        let crossed = self.unacked.is_crossed();
        let Self { spelling, holds, refreshes, .. } = self;
        let (now, with_ttl) = (outgoing.now, outgoing.features.ttl);
        let told = outgoing.told();
        let references = &mut *outgoing.references;
        let pulled = source.pull(self.id, removals, &mut |pull| {
            match pull {
                Pull::Put { name, resource, .. } => {
                    let ttl = resource.value.remaining_ttl(now).filter(|_| with_ttl);
                    transmit.push_delta(spelling.of(name), resource, ttl);
                    refreshes.put(told, name, &resource.version, ttl);
                    names.push(name.clone());
                    if rule.absent_by_alias {
                        holds.insert(name.clone());
                    }
                    Reference::collect(rule, &resource.value, references);
                }
                Pull::Removed { name, .. } => {
                    let own = spelling.of(name);
                    if rule.absent_by_alias && !holds.remove(name) && !name.is_glob() {
                        transmit.push_absent_alias(own);
                    } else {
                        transmit.push_removed(own);
                    }
                    refreshes.forget(name);
                    if crossed {
                        gone.push(name.clone());
                    }
                }
                _ => {}
            }
            if transmit.budget_used() < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.owes_answer |= pulled.empty;
        self.paused = pulled.paused;
        if !pulled.more {
            while transmit.budget_used() < BUDGET
                && let Some(name) = self.malformed.pop_first()
            {
                transmit.push_removed(&name);
                // What fills a response alone is not in it twice.
                if name.len() < BUDGET
                    && let Err(reason) = name_of(&name, outgoing.name_bytes)
                    && reason.is_too_long()
                {
                    transmit.push_error(9, &name, &reason.to_error(source));
                }
            }
            // Apart from what changed: a client that refuses that says nothing of what lives on.
            if transmit.is_empty() {
                self.refresh(&mut transmit, told, source);
            }
        }
        let mut empty = transmit.is_empty();
        if empty && !pulled.more && tells.errors() {
            if std::mem::take(&mut self.refuses) {
                transmit.push_error(9, "*", &type_rules::no_sotw(outgoing.type_url));
            }
            self.push_errors(&mut transmit, removals, rule, source);
            empty = transmit.is_empty();
        }
        // Rule 86: a wildcard or glob is answered even when there is nothing to say, once. Removals that wait are that
        // answer too.
        let is_complete = || !pulled.more && (removals == Removals::Include || !source.has_work(self.id));
        if empty && !(self.owes_answer && is_complete()) {
            return Ok(None);
        }
        self.owes_answer = false;
        self.responded = true;
        let nonce = outgoing.nonce();
        self.unacked.told_gone(gone);
        self.unacked.push(nonce, transmit.resources + transmit.refreshed, names);
        // Rule 36: for people, and what the origin said.
        if let Some(version) = source.system_version(self.id) {
            transmit.push_text(1, version.as_str());
        }
        transmit.push_text(4, outgoing.type_url.as_str());
        transmit.push_nonce(5, nonce);
        transmit.push_control_plane(7, outgoing.identifier);
        transmit.finish();
        self.tally.sent(&transmit);
        Ok(Some(transmit))
    }
}

impl Session {
    /// TP3: why something is not sent, and for clients that know no errors that it is removed (rule 117). In a response
    /// of their own, because no name may have both a resource and an error in one.
    fn push_errors(&mut self, transmit: &mut Transmit, removals: Removals, rule: &TypeRule, source: &mut impl Source) {
        let Self { spelling, holds, refreshes, .. } = self;
        source.pull_errors(self.id, removals, &mut |failed| {
            let own = spelling.of(failed.name);
            let held = !rule.absent_by_alias || holds.remove(failed.name) || failed.name.is_glob();
            match (failed.removed, held) {
                // An alias of nothing is a resource: the error could not stand beside it, and says no more.
                (true, false) => transmit.push_absent_alias(own),
                (removed, _) => {
                    transmit.push_error(9, own, failed.error);
                    if removed {
                        transmit.push_removed(own);
                    }
                    // What is refreshed is not let go.
                    if removed || !failed.error.is_transient() {
                        refreshes.forget(failed.name);
                    }
                }
            }
            if transmit.budget_used() < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }

    /// Rule 112: a heartbeat is the name and the version that the client has, with a TTL and without a body.
    fn refresh(&mut self, transmit: &mut Transmit, told: Told, source: &impl Source) {
        let Self { refreshes, spelling, .. } = self;
        while transmit.budget_used() < BUDGET
            && refreshes.fits(transmit)
            && let Some(due) = refreshes.pop(told.now)
        {
            source.look_up(self.id, &due.name, &mut |resource| {
                // What changed is sent by a pull.
                if resource.version != due.version {
                    return;
                }
                match refreshes.extend(&due, &resource.value, told) {
                    Some(ttl) if due.has_it => transmit.push_heartbeat(spelling.of(&due.name), &due.version, ttl),
                    Some(ttl) => transmit.push_delta(spelling.of(&due.name), resource, Some(ttl)),
                    // It lives for ever now: that takes the TTL back (rule 111).
                    None if resource.value.ttl().is_none() => {
                        transmit.push_delta(spelling.of(&due.name), resource, None);
                    }
                    None => {}
                }
            });
            // What is over is no response, and the next of these need not wait for one.
            if due.alone && !transmit.is_empty() {
                return;
            }
        }
    }
}

/// The versions of what the client holds.
pub(crate) fn versions(request: &DeltaDiscoveryRequest) -> impl Iterator<Item = &str> {
    request.initial_resource_versions.iter().filter_map(held_at).map(|(_, version)| version)
}

/// Name and version of an entry of `initial_resource_versions`.
fn held_at(entry: &Bytes) -> Option<(&str, &str)> {
    Some((text_at(entry, &[1])?, text_at(entry, &[2]).unwrap_or_default()))
}
