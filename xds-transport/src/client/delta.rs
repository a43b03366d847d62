//! One type on one delta stream, the client's side.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Instant;

use xdstp_cache::{Interest, TypeUrl, Version};
use xdstp_uri::ResourceName;

use super::absence::{Absences, Silence};
use super::command::Verdict;
use super::failure::ResourceFailure;
use super::heartbeat::Heartbeats;
use super::held::{Entry, Held, Received};
use super::intern::Intern;
use super::opening::Opening;
use super::room::Room;
use super::update::{Changed, Update, UpdateId};
use super::verdict::{Pending, Unfinished};
use super::wanted::Wanted;
use super::wildcards::Wildcards;
use super::{ProtocolError, expiry};
use crate::frame::Frame;
use crate::response::Response;
use crate::type_rules::TypeRule;
use crate::wire::{DeltaDiscoveryRequest, ResourceError, Status};

/// Responses that wait for room to be acknowledged. More than that only happens with a server that
/// writes without ever reading.
const MAX_ACKS: usize = 4096;

#[derive(Debug)]
pub(super) struct Session {
    type_url: TypeUrl,
    legacy_wildcard: bool,
    keep_deleted: bool,
    wanted: Wanted,
    held: Held,
    /// What has an error that was told, and is not over.
    failed: BTreeSet<ResourceName>,
    unfinished: Unfinished,
    absences: Absences,
    silence: Silence,
    /// What others hold, and the first request of a stream asks the fate of.
    undecided: BTreeSet<ResourceName>,
    /// Members of collections that are held and the first request had no room for: asked for by their names, which has
    /// the origin say what became of them. Only a first request may tell versions (rule 85).
    unasked: BTreeSet<ResourceName>,
    /// Those of them that the origin was asked for on this stream.
    asked: BTreeSet<ResourceName>,
    /// The first request of this stream was sent.
    opened: bool,
    wildcards: Wildcards,
    acks: VecDeque<Ack>,
}

#[derive(Debug)]
struct Ack {
    nonce: String,
    error: Option<Status>,
}

impl Session {
    pub(super) fn new(type_url: TypeUrl, rule: &TypeRule, keep_deleted: bool, silence: Silence) -> Self {
        Self {
            type_url,
            legacy_wildcard: rule.legacy_wildcard,
            keep_deleted,
            wanted: Wanted::default(),
            held: Held::default(),
            failed: BTreeSet::new(),
            unfinished: Unfinished::default(),
            absences: Absences::new(silence),
            silence,
            undecided: BTreeSet::new(),
            unasked: BTreeSet::new(),
            asked: BTreeSet::new(),
            opened: false,
            wildcards: Wildcards::default(),
            acks: VecDeque::new(),
        }
    }

    pub(super) fn is_opened(&self) -> bool {
        self.opened
    }

    pub(super) fn is_unused(&self) -> bool {
        self.wanted.is_empty()
    }

    pub(super) fn has_answer(&self) -> bool {
        !self.acks.is_empty()
    }

    pub(super) fn has_unfinished(&self, id: UpdateId) -> bool {
        self.unfinished.contains(id)
    }

    pub(super) fn has_any_unfinished(&self) -> bool {
        self.unfinished.any()
    }

    pub(super) fn disconnected(&mut self) {
        self.opened = false;
        self.wildcards = Wildcards::default();
        self.acks.clear();
        self.absences.clear();
        self.undecided.clear();
        self.unasked.clear();
        self.asked.clear();
        self.wanted.forget_stream();
        self.unfinished.forget_stream();
    }

    pub(super) fn subscribe(&mut self, interest: Interest) {
        self.wanted.subscribe(interest);
    }

    /// Others hold these.
    pub(super) fn undecided(&mut self, names: Vec<ResourceName>) {
        if !self.opened {
            self.undecided.extend(names);
        }
    }

