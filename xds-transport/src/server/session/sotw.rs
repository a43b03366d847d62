//! One type of one state-of-the-world stream.

mod changes;
mod errors;
mod full_state;
mod listed;
mod located;
mod locators;
mod offered;
mod shares;
mod version;
mod wanted;

use std::time::Instant;

use xdstp_cache::{Removals, Resource, TypeUrl};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::frame::Frame;
use crate::server::error::ProtocolError;
use crate::server::nonce;
use crate::server::session::counts::Counts;
use crate::server::session::opening::Opening;
use crate::server::session::outgoing::{Outgoing, Tells};
use crate::server::session::reference::Reference;
use crate::server::session::refreshes::Refreshes;
use crate::server::session::refused::Answered;
use crate::server::session::room::Room;
use crate::server::session::sotw::locators::Locators;
use crate::server::session::sotw::offered::Offered;
use crate::server::session::sotw::version::RunningHash;
use crate::server::session::sotw::wanted::Wanted;
use crate::server::session::spelling::Spelling;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::transmit::Transmit;
use crate::types::TypeRule;
use crate::wire::{DiscoveryRequest, Status};

pub(crate) use wanted::Names;

/// What is SotW's own of a session.
pub(crate) struct Sotw {
    pub(crate) subscriber: Subscriber,
    wanted: Wanted,
    /// For how many names the source counts what is kept beside these.
    beside: usize,
    /// The version the client came with: what it, or who it asks for, holds must not be deleted before it is known to be
    /// gone. Empty once it left anything: that it does not hold any more.
    resumed: Option<String>,
    last_nonce: Option<u64>,
    awaits_ack: bool,
    /// Something the client must be told; what, is read from the source when it is written.
    changed: bool,
    /// What was pulled could not be sent yet.
    withheld: bool,
    /// What was found of a full state before that paused.
    found: Option<Found>,
    /// How many resources came with the last response.
    resources: u32,
    /// Of how many resources the last full state was.
    sent: Option<u32>,
    /// Something may be asked for that no full state has answered yet.
    asks: bool,
    /// The version of a type that is told by changes, where no origin gives one.
    running: RunningHash,
    offered: Offered,
    full_state: bool,
    locators: Locators,
}

/// What a look that pauses has found.
struct Found {
    /// What it looks for.
    removals: Removals,
    /// Something left.
    left: bool,
    references: Vec<Reference>,
}

impl Default for Found {
    fn default() -> Self {
        Self { removals: Removals::Include, left: false, references: Vec::new() }
    }
}

