//! One type of one state-of-the-world stream.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

use xdstp_cache::{Interest, Pull, Removals, Resource, ResourceError, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::server::delta::{BUDGET, Features, Outgoing, Tells};
use crate::server::nonce;
use crate::server::refreshes::Refreshes;
use crate::server::source::Source;
use crate::server::spelling::Spelling;
use crate::server::stream::{Reference, Tally};
use crate::server::transmit::Transmit;
use crate::server::version::TypeHash;
use crate::type_rules::TypeRule;
use crate::wire::DiscoveryRequest;

/// `google.rpc.Code.INVALID_ARGUMENT`.
const INVALID_ARGUMENT: i32 = 3;

pub(crate) struct Session {
    pub(crate) id: SubscriberId,
    pub(crate) tally: Tally,
    names: BTreeSet<ResourceName>,
    wildcard: bool,
    /// Rule 40: a type that was ever asked for by name has no legacy wildcard any more.
    ever_named: bool,
    spelling: Spelling,
    /// Names that are none, and those among them that the client has not been told so of.
    malformed: BTreeSet<String>,
    untold: BTreeSet<String>,
    /// The version the client came with: what it, or who it asks for, holds must not be deleted before it is known to be
    /// gone.
    resumed: Option<String>,
    last_nonce: Option<u64>,
    awaits_ack: bool,
    /// Something the client must be told; what, is read from the source when it is written.
    changed: bool,
    /// What was pulled could not be sent yet.
    withheld: bool,
    /// The last full state that was sent.
    sent: Option<TypeHash>,
    refreshes: Refreshes,
}

impl Session {
    pub(crate) fn open(
        type_url: &TypeUrl,
        request: &DiscoveryRequest,
        rule: &TypeRule,
        features: Features,
        source: &mut impl Source,
    ) -> Self {
        let mut session = Self {
            id: source.open(type_url),
            tally: Tally { requests: 1, ..Tally::default() },
            names: BTreeSet::new(),
            wildcard: false,
            ever_named: false,
            spelling: Spelling::default(),
            malformed: BTreeSet::new(),
            untold: BTreeSet::new(),
            resumed: Some(request.version_info.clone()).filter(|version| features.for_others || !version.is_empty()),
            last_nonce: None,
            awaits_ack: false,
            changed: false,
            withheld: false,
            sent: None,
            refreshes: Refreshes::default(),
        };
        session.change_subscription(&request.resource_names, rule, source);
        source.resume(session.id, Vec::new());
        session
    }

    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        request: &DiscoveryRequest,
        rule: &TypeRule,
        source: &mut impl Source,
    ) {
        self.tally.requests += 1;
        // Rules 16, 18: a request that does not answer the last response is stale, and not answered.
        if let Some(last) = self.last_nonce
            && !nonce::is(&request.response_nonce, last)
        {
            // Rule 17: one that crossed that response says what the client wanted meanwhile. The ACK will repeat
            // its names, but not tell that one of them left and came back in between (rule 55).
            if self.awaits_ack {
                self.change_subscription(&request.resource_names, rule, source);
            }
            return;
        }
        if self.awaits_ack {
            self.awaits_ack = false;
            self.tally.answered(now, request.error_detail.as_ref());
            if let (Some(_), Some(nonce)) = (&request.error_detail, self.last_nonce) {
                self.refreshes.refused(nonce);
            }
        }
        self.change_subscription(&request.resource_names, rule, source);
    }

    /// Rule 43: the list is what is wanted from now on, and `*` in it is everything. Rule 46: of the types without a
    /// legacy wildcard an empty list is nothing, from the first request on.
    fn change_subscription(&mut self, requested: &[String], rule: &TypeRule, source: &mut impl Source) {
        self.ever_named |= !requested.is_empty();
        let mut wildcard = requested.is_empty() && rule.legacy_wildcard && !self.ever_named;
        let mut names = BTreeSet::new();
        let mut malformed = BTreeSet::new();
        for text in requested {
            let Ok(name) = ResourceName::parse(text) else {
                malformed.insert(text.clone());
                continue;
            };
            match Interest::from(name) {
                Interest::Wildcard => wildcard = true,
                Interest::Name(name) => {
                    self.spelling.note(&name, text);
                    names.insert(name);
                }
            }
        }
        if wildcard && !self.wildcard {
            source.subscribe(self.id, &Interest::Wildcard);
        }
        // Rules 55, 56: a name that was not in the last request is new, however often it was sent.
        for name in names.difference(&self.names) {
            source.subscribe(self.id, &Interest::Name(name.clone()));
        }
        // First, or a name that leaves with it would be told as not in it.
        if self.wildcard && !wildcard {
            source.unsubscribe(self.id, &Interest::Wildcard);
        }
        for name in self.names.difference(&names) {
            source.unsubscribe(self.id, &Interest::Name(name.clone()));
            self.spelling.forget(name);
        }
        self.untold.retain(|text| malformed.contains(text));
        self.untold.extend(malformed.difference(&self.malformed).cloned());
        self.malformed = malformed;
        (self.names, self.wildcard) = (names, wildcard);
        if self.names.is_empty() && !self.wildcard {
            self.refreshes.clear();
        }
    }

    pub(crate) fn names(&self) -> usize {
        self.names.len() + self.malformed.len()
    }

    /// Nobody is there to send an ACK.
    pub(crate) fn expect_no_answer(&mut self) {
        self.awaits_ack = false;
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        self.changed || !self.untold.is_empty() || source.has_work(self.id)
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
        if self.names.is_empty() && !self.wildcard && self.untold.is_empty() {
            return None;
        }
        let mut references = Vec::new();
        let transmit = if rule.full_state_in_sotw {
            self.full_state(removals, rule, outgoing, &mut references, source)
        } else {
            self.changes(rule, outgoing, &mut references, source)
        };
        let (mut transmit, hash) = match transmit {
            Some(response) => response,
            // What has an error may be gone, and a full state would say so.
            None if removals == Removals::Defer => return None,
            None => self.errors(rule, outgoing, &mut references, source)?,
        };
        let version = source.type_version(self.id).map_or_else(|| hash.to_string(), |version| version.to_string());
        // Rule 87: only of a wildcard does an equal version say that the client holds it all.
        if self.resumed.take().is_some_and(|held| held == version)
            && rule.full_state_in_sotw
            && self.wildcard
            && self.names.is_empty()
        {
            return None;
        }
        outgoing.references.append(&mut references);
        let nonce = outgoing.nonce();
        (self.last_nonce, self.awaits_ack) = (Some(nonce), true);
        transmit.push_text(1, &version);
        transmit.push_text(4, outgoing.type_url.as_str());
        transmit.push_text(5, &nonce.to_string());
        transmit.push_control_plane(6, outgoing.identifier);
        let transmit = transmit.finish();
        self.tally.sent(&transmit);
        Some(transmit)
    }

    /// Rule 66: everything subscribed, whatever changed of it. Nothing is added without what is gone being left out:
    /// removals can wait only where there is nothing else to say.
    fn full_state(
        &mut self,
        removals: Removals,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, TypeHash)> {
        let (mut changed, mut left) = (self.changed, false);
        let mut visitor = |pull: Pull<'_, Frame>| {
            match pull {
                Pull::Put { resource, .. } => {
                    changed = true;
                    Reference::collect(rule, &resource.value, references);
                }
                Pull::Removed { name } if self.names.contains(name) => changed = true,
                _ => left = true,
            }
            ControlFlow::Continue(())
        };
        let pulled = source.pull(self.id, removals, &mut visitor);
        // Rule 113: a refresh is the full state again. To a client whose absences are deletions a heartbeat says that
        // everything else is gone.
        while let Some(due) = self.refreshes.pop(outgoing.now) {
            source.look_up(self.id, &due.name, &mut |resource| {
                changed |= self.refreshes.extend(&due, &resource.value, outgoing.told()).is_some();
            });
        }
        changed |= pulled.answered;
        if removals == Removals::Defer {
            if !changed {
                return None;
            }
            source.pull(self.id, Removals::Include, &mut |_| ControlFlow::Continue(()));
        }
        if !changed && !left {
            return None;
        }
        let state = self.state(rule, outgoing, references, source);
        (self.changed, self.withheld) = (state.is_none(), state.is_none());
        let (transmit, hash) = state?;
        // Rule 37: what left a collection may never have been in it.
        if self.sent.replace(hash) == Some(hash) && !changed {
            return None;
        }
        Some((transmit, hash))
    }

    /// Everything subscribed; none while that cannot be said.
    fn state(
        &mut self,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, TypeHash)> {
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let mut hash = TypeHash::default();
        let Self { refreshes, spelling, withheld, .. } = self;
        refreshes.clear();
        let visited = source.visit(self.id, &mut |name, resource| {
            hash.add(name, &resource.version);
            push(&mut transmit, spelling, refreshes, outgoing, name, resource);
            if *withheld {
                Reference::collect(rule, &resource.value, references);
            }
        });
        // Absence is deletion: what a reconnected client may hold is not left out before it is answered (rule 151). To
        // one that holds nothing, what there is of an answer does not lie.
        let holds = self.resumed.is_some() && visited.any() || self.sent.is_some() && visited.held > 0;
        let unknown = visited.collections > 0 && self.wildcard || holds;
        (!unknown).then_some((transmit, hash))
    }

    /// TP3: why something is not sent, when there is nothing else to say: in one response, no name may have both a
    /// resource and an error. Where a response is the full state, an error beside a resource cannot be told: the resource
    /// is in it.
    fn errors(
        &mut self,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, TypeHash)> {
        // What changed and is withheld goes first.
        if self.changed || !source.has_work(self.id) && self.untold.is_empty() {
            return None;
        }
        let (mut transmit, hash) = if rule.full_state_in_sotw {
            self.state(rule, outgoing, references, source)?
        } else {
            let mut hash = TypeHash::default();
            source.visit(self.id, &mut |name, resource| hash.add(name, &resource.version));
            (Transmit::new(outgoing.type_url.clone()), hash)
        };
        source.pull_errors(self.id, Removals::Include, &mut |failed| {
            if !(rule.full_state_in_sotw && failed.beside && !failed.name.is_glob()) {
                transmit.push_error(7, self.spelling.of(failed.name), failed.error);
            }
            ControlFlow::Continue(())
        });
        // A text that is no name cannot be that of a resource: SotW has no other way to say so.
        while let Some(text) = self.untold.pop_first() {
            let reason = ResourceName::parse(&text).err().map_or_else(String::new, |error| error.to_string());
            transmit.push_error(7, &text, &ResourceError::new(INVALID_ARGUMENT, reason));
        }
        (transmit.errors > 0).then_some((transmit, hash))
    }

    /// Rule 67: only what changed; a removal cannot be said. Names that are not there leave the answer for the others
    /// as it is (rule 126). In parts, as over delta (rule 133): each resource may come alone.
    fn changes(
        &mut self,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, TypeHash)> {
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let Self { refreshes, spelling, .. } = self;
        let pulled = source.pull(self.id, Removals::Include, &mut |pull| {
            if let Pull::Put { name, resource } = pull {
                push(&mut transmit, spelling, refreshes, outgoing, name, resource);
                Reference::collect(rule, &resource.value, references);
            }
            if transmit.budget_used() < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        // Rule 114: heartbeats over SotW do not arm the timer of every client anew, so a refresh is the whole resource.
        while !pulled.more
            && transmit.budget_used() < BUDGET
            && let Some(due) = refreshes.pop(outgoing.now)
        {
            source.look_up(self.id, &due.name, &mut |resource| {
                if resource.version == due.version && refreshes.extend(&due, &resource.value, outgoing.told()).is_some()
                {
                    push(&mut transmit, spelling, refreshes, outgoing, &due.name, resource);
                }
            });
        }
        if transmit.resources == 0 {
            return None;
        }
        let mut hash = TypeHash::default();
        source.visit(self.id, &mut |name, resource| hash.add(name, &resource.version));
        Some((transmit, hash))
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
