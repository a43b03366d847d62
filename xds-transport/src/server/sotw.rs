//! One type of one state-of-the-world stream.

mod errors;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use xdstp_cache::{Pull, Removals, Resource, SubscriberId, TypeUrl, Unanswered};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::server::error::ProtocolError;
use crate::server::nonce;
use crate::server::outgoing::{BUDGET, Features, Outgoing, Tells};
use crate::server::refreshes::Refreshes;
use crate::server::source::Source;
use crate::server::spelling::Spelling;
use crate::server::stream::{Reference, Room, Tally};
use crate::server::transmit::Transmit;
use crate::server::version::{RunningHash, TypeHash};
use crate::server::wanted::{Names, Wanted};
use crate::type_rules::TypeRule;
use crate::wire::DiscoveryRequest;

pub(crate) struct Session {
    pub(crate) id: SubscriberId,
    pub(crate) tally: Tally,
    wanted: Wanted,
    /// The version the client came with: what it, or who it asks for, holds must not be deleted before it is known to be
    /// gone. Empty once it left anything: that it does not hold any more.
    resumed: Option<String>,
    last_nonce: Option<u64>,
    awaits_ack: bool,
    /// Something the client must be told; what, is read from the source when it is written.
    changed: bool,
    /// What was pulled could not be sent yet.
    withheld: bool,
    /// The source is still looking for what there is to say.
    paused: bool,
    /// What was found of a full state before that paused.
    found: Option<Found>,
    /// How many resources came with the last response.
    resources: usize,
    /// Of how many resources the last full state was.
    sent: Option<usize>,
    /// The version of a type that is told by changes, where no origin gives one.
    running: RunningHash,
    refreshes: Refreshes,
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

impl Session {
    pub(crate) fn open(
        type_url: &TypeUrl,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        rule: &TypeRule,
        features: Features,
        room: Room,
        source: &mut impl Source,
    ) -> (Self, Result<(), ProtocolError>) {
        let mut session = Self {
            id: source.open(type_url),
            tally: Tally { requests: 1, ..Tally::default() },
            wanted: Wanted::default(),
            resumed: Some(request.version_info.clone()).filter(|version| features.for_others || !version.is_empty()),
            last_nonce: None,
            awaits_ack: false,
            changed: false,
            withheld: false,
            paused: false,
            found: None,
            resources: 0,
            sent: None,
            running: RunningHash::default(),
            refreshes: Refreshes::default(),
        };
        let opened = session.change_subscription(names, room, rule, source);
        source.resume(session.id, Vec::new());
        (session, opened)
    }

    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        room: Room,
        rule: &TypeRule,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        self.tally.requests += 1;
        // Rules 16, 18: a request that does not answer the last response is stale, and not answered.
        if let Some(last) = self.last_nonce
            && !nonce::is(&request.response_nonce, last)
        {
            // Rule 17: one that crossed that response says what the client wanted meanwhile. The ACK will repeat
            // its names, but not tell that one of them left and came back in between (rule 55).
            return if self.awaits_ack { self.change_subscription(names, room, rule, source) } else { Ok(()) };
        }
        if self.awaits_ack {
            self.awaits_ack = false;
            self.tally.answered(now, request.error_detail.as_ref());
            match (&request.error_detail, self.last_nonce) {
                // A full state is refreshed as long as the client may have anything of it.
                (Some(_), Some(_)) if rule.full_state_in_sotw && self.resources > 1 => {}
                (Some(_), Some(nonce)) => self.refreshes.refused(now, nonce, self.resources),
                (None, Some(nonce)) => self.refreshes.accepted(nonce),
                (_, None) => {}
            }
        }
        self.change_subscription(names, room, rule, source)
    }

    fn change_subscription(
        &mut self,
        names: &Names<'_>,
        room: Room,
        rule: &TypeRule,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        if matches!(names, Names::Listed(..)) {
            self.running.invalidate();
        }
        if self.wanted.change(self.id, names, room, rule, source)? {
            self.resumed.as_mut().map(String::clear);
        }
        if self.wanted.is_empty() {
            self.refreshes.clear();
        }
        Ok(())
    }

    /// Whether a request's list of names is the last one again.
    pub(crate) fn repeats(&self, names: &[u8]) -> bool {
        self.wanted.repeats(names)
    }