impl Sotw {
    /// Opens the session with the first request of its type.
    pub(crate) fn open(
        opening: Opening<'_>,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        source: &mut impl Source,
    ) -> (Self, Result<(), ProtocolError>) {
        let Opening { type_url, rule, features, room, .. } = opening;
        let mut session = Self {
            subscriber: Subscriber::open(type_url, source),
            wanted: Wanted::default(),
            beside: 0,
            resumed: Some(request.version_info.clone()).filter(|version| features.for_others || !version.is_empty()),
            last_nonce: None,
            awaits_ack: false,
            changed: false,
            withheld: false,
            found: None,
            resources: 0,
            sent: None,
            asks: true,
            running: RunningHash::default(),
            offered: Offered::default(),
            full_state: rule.full_state_in_sotw,
            locators: Locators::new(features.dialect, &request.resource_locators),
        };
        let opened = session.change_subscription(type_url, request, names, room, rule, source);
        source.resume(session.subscriber.id, Vec::new());
        (session, opened)
    }

    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        of: (&TypeUrl, &TypeRule),
        request: &DiscoveryRequest,
        names: &Names<'_>,
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let (type_url, rule) = of;
        self.subscriber.tally.requests += 1;
        // Rules 16, 18: a request that does not answer the last response is stale, and not answered.
        if let Some(last) = self.last_nonce
            && !nonce::is(&request.response_nonce, last)
        {
            // Rule 17: one that crossed that response says what the client wanted meanwhile. The ACK will repeat
            // its names, but not tell that one of them left and came back in between (rule 55).
            if !self.awaits_ack {
                return Ok(());
            }
            return self.change_subscription(type_url, request, names, room, rule, source);
        }
        if let Some(nonce) = self.last_nonce.filter(|_| self.awaits_ack) {
            self.answered(now, nonce, request.error_detail.as_ref(), source);
        }
        self.change_subscription(type_url, request, names, room, rule, source)
    }

    /// The last response is answered.
    fn answered(&mut self, now: Instant, nonce: u64, error: Option<&Status>, source: &mut impl Source) {
        self.awaits_ack = false;
        let Self { subscriber, offered, .. } = self;
        // It has been the client's turn since that was sent.
        let sent = subscriber.turn_since.unwrap_or(now);
        subscriber.answered(now, (nonce, sent), error, source);
        if error.is_none() {
            subscriber.refreshes.accepted(nonce);
            subscriber.located.iter_mut().for_each(|located| located.accepted(nonce));
            let accepted = offered.accept();
            subscriber.tell(nonce, None, &accepted, source);
            subscriber.refused.accept(&accepted);
            return;
        }
        let refused = offered.refuse(nonce, self.full_state);
        subscriber.tell(nonce, error, &refused, source);
        subscriber.refused.refuse(nonce, refused);
        // A full state is refreshed as long as the client may have anything of it.
        if !(self.full_state && self.resources > 1) {
            subscriber.refreshes.refused(now, nonce, self.resources);
            subscriber.located.iter_mut().for_each(|located| located.was_refused(now, nonce, self.resources));
        }
    }

    fn change_subscription(
        &mut self,
        type_url: &TypeUrl,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        room: Room,
        rule: &TypeRule,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let Names::Listed(listed, encoded) = names else { return Ok(()) };
        self.asks = true;
        let (mut less, plain) = self.change_locators(type_url, &request.resource_locators, room, source)?;
        // Without parameters a locator is a name like others.
        let listed = if self.locators.counts == Counts::Locators { &[] } else { *listed };
        let all: Vec<_>;
        let names = if plain.is_empty() {
            Names::Listed(listed, *encoded)
        } else {
            all = listed.iter().copied().chain(plain.iter().map(String::as_str)).collect();
            Names::Listed(&all, None)
        };
        let has_legacy = rule.legacy_wildcard && !self.locators.were_ever();
        let change = self.wanted.change(self.subscriber.id, &names, room, has_legacy, source)?;
        self.tell_kept(source);
        less |= change.less;
        self.running.ask(&change.before, &self.wanted.names);
        if less {
            self.resumed.as_mut().map(String::clear);
        }
        if self.wanted.is_empty() {
            self.subscriber.refreshes.clear();
        }
        Ok(())
    }

    /// Has the source count what is kept beside names.
    fn tell_kept(&mut self, source: &mut impl Source) {
        let refused = self.subscriber.located.as_ref().map_or(0, |located| located.refused_weight());
        let beside = self.wanted.beside() + refused;
        if std::mem::replace(&mut self.beside, beside) != beside {
            source.keeps(self.subscriber.id, beside);
        }
    }

    /// Whether a list of names without locators is all that the last request had.
    pub(crate) fn repeats(&self, names: &[u8]) -> bool {
        !self.locators.were_ever() && self.wanted.repeats(names)
    }

    pub(crate) fn names(&self) -> usize {
        self.wanted.len() + self.subscriber.located.as_ref().map_or(0, |located| located.weight())
    }

    pub(crate) fn expect_no_answer(&mut self) {
        self.awaits_ack = false;
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.wanted.wildcard
    }

    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        self.changed || !self.wanted.untold.is_empty() || self.subscriber.has_work(source)
    }

    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        self.changed || self.subscriber.has_additions(source)
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.awaits_ack
    }

    pub(crate) fn has_responded(&self) -> bool {
        self.sent.is_some()
    }

    pub(crate) fn accepted_version(&self) -> Option<&str> {
        self.offered.accepted()
    }

    pub(crate) fn awaits_answer(&self) -> bool {
        self.awaits_ack
    }

    pub(crate) fn awaits_answer_of(&self, name: &ResourceName) -> bool {
        self.awaits_ack && self.offered.has(name, self.full_state)
    }

    pub(crate) fn answered_of(&self, name: &ResourceName) -> Answered {
        self.offered.refused().map_or_else(|| self.subscriber.refused.answered(name), Answered::Refused)
    }

    /// The next response, if one is due. Rule 129: one un-ACKed response, then the newest state.
    pub(crate) fn poll_transmit(
        &mut self,
        tells: Tells,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Option<Transmit> {
        let (rule, removals) = (outgoing.rule, tells.removals());
        // Rule 120: who asks by locators understands the wrapper, without which a payload need not say what it is called.
        outgoing.features.wrapped |= self.locators.were_ever();
        self.subscriber.paused = false;
        if self.wanted.is_empty() && self.wanted.untold.is_empty() && self.subscriber.located.is_none() {
            return None;
        }
        self.subscriber.begin(self.last_nonce.is_none(), source);
        let mut references = Vec::new();
        let asks = self.asks;
        let transmit = if rule.full_state_in_sotw {
            self.full_state(removals, outgoing, &mut references, source)
        } else {
            self.changes(outgoing, &mut references, source)
        };
        let (mut transmit, version) = match transmit {
            Some((mut transmit, version)) => {
                if rule.full_state_in_sotw && asks {
                    self.push_errors(&mut transmit, removals, outgoing, source);
                    self.push_located_errors(&mut transmit, removals, outgoing, source);
                }
                (transmit, version)
            }
            // What has an error may be gone, and a full state would say so.
            None if removals == Removals::Defer || self.subscriber.paused => return None,
            None => self.errors(outgoing, &mut references, source)?,
        };
        // All that lacks in a full state is gone, to who is not told in it why that is not sent.
        let all = rule.full_state_in_sotw;
        self.subscriber.push_refusals(all, Protocol::Sotw, &self.wanted.spelling, &mut transmit, source);
        // Rule 87: only of a wildcard does an equal version say that the client holds it all.
        if self.resumed.take().is_some_and(|held| !held.is_empty() && held == version)
            && rule.full_state_in_sotw
            && transmit.errors == 0
            && self.wanted.wildcard
            && self.wanted.names.is_empty()
            && self.locators.is_empty()
            && !source.selects(self.subscriber.id)
        {
            return None;
        }
        self.tell_kept(source);
        outgoing.references.append(&mut references);
        let nonce = outgoing.nonce();
        if !self.awaits_ack {
            self.subscriber.turn_since = Some(outgoing.now);
        }
        (self.last_nonce, self.awaits_ack) = (Some(nonce), true);
        self.resources = transmit.resources;
        self.subscriber.close(&mut transmit, Protocol::Sotw, Some(&version), nonce, outgoing);
        self.offered.send(version);
        Some(transmit)
    }
}

fn push(
    transmit: &mut Transmit,
    spelling: &Spelling,
    refreshes: &mut Refreshes,
    outgoing: &Outgoing<'_>,
    name: &ResourceName,
    resource: &Resource<Frame>,
) {
    // A client that understands the wrapper is told name and version of each resource, which a payload
    // need not hold (rule 110).
    if outgoing.features.wrapped {
        let ttl = resource.value.remaining_ttl(outgoing.now).filter(|_| outgoing.features.ttl);
        refreshes.put(outgoing.told(), name, &resource.version, ttl);
        transmit.push_wrapped(spelling.of(name), resource, ttl);
    } else {
        transmit.push_bare(&resource.value);
    }
}
