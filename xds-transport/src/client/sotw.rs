//! One type on one SotW stream, the client's side.

use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use super::absence::{Absences, Silence};
use super::command::Verdict;
use super::expiry;
use super::failure::ResourceFailure;
use super::heartbeat::Heartbeats;
use super::held::{Held, Received};
use super::intern::Intern;
use super::room;
use super::update::{Changed, Update, UpdateId};
use super::verdict::{Pending, Unfinished};
use super::wanted::Wanted;
use crate::response::{Rejected, Response};
use crate::type_rules::TypeRule;
use crate::wire::{DiscoveryRequest, ResourceError, Status, walk};

/// What makes a version another one, that no server has given: something is held, and it is not what has this version.
const OTHER: &str = "?";

#[derive(Debug)]
pub(super) struct Session {
    type_url: TypeUrl,
    legacy_wildcard: bool,
    keep_deleted: bool,
    silence: Silence,
    full_state: bool,
    wanted: Wanted,
    held: Held,
    /// Of a full state: what was seen, and is not held because it could not be used.
    refused: BTreeSet<ResourceName>,
    /// Of a full state: what this stream's origin cannot send for now. It says so once (rule 118), and is missing from
    /// what comes after.
    failing: BTreeSet<ResourceName>,
    /// What has an error that was told, and is not over.
    failed: BTreeSet<ResourceName>,
    unfinished: Unfinished,
    /// The last accepted version. It survives the stream (rule 15).
    version: String,
    /// That version does not say what is held: something else is wanted, or less is held.
    outgrown: bool,
    /// The newest nonce of this stream (rule 14).
    nonce: String,
    /// The first request of this stream was sent.
    opened: bool,
    named: Named,
    /// What left in requests that the server may have dropped: until it has surely read that, or sent the resource.
    left: BTreeSet<Interest>,
    /// The names of the last request, encoded.
    names: Bytes,
    /// Something was asked for since the last response.
    asked: bool,
    /// Collections that were asked for on this stream, and of which no response surely held all there is.
    incomplete: BTreeSet<Interest>,
    /// The last request that asked for something may not have been read when the next response is written.
    crossable: bool,
    /// The newest response waits to be answered: with an error, if there is one.
    answer: Option<Option<Status>>,
    absences: Absences,
}

/// Whether names were sent on this stream: an empty list asks for everything until the server has read some (rule 40).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Never,
    Sent,
    /// They were, and a response crossed them: a server drops what does not answer its newest response (rule 16).
    Crossed,
    /// They were, in a request that no response can cross.
    Read,
}

impl Session {
    pub(super) fn new(type_url: TypeUrl, rule: &TypeRule, keep_deleted: bool, silence: Silence) -> Self {
        Self {
            type_url,
            legacy_wildcard: rule.legacy_wildcard,
            keep_deleted,
            silence,
            full_state: rule.full_state_in_sotw,
            wanted: Wanted::default(),
            held: Held::default(),
            refused: BTreeSet::new(),
            failing: BTreeSet::new(),
            failed: BTreeSet::new(),
            unfinished: Unfinished::default(),
            version: String::new(),
            outgrown: false,
            nonce: String::new(),
            opened: false,
            named: Named::Never,
            left: BTreeSet::new(),
            names: Bytes::new(),
            asked: false,
            incomplete: BTreeSet::new(),
            crossable: false,
            answer: None,
            absences: Absences::new(silence),
        }
    }

    /// Whether a request with so much room for names may name this too.
    pub(super) fn has_room(&self, interest: &Interest, room: usize) -> bool {
        self.wanted.wish(interest).is_some() || self.wanted.size() + room::name_size(interest.as_str()) <= room
    }

    pub(super) fn is_opened(&self) -> bool {
        self.opened
    }

    pub(super) fn is_unused(&self) -> bool {
        self.wanted.is_empty()
    }

    pub(super) fn has_answer(&self) -> bool {
        self.answer.is_some()
    }