    pub(crate) fn names(&self) -> usize {
        self.wanted.len()
    }

    /// Nobody is there to send an ACK.
    pub(crate) fn expect_no_answer(&mut self) {
        self.awaits_ack = false;
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.wanted.wildcard
    }

    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        self.changed || !self.wanted.untold.is_empty() || source.has_work(self.id)
    }

    /// The same, but for removals.
    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        self.changed || source.has_additions(self.id)
    }

    /// When something must be refreshed.
    pub(crate) fn next_refresh(&self) -> Option<Instant> {
        self.refreshes.next()
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.awaits_ack
    }

    /// Whether the last look was not over when it paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether a full state was sent.
    pub(crate) fn has_responded(&self) -> bool {
        self.sent.is_some()
    }

    /// The next response, if one is due. Rule 129: one un-ACKed response, then the newest state.
    pub(crate) fn poll_transmit(
        &mut self,
        tells: Tells,
        rule: &TypeRule,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Option<Transmit> {
        let removals = tells.removals();
        self.paused = false;
        if self.wanted.is_empty() && self.wanted.untold.is_empty() {
            return None;
        }
        let mut references = Vec::new();
        let transmit = if rule.full_state_in_sotw {
            self.full_state(removals, rule, outgoing, &mut references, source)
        } else {
            self.changes(rule, outgoing, &mut references, source)
        };
        let (mut transmit, version) = match transmit {
            Some(response) => response,
            // What has an error may be gone, and a full state would say so.
            None if removals == Removals::Defer || self.paused => return None,
            None => self.errors(rule, outgoing, &mut references, source)?,
        };
        // Rule 87: only of a wildcard does an equal version say that the client holds it all.
        if self.resumed.take().is_some_and(|held| !held.is_empty() && held == version)
            && rule.full_state_in_sotw
            && self.wanted.wildcard
            && self.wanted.names.is_empty()
        {
            return None;
        }
        outgoing.references.append(&mut references);
        let nonce = outgoing.nonce();
        (self.last_nonce, self.awaits_ack) = (Some(nonce), true);
        self.resources = transmit.resources;
        transmit.push_text(1, &version);
        transmit.push_text(4, outgoing.type_url.as_str());
        transmit.push_nonce(5, nonce);
        transmit.push_control_plane(6, outgoing.identifier);
        transmit.finish();
        self.tally.sent(&transmit);
        Some(transmit)
    }

    /// Rule 66: everything subscribed, whatever changed of it, and what is gone for as long as that may not be told.
    fn full_state(
        &mut self,
        removals: Removals,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        let found = self.found.take();
        let goes_on = found.is_some();
        let Found { removals: before, mut left, references: mut earlier } = found.unwrap_or_default();
        references.append(&mut earlier);
        let mut changed = self.changed;
        // Rule 113: a refresh is the full state again. To a client whose absences are deletions a heartbeat says that
        // everything else is gone.
        while let Some(due) = self.refreshes.pop(outgoing.now) {
            source.look_up(self.id, &due.name, &mut |resource| {
                changed |= self.refreshes.extend(&due, &resource.value, outgoing.told()).is_some();
            });
        }
        // What is gone counts as told once it is pulled, and would go with the first addition that can be said (rule 122).
        let may_be_early = !goes_on && (self.withheld || source.newest_removal(self.id) > 0);
        let is_early = may_be_early && self.is_unknown(source.visit(self.id, &mut |_, _| {}));
        let removals = if is_early || before == Removals::Defer { Removals::Defer } else { removals };
        changed |= is_early;
        let mut visitor = |pull: Pull<'_, Frame>| {
            match pull {
                Pull::Put { resource, .. } => {
                    changed = true;
                    Reference::collect(rule, &resource.value, references);
                }
                Pull::Removed { name, .. } if self.wanted.lists(name) => changed = true,
                _ => left = true,
            }
            ControlFlow::Continue(())
        };
        let pulled = source.pull(self.id, removals, &mut visitor);
        changed |= pulled.answered;
        self.paused = pulled.paused;
        if pulled.paused {
            self.changed = changed;
            self.found = Some(Found { removals, left, references: std::mem::take(references) });
            return None;
        }
        if !changed && !left {
            return None;
        }
        let state = self.state(removals, rule, outgoing, references, source);
        (self.changed, self.withheld) = (state.is_none(), state.is_none());
        let (transmit, version) = state?;
        // Rule 37: what left a collection may never have been in it. Nothing came: as many are the same.
        if self.sent.replace(transmit.resources) == Some(transmit.resources) && !changed {
            return None;
        }
        Some((transmit, version))
    }

    /// Everything subscribed; none while that cannot be said.
    fn state(
        &mut self,
        removals: Removals,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let mut leaving = BTreeMap::new();
        source.visit_leaving(self.id, removals, &mut |name, resource| {
            // Who was told for how long it lives has it no more after that (rule 111).
            let lives = !outgoing.features.wrapped
                || !outgoing.features.ttl
                || resource.value.expires().is_none_or(|at| at > outgoing.now);
            if lives {
                leaving.insert(name.clone(), resource.clone());
            }
            lives
        });
        // Rule 33: what the origin gave the version to has none of these.
        let given = source.type_version(self.id).filter(|_| leaving.is_empty());
        let mut hash = given.is_none().then(TypeHash::default);
        let Self { wanted, refreshes, withheld, .. } = self;
        refreshes.clear();
        let mut tell = |name: &ResourceName, resource: &Resource<Frame>| {
            if let Some(hash) = &mut hash {
                hash.add(name, &resource.version);
            }
            push(&mut transmit, &wanted.spelling, refreshes, outgoing, name, resource);
        };
        let visited = source.visit(self.id, &mut |name, resource| {
            leaving.remove(name);
            tell(name, resource);
            if *withheld {
                Reference::collect(rule, &resource.value, references);
            }
        });
        leaving.iter().for_each(|(name, resource)| tell(name, resource));
        let version = given.map_or_else(|| hash.unwrap_or_default().to_string(), |given| given.to_string());
        (!self.is_unknown(visited)).then_some((transmit, version))
    }

    /// Absence is deletion: what a reconnected client may hold is not left out before it is answered (rule 151). To one
    /// that holds nothing, what there is of an answer does not lie.
    fn is_unknown(&self, visited: Unanswered) -> bool {
        let holds = self.resumed.is_some() && visited.any() || self.sent.is_some() && visited.held > 0;
        visited.collections > 0 && self.wanted.wildcard || holds
    }

    /// Rule 67: only what changed; a removal cannot be said. Names that are not there leave the answer for the others
    /// as it is (rule 126). In parts, as over delta (rule 133): each resource may come alone.
    fn changes(
        &mut self,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let Self { wanted, refreshes, running, .. } = self;
        let pulled = source.pull(self.id, Removals::Include, &mut |pull| {
            match pull {
                Pull::Put { name, resource, .. } => {
                    push(&mut transmit, &wanted.spelling, refreshes, outgoing, name, resource);
                    Reference::collect(rule, &resource.value, references);
                    running.put(name, &resource.version, &wanted.names);
                }
                Pull::Removed { name, .. } => running.remove(name),
                _ => {}
            }
            if transmit.budget_used() < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.paused = pulled.paused;
        // Rule 114: heartbeats over SotW do not arm the timer of every client anew, so a refresh is the whole resource.
        while !pulled.more
            && transmit.budget_used() < BUDGET
            && refreshes.fits(&transmit)
            && let Some(due) = refreshes.pop(outgoing.now)
        {
            source.look_up(self.id, &due.name, &mut |resource| {
                if resource.version == due.version && refreshes.extend(&due, &resource.value, outgoing.told()).is_some()
                {
                    push(&mut transmit, &wanted.spelling, refreshes, outgoing, &due.name, resource);
                }
            });
            if due.alone && !transmit.is_empty() {
                break;
            }
        }
        // The version is of all that is to be told: each of several parts sums up the others too.
        // So is what is gone, and is told so by an error later.
        let all = !pulled.more && !source.has_work(self.id);
        running.told(all, source.changes(self.id));
        if transmit.resources == 0 {
            return None;
        }
        let version = self.version_of_changes(source);
        Some((transmit, version))
    }

    fn version_of_changes(&mut self, source: &mut impl Source) -> String {
        match source.type_version(self.id) {
            Some(given) => {
                self.running.rest();
                given.to_string()
            }
            None => self.running.of(self.id, &self.wanted.names, source).to_string(),
        }
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