    pub(super) fn unsubscribe(&mut self, interest: &Interest) {
        if !self.wanted.unsubscribe(interest) {
            return;
        }
        self.failed.retain(|name| self.wanted.keeps_error(name));
        self.unfinished.forget_unwanted(&self.wanted);
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                self.asked.remove(name);
                let stood_for = self.wanted.forget_alias(name);
                for name in stood_for.iter().chain([name]) {
                    if !self.wanted.covers(name) {
                        self.held.remove(name);
                        self.unasked.remove(name);
                        self.wanted.leave(self.asked.take(name));
                    }
                }
            }
            _ => {
                self.held.retain(|name| self.wanted.covers(name));
                self.unasked.retain(|name| self.wanted.covers(name));
                let (asked, left): (_, BTreeSet<_>) =
                    std::mem::take(&mut self.asked).into_iter().partition(|name| self.wanted.covers(name));
                self.asked = asked;
                self.wanted.leave(left);
            }
        }
    }

    pub(super) fn finish(&mut self, id: UpdateId, verdict: Verdict) {
        let answer = self.unfinished.finish(id, verdict, &self.wanted, &mut self.held);
        self.held.resume_expiries();
        if let Some((nonce, error)) = answer.and_then(|answer| Some((answer.nonce?, answer.error))) {
            self.acks.push_back(Ack { nonce, error });
        }
    }

    /// `None` when nothing is wanted: the response is acknowledged unseen.
    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        id: UpdateId,
        response: Response,
        intern: Option<&dyn Intern>,
    ) -> Result<Option<Update>, ProtocolError> {
        if self.acks.len() >= MAX_ACKS {
            return Err(ProtocolError::Unread);
        }
        let empty = response.resources.is_empty()
            && response.removed.is_empty()
            && response.errors.is_empty()
            && response.rejected.is_empty();
        let ends_wildcard = empty && self.wildcards.end();
        if self.wanted.is_empty() {
            self.acks.push_back(Ack { nonce: response.nonce, error: None });
            return Ok(None);
        }
        let mut update = Update { unsaid: false, ..Update::new(id, self.type_url.clone()) };
        update.version = response.version;
        update.rejected = response.rejected;
        let refused: HashSet<_> = update.rejected.iter().map(|rejected| rejected.name.clone()).collect();

        if self.wanted.answer(&Interest::Wildcard) {
            update.answered.push(Interest::Wildcard);
        }
        if ends_wildcard && self.wanted.wish(&Interest::Wildcard).is_some() {
            // Rule 86: there is nothing, or nothing but what the origin was told that we have.
            update.complete.push(Interest::Wildcard);
        }
        for name in refused.iter().filter_map(|name| ResourceName::parse(name).ok()) {
            self.wanted.answer(&Interest::Name(name)); // rule 75
        }
        let requests = self.wanted.requests();
        let mut received = Vec::with_capacity(response.resources.len());
        let mut heartbeats = Heartbeats::default();
        for resource in response.resources {
            let (mut name, ttl) = (resource.name, resource.ttl);
            if refused.contains(name.as_str()) {
                continue;
            }
            if let Some(frame) = &resource.frame {
                self.claim(&name, frame, &mut update);
            }
            self.wanted.answer_name(&name);
            if !self.wanted.hears_errors(&name) {
                if self.wanted.wish(&Interest::Wildcard).is_none() {
                    self.drop_unwanted([name], &mut update);
                    continue;
                }
                self.wildcards.answered();
            }
            update.answered.extend(self.wanted.answer_parent(&name));
            let Some(frame) = resource.frame else {
                match ttl {
                    Some(ttl) => heartbeats.push(name, Some(resource.version.unwrap_or_else(|| "".into())), ttl),
                    // An alias that stands for nothing (rule 106).
                    None => self.gone(name, &mut update),
                }
                continue;
            };
            if !self.failed.is_empty() {
                self.failed.remove(&name);
                name.glob_parent().map(|glob| self.failed.remove(&glob));
            }
            let version = resource.version.filter(|version| !version.as_str().is_empty());
            let mut resource = frame.until(expiry(now, ttl)).into_resource(version);
            if let Some(intern) = intern {
                intern.intern(&mut name, &mut resource);
            }
            let news = Received::new(&resource, requests);
            let before = self.held.get(&name).filter(|before| before.same(&news.entry));
            let before = before.map(|before| before.seen(requests));
            received.push((name.clone(), news));
            if let Some(seen) = before {
                self.held.set_seen(&name, requests);
                if self.wanted.asked_since(&name, seen) {
                    update.refreshed.extend(ttl.map(|ttl| (name.clone(), ttl)));
                    update.repeated.push(Changed { name, resource, touched: false });
                    continue;
                }
            }
            update.changed.push(Changed { name, resource, touched: before.is_some() });
        }

        heartbeats.apply(now, &mut self.unfinished, &mut self.held, &mut update);
        if !update.removed.is_empty() {
            // What lost an alias to another resource may be wanted by one that it brought itself.
            let came: HashSet<_> = received.iter().map(|(name, _)| name).collect();
            update.removed.retain(|name| !came.contains(name));
        }
        for name in response.removed {
            if name.is_glob() {
                self.empty_glob(name, &mut update);
            } else if !refused.contains(name.as_str()) && self.wanted.covers(&name) {
                self.wanted.answer_name(&name);
                self.failed.remove(&name);
                self.gone(name, &mut update);
            }
        }
        self.fail(response.errors, &received, &mut update);
        self.held.delete(self.keep_deleted, &mut update.removed, &mut update.kept);
        self.unfinished.forget(&update.removed);
        let rejected = update.rejected.clone();
        let (nonce, version) = (Some(response.nonce), String::new());
        self.unfinished.insert(id, Pending { nonce, version, outgrown: false, removes: false, received, rejected });
        Ok(Some(update))
    }

    /// Rule 105: a resource is wanted by its aliases too, and an alias is no resource.
    fn claim(&mut self, name: &ResourceName, frame: &Frame, update: &mut Update) {
        let robbed = self.wanted.claim(name, frame.aliases());
        self.drop_unwanted(robbed, update);
        for alias in self.wanted.aliases(name) {
            if self.held.get(alias).is_some() {
                self.held.remove(alias);
                update.removed.push(alias.clone());
            }
        }
    }

    fn gone(&mut self, name: ResourceName, update: &mut Update) {
        let stood_for = self.wanted.gone(&name);
        update.removed.push(name);
        self.drop_unwanted(stood_for, update);
    }

    /// What is not known by any wanted name any more.
    fn drop_unwanted(&mut self, names: impl IntoIterator<Item = ResourceName>, update: &mut Update) {
        for name in names {
            if self.wanted.covers(&name) {
                continue;
            }
            self.unfinished.forget_unwanted(&self.wanted);
            if self.held.get(&name).is_some() {
                self.held.remove(&name);
                update.removed.push(name);
            }
        }
    }

    /// TP3. For clients that ignore errors, what has one is named among the removed too (rule 117): the error counts.
    fn fail(&mut self, errors: Vec<ResourceError>, received: &[(ResourceName, Received)], update: &mut Update) {
        if errors.is_empty() {
            return;
        }
        let mut said: HashSet<_> = received.iter().map(|(name, _)| name.clone()).collect();
        said.extend(update.removed.iter().cloned());
        for failure in errors.into_iter().filter_map(ResourceFailure::read) {
            self.wanted.stop_timer(&Interest::Name(failure.name.clone()));
            if failure.name.is_glob() {
                if self.wanted.wish(&failure.name.clone().into()).is_none() {
                    continue;
                }
                if failure.is_data_error() {
                    self.empty_glob(failure.name.clone(), update);
                }
            } else if !self.wanted.covers(&failure.name) || failure.crossed(&self.wanted) {
                continue;
            } else if !failure.is_data_error() {
                update.removed.retain(|name| *name != failure.name);
            } else if said.insert(failure.name.clone()) {
                update.removed.push(failure.name.clone());
            }
            self.failed.insert(failure.name.clone());
            update.errors.push(failure);
        }
    }

    /// The glob's own URL among the removed says that it has no members (rule 99).
    fn empty_glob(&mut self, glob: ResourceName, update: &mut Update) {
        let interest = Interest::Name(glob);
        if self.wanted.wish(&interest).is_none() {
            return;
        }
        self.wanted.answer(&interest);
        let Interest::Name(glob) = &interest else { return };
        self.failed.remove(glob);
        // What the same response sends, as new or as it was, is there whatever it says of the glob.
        let sent = update.changed.iter().chain(&update.repeated).map(|changed| &changed.name);
        let sent: HashSet<_> = sent.chain(update.refreshed.iter().map(|(name, _)| name)).collect();
        let gone = self
            .held
            .iter()
            .map(|(name, _)| name)
            .filter(|name| name.answers(glob) && !sent.contains(name) && !self.wanted.covers_otherwise(name));
        let mut gone: Vec<_> = gone.cloned().collect();
        gone.sort_unstable();
        update.removed.extend(gone);
        update.complete.push(interest.clone());
        if !update.answered.contains(&interest) {
            update.answered.push(interest);
        }
    }

    pub(super) fn received(&mut self, at: Instant) {
        self.absences.received(at);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.absences.next(), self.held.next_expiry()].into_iter().flatten().min()
    }

    /// Resources whose time ran out, and names that were not answered in time: there are servers that say nothing of
    /// names they do not have.
    pub(super) fn handle_timeout(&mut self, now: Instant, id: UpdateId) -> Option<Update> {
        let mut update = Update::new(id, self.type_url.clone());
        let Self { held, unfinished, .. } = self;
        let over = || held.pop_expired(now, |name| unfinished.awaits_verdict(name));
        update.removed.extend(std::iter::from_fn(over));
        while let Some(interest) = self.absences.pop(now, &self.wanted) {
            if let Interest::Name(name) = interest
                && !self.unfinished.awaits_verdict(&name)
                && self.wanted.answer(&Interest::Name(name.clone()))
            {
                update.missing.push(name);
            }
        }
        (!update.removed.is_empty() || !update.missing.is_empty()).then_some(update)
    }

    /// The next request but for its node. Only answers carry a nonce (rule 20).
    pub(super) fn poll_transmit(&mut self, now: Instant, mut room: Room) -> Option<DeltaDiscoveryRequest> {
        let mut request = DeltaDiscoveryRequest { type_url: self.type_url.as_str().into(), ..Default::default() };
        if let Some(Ack { nonce, error }) = self.acks.pop_front() {
            (request.response_nonce, request.error_detail) = (nonce, error);
            return Some(request);
        }
        if !self.opened {
            // A first request without names would ask for everything (rule 61).
            if self.wanted.is_empty() {
                return None;
            }
            self.opened = true;
            let only_wildcard = self.wanted.only_wildcard();
            let versions = self.initial_versions();
            self.undecided.clear();
            let Opening { asked, versions, left_out } = Opening::new(&mut self.wanted, versions, room);
            // The wildcard alone is an empty request, beside names it is one of them (rule 60).
            if !(self.legacy_wildcard && only_wildcard && left_out.is_empty()) {
                request.resource_names_subscribe = names(&asked);
            }
            self.wildcards.asked(&asked);
            (request.initial_resource_versions, self.unasked) = (versions, left_out);
            self.await_answers(now, asked);
            return Some(request);
        }
        if self.wanted.is_told() && self.unasked.is_empty() {
            return None;
        }
        room = room.of_part();
        let left = self.wanted.give_up(&mut room);
        self.wildcards.left(&left);
        request.resource_names_unsubscribe = names(&left);
        while self.unasked.first().is_some_and(|member| room.take_name(member.as_str())) {
            let member = self.unasked.pop_first();
            request.resource_names_subscribe.extend(member.iter().map(|member| member.as_str().to_owned()));
            self.asked.extend(member);
        }
        let asked = self.wanted.ask(|interest| room.take_name(interest.as_str()));
        self.wildcards.asked(&asked);
        request.resource_names_subscribe.extend(names(&asked));
        self.await_answers(now, asked);
        Some(request)
    }

    /// A relay waits for what delta has to say of every name; collections are answered, if need be empty.
    fn await_answers(&mut self, now: Instant, asked: Vec<Interest>) {
        if self.silence == Silence::IsNoAnswer {
            return;
        }
        for interest in asked {
            if let Interest::Name(name) = &interest
                && !name.is_glob()
                && self.held.get(name).is_none()
            {
                self.absences.asked(now, interest, &mut self.wanted);
            }
        }
    }

    /// All that is held, glob and wildcard members included (rules 83, 101), as entries of a map field: what is gone by
    /// now is told as removed (rule 84). What was removed is not held, and only subscribed (rule 73).
    ///
    /// What came with a response that was refused, or has no verdict yet, goes without its version (rule 30), and so
    /// does what a name or glob that was never answered asks for, because only that answers it: these are sent again. Not
    /// to name them at all would be never to hear that they are gone. And so does what lives for a time, or has an
    /// error, itself or its glob: that the origin has taken either back meanwhile, only the resource says (rules 111, 118).
    fn initial_versions(&self) -> BTreeMap<ResourceName, Version> {
        let awaits_names = self.wanted.awaits_names();
        let within = |name: &ResourceName| name.glob_parent().is_some_and(|glob| self.failed.contains(&glob));
        let fails = |name: &ResourceName| !self.failed.is_empty() && (self.failed.contains(name) || within(name));
        let version = |name: &ResourceName, entry: &'_ Entry| {
            // A name that was not answered may be one of its aliases.
            let awaited = self.wanted.awaits(name) || awaits_names && entry.has_aliases;
            let told_again = self.held.expires(name) || fails(name);
            if entry.accepted && !awaited && !told_again { entry.version.clone() } else { "".into() }
        };
        let held = self.held.iter().map(|(name, entry)| (name.clone(), version(name, entry)));
        let mut versions: BTreeMap<_, _> = held.collect();
        versions.extend(self.unfinished.names().map(|name| (name.clone(), Version::from(""))));
        for name in self.undecided.iter().chain(&self.failed) {
            // What is asked for itself is answered anyway.
            if self.wanted.wish(&Interest::Name(name.clone())).is_none() && self.wanted.covers(name) {
                versions.entry(name.clone()).or_insert_with(|| Version::from(""));
            }
        }
        versions
    }
}

fn names<'a>(interests: impl IntoIterator<Item = &'a Interest>) -> Vec<String> {
    interests.into_iter().map(|interest| interest.as_str().to_owned()).collect()
}