    pub(super) fn has_unfinished(&self, id: UpdateId) -> bool {
        self.unfinished.contains(id)
    }

    pub(super) fn has_any_unfinished(&self) -> bool {
        self.unfinished.any()
    }

    pub(super) fn disconnected(&mut self) {
        self.opened = false;
        self.named = Named::Never;
        self.left.clear();
        self.asked = false;
        self.incomplete.clear();
        self.nonce.clear();
        self.answer = None;
        self.failing.clear();
        self.absences.clear();
        self.wanted.forget_stream();
        self.unfinished.forget_stream();
    }

    pub(super) fn subscribe(&mut self, interest: Interest) {
        if interest == Interest::Wildcard && self.wanted.wish(&interest).is_none() {
            // It is of what was wanted so far: whoever asks for everything at a version may be sent nothing (rule 87).
            self.outgrown = true;
            self.unfinished.outgrow();
        }
        self.wanted.subscribe(interest);
    }

    pub(super) fn unsubscribe(&mut self, interest: &Interest) {
        if !self.wanted.unsubscribe(interest) {
            return;
        }
        self.unfinished.forget_unwanted(&self.wanted);
        self.unfinished.outgrow();
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                if self.wanted.covers(name) {
                    // Where the wildcard ends, only the origin knows: it may not cover this.
                    self.outgrown = true;
                } else {
                    self.held.remove(name);
                }
            }
            _ => {
                self.held.retain(|name| self.wanted.covers(name));
                // Whoever asks for everything at a version it has may be sent nothing (rule 87).
                self.outgrown = true;
            }
        }
        self.refused.retain(|name| self.wanted.covers(name));
        self.failing.retain(|name| self.wanted.covers(name));
        self.failed.retain(|name| self.wanted.keeps_error(name));
        if self.wanted.is_empty() {
            self.version.clear();
        }
    }

    pub(super) fn finish(&mut self, id: UpdateId, verdict: Verdict) {
        if let (true, Verdict::Reject { reasons }) = (self.full_state, &verdict) {
            let names = reasons.iter().filter_map(|rejected| ResourceName::parse(&rejected.name).ok());
            self.refused.extend(names.filter(|name| self.wanted.covers(name)));
        }
        let answer = self.unfinished.finish(id, verdict, &self.wanted, &mut self.held);
        self.held.resume_expiries();
        let Some(answer) = answer else { return };
        // A NACK goes with the version before (rule 26).
        if let Some(version) = answer.version {
            self.version = version;
            self.outgrown = answer.outgrown;
        }
        // An older nonce is stale: the server waits for the newest only (rule 16).
        if answer.nonce.is_some_and(|nonce| nonce == self.nonce) {
            self.answer = Some(answer.error);
        }
    }

    /// `None` when nothing is wanted: the response is acknowledged unseen.
    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        id: UpdateId,
        response: Response,
        intern: Option<&dyn Intern>,
    ) -> Option<Update> {
        // What fails is told anew after the first response of a stream, and a later full state repeats what is as it was.
        let recovers = !self.full_state || self.nonce.is_empty();
        self.nonce.clone_from(&response.nonce);
        if self.named == Named::Sent {
            self.named = Named::Crossed;
        }
        if self.wanted.is_empty() {
            self.answer = Some(None);
            return None;
        }
        if self.full_state {
            // All there is of what is wanted came, however much of it the server saw leave.
            self.left.retain(|interest| self.wanted.wish(interest).is_none());
        }
        let mut update = Update { unsaid: false, ..Update::new(id, self.type_url.clone()) };
        update.rejected = response.rejected;
        // What is missing may be what could not be read.
        let complete = self.full_state && update.rejected.is_empty();
        let refused: HashSet<_> = update.rejected.iter().map(|rejected| rejected.name.clone()).collect();
        for name in refused.iter().filter_map(|name| ResourceName::parse(name).ok()) {
            self.wanted.answer(&Interest::Name(name)); // rule 75
        }
        if self.wanted.answer(&Interest::Wildcard) {
            update.answered.push(Interest::Wildcard);
        }
        // A full state repeats what did not change; other types do so on purpose (rules 66, 67).
        let resent = !self.full_state && !self.asked && response.version == self.version && !self.outgrown;
        self.asked = false;

        let requests = self.wanted.requests();
        let mut present = HashSet::with_capacity(response.resources.len());
        let mut received = Vec::with_capacity(response.resources.len());
        let mut heartbeats = Heartbeats::default();
        for resource in response.resources {
            let (mut name, ttl) = (resource.name, resource.ttl);
            if !self.wanted.covers(&name) || refused.contains(name.as_str()) {
                continue;
            }
            let interest = Interest::Name(name.clone());
            let awaited = self.wanted.awaits(&name);
            self.wanted.answer(&interest);
            self.left.remove(&interest);
            self.failing.remove(&name);
            let failed = self.failed.remove(&name);
            update.answered.extend(self.wanted.answer_parent(&name));
            present.insert(name.clone());
            let Some(frame) = resource.frame else {
                match ttl {
                    Some(ttl) => heartbeats.push(name, None, ttl),
                    None => update.rejected.push(Rejected::new(name.as_str(), "a resource without content")),
                }
                continue;
            };
            let version = resource.version.filter(|version| !version.as_str().is_empty());
            let mut resource = frame.until(expiry(now, ttl)).into_resource(version);
            if let Some(intern) = intern {
                intern.intern(&mut name, &mut resource);
            }
            let news = Received::new(&resource, requests);
            let before = self.held.get(&name).filter(|before| before.same(&news.entry));
            let touched = before.is_some();
            // That it does not fail any more, or lives for ever now, is news.
            let mut over = failed || ttl.is_none() && touched && self.held.expires(&name);
            if !self.failed.is_empty() && (recovers || !touched) {
                over |= name.glob_parent().is_some_and(|glob| self.failed.remove(&glob));
            }
            received.push((name.clone(), news));
            if !touched || resent || over {
                update.changed.push(Changed { name, resource, touched });
            } else if awaited {
                update.refreshed.extend(ttl.map(|ttl| (name.clone(), ttl)));
                update.repeated.push(Changed { name, resource, touched: false });
            } else {
                update.refreshed.extend(ttl.map(|ttl| (name, ttl)));
            }
        }

        heartbeats.apply(now, &mut self.unfinished, &mut self.held, &mut update);
        self.fail(response.errors, &present, &mut update);
        let mut removes = !update.removed.is_empty();
        if complete {
            // Of other types absence says nothing: what nobody wants is dropped by unsubscribing (rule 68).
            // Only what was seen before: the response may be older than the request for the rest (rule 76).
            let held = self.held.iter().map(|(name, _)| name);
            let seen = held.chain(self.unfinished.names()).chain(&self.refused);
            let missing = seen.filter(|name| !present.contains(*name) && !self.failing.contains(*name));
            update.removed.extend(missing.cloned());
            removes = update.removed.iter().any(|name| !self.refused.contains(name));
            self.refused.clear();
            self.complete(&mut update);
        }
        update.removed.sort_unstable();
        update.removed.dedup();
        self.held.delete(self.keep_deleted, &mut update.removed, &mut update.kept);
        self.unfinished.forget(&update.removed);
        update.version.clone_from(&response.version);
        self.absences.heard(now, &mut self.wanted);
        let (nonce, rejected) = (Some(response.nonce), update.rejected.clone());
        // It may be of what was wanted before.
        let outgrown = self.full_state && (self.crossable || !self.wanted.is_told());
        let version = response.version;
        self.unfinished.insert(id, Pending { nonce, version, outgrown, removes, received, rejected });
        Some(update)
    }

    /// A full state that was written after a collection was asked for holds all of it, but for what fails for a time.
    fn complete(&mut self, update: &mut Update) {
        if self.incomplete.is_empty() {
            return;
        }
        let fails = |collection: &Interest| {
            let mut passing = update.errors.iter().filter(|failure| !failure.is_data_error());
            passing.any(|failure| collection.as_str() == failure.name.as_str())
        };
        let (later, complete): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut self.incomplete).into_iter().partition(fails);
        self.incomplete = later;
        for collection in complete {
            if self.wanted.wish(&collection).is_none() {
                continue;
            }
            if self.wanted.answer(&collection) {
                update.answered.push(collection.clone());
            }
            if self.crossable {
                self.incomplete.insert(collection);
            } else {
                update.complete.push(collection);
            }
        }
    }

    /// TP3: an error is an answer, so it stops the timer of its name (rule 118).
    fn fail(&mut self, errors: Vec<ResourceError>, present: &HashSet<ResourceName>, update: &mut Update) {
        for failure in errors.into_iter().filter_map(ResourceFailure::read) {
            let interest = Interest::from(failure.name.clone());
            let news = failure.is_data_error() && self.wanted.answer(&interest);
            self.wanted.stop_timer(&interest);
            if failure.name.is_glob() {
                if self.wanted.wish(&interest).is_none() {
                    continue;
                }
                if news {
                    update.answered.push(interest);
                }
            } else if !self.wanted.covers(&failure.name)
                || failure.crossed(&self.wanted)
                || present.contains(&failure.name)
            {
                continue;
            } else if failure.is_data_error() {
                self.failing.remove(&failure.name);
                update.removed.push(failure.name.clone());
            } else if self.full_state {
                self.failing.insert(failure.name.clone());
            }
            self.failed.insert(failure.name.clone());
            update.errors.push(failure);
        }
    }

    pub(super) fn received(&mut self, at: Instant) {
        self.absences.received(at);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.absences.next(), self.held.next_expiry()].into_iter().flatten().min()
    }

    /// Resources whose time ran out, and names and globs that were not answered in time: told once, and a late answer
    /// counts (rule 138). Of types whose responses are no full state an empty glob has no other sign (rule 102).
    pub(super) fn handle_timeout(&mut self, now: Instant, id: UpdateId) -> Option<Update> {
        let mut update = Update::new(id, self.type_url.clone());
        let Self { held, unfinished, .. } = self;
        while let Some(name) = held.pop_expired(now, |name| unfinished.awaits_verdict(name)) {
            update.removed.push(name);
            // A server that is told this version may think that we have it (rule 87).
            self.outgrown = true;
        }
        let some_due = self.absences.next().is_some_and(|due| due <= now);
        let waiting: HashSet<_> = self.unfinished.names().filter(|_| some_due).cloned().collect();
        while let Some(interest) = self.absences.pop(now, &self.wanted) {
            if self.is_cached(&interest)
                || matches!(&interest, Interest::Name(name) if waiting.contains(name))
                || !self.wanted.answer(&interest)
            {
                continue;
            }
            match interest {
                Interest::Name(name) if !name.is_glob() => update.missing.push(name),
                collection => update.answered.push(collection),
            }
        }
        let news = !update.removed.is_empty() || !update.missing.is_empty() || !update.answered.is_empty();
        news.then_some(update)
    }

    /// The next request but for its node, and its names, encoded: every name that is wanted (rule 58), and `*` or nothing
    /// for everything, whatever was sent before (rule 43). They are most of it, and an ACK repeats them as they are.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(DiscoveryRequest, Bytes)> {
        // A first request without names would ask for everything (rule 61).
        if !self.opened && self.wanted.is_empty() {
            return None;
        }
        let answer = self.answer.take();
        // Any request with the newest nonce acknowledges that response: what is wanted waits for the verdict, or a
        // NACK would come too late (rules 22, 25).
        if answer.is_none() && (self.wanted.is_told() || self.unfinished.owes_answer()) {
            return None;
        }
        let surely_read = answer.is_some() || !self.opened;
        // A name must be seen to leave before it comes again, or the server does not send it (rule 55).
        if surely_read {
            for crossed in std::mem::take(&mut self.left) {
                self.wanted.ask_again(crossed);
            }
        } else {
            self.left.extend(self.wanted.leaving().iter().cloned());
        }
        self.crossable = !surely_read;
        let repeats = self.opened && self.wanted.is_told() && !self.wanted.is_empty();
        if !repeats {
            self.names = encode(&self.name_all(now));
        }
        // An origin that is silent because everything is as it was (rule 87) looks like one that has not answered, which
        // is no answer to a relay (rule 150).
        let first = !self.opened;
        let must_answer = first && self.full_state && self.silence == Silence::IsNoAnswer;
        self.opened = true;
        if !self.names.is_empty() && self.named != Named::Read {
            self.named = if surely_read { Named::Read } else { Named::Sent };
        }
        // Nor is a version named that what waits for its verdict is about to replace.
        let awaits_verdict = surely_read && answer.is_none() && self.unfinished.any();
        let holds = self.unfinished.any() || self.held.iter().next().is_some();
        // Who has it all is sent nothing (rule 87), and not that a TTL was taken back meanwhile.
        let expires = first && self.held.next_expiry().is_some();
        let mixed = first && self.full_state && self.unfinished.is_mixed();
        let version = match self.outgrown || must_answer || awaits_verdict || expires || mixed {
            // Nothing was ever accepted as a whole, and of what was refused something is held (rule 29).
            false if first && self.version.is_empty() && holds => OTHER.to_owned(),
            false => self.version.clone(),
            // Who names no version on a new stream holds nothing, and is sent what there is of an answer (rule 151).
            true if first && !must_answer && holds => self.version.clone() + OTHER,
            true => String::new(),
        };
        let request = DiscoveryRequest {
            version_info: version,
            type_url: self.type_url.as_str().into(),
            response_nonce: self.nonce.clone(),
            error_detail: answer.flatten(),
            ..DiscoveryRequest::default()
        };
        Some((request, self.names.clone()))
    }

    /// What the next request names, taken as told.
    fn name_all(&mut self, now: Instant) -> Vec<Interest> {
        let again: BTreeSet<_> = self.wanted.leaving().intersection(self.wanted.unsent()).cloned().collect();
        let mut names: Vec<_> = self.wanted.all();
        names.retain(|interest| !again.contains(interest));

        if self.legacy_wildcard && names.is_empty() && matches!(self.named, Named::Never | Named::Crossed) {
            // Only names end the wildcard that an empty list began, so an empty list cannot (rules 40, 57).
            names.push(Interest::Wildcard);
            self.wanted.leave_wildcard();
        } else {
            let asked = self.wanted.sent(&again);
            self.asked |= !asked.is_empty();
            self.await_answers(now, asked);
            if self.legacy_wildcard && self.named == Named::Never && names == [Interest::Wildcard] {
                names.clear();
            }
        }
        names
    }

    fn await_answers(&mut self, now: Instant, asked: Vec<Interest>) {
        for interest in asked {
            if self.full_state && interest.is_collection() {
                self.incomplete.insert(interest.clone());
            }
            if !self.is_cached(&interest) {
                self.absences.asked(now, interest, &mut self.wanted);
            }
        }
    }

    /// Silence says nothing of what came before.
    fn is_cached(&self, interest: &Interest) -> bool {
        match interest {
            Interest::Name(name) if !name.is_glob() => self.held.get(name).is_some(),
            collection => self.wanted.wish(collection).is_some_and(|wish| wish.known),
        }
    }
}

/// As `DiscoveryRequest.resource_names`.
fn encode(names: &[Interest]) -> Bytes {
    let mut encoded = BytesMut::new();
    for name in names {
        walk::put_bytes(&mut encoded, 3, name.as_str().as_bytes());
    }
    encoded.freeze()
}
