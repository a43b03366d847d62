//! Drift that is seen without being asked for: one scope after the other is compared with its origin, all within a time, again and
//! again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xdstp_client::federation::{Origin as _, ScopeKey};

use super::DriftCheck;
use super::clients::ClientLooks;
use super::seen::Outcome;
use crate::api::{Drifts, ScopeDrift};
use crate::lock::lock;
use crate::relay_core::core::RelayCore;

/// No two scopes begin to be compared within less: each is asked for anew by a stream of its own.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// A scope, by the position of its origin and by its key.
type Place = (usize, ScopeKey);

/// After how long a scope is compared again that differs and did not before: its origin may have been in the middle of a change.
const DOUBT: Duration = Duration::from_secs(5);

/// A scope that is being compared, and whether that is `again`.
struct Checking {
    place: Place,
    again: bool,
    check: DriftCheck,
}

/// Goes through the scopes of all origins that are asked, one at a time, each once in a round.
pub struct DriftRounds {
    core: Arc<RelayCore>,
    every: Duration,
    random: Box<dyn FnMut() -> u64 + Send>,
    /// What is still to be compared in this round.
    left: Vec<Place>,
    /// How long it is from one to the next, about.
    pause: Duration,
    next: Option<Instant>,
    checking: Option<Checking>,
    /// What is to be compared again, and when: nothing else is before.
    doubted: Option<(Instant, Place)>,
    clients: ClientLooks,
}

impl DriftRounds {
    /// A round takes about `every`, and longer where that is too short: from one scope to the next it is a second at the least, and
    /// until the one is compared, which takes 11 s where its origin does not answer. One that newly differs takes as long once more
    /// and 5 s. `random` spreads over time what
    /// several relays do.
    pub fn new(core: Arc<RelayCore>, every: Duration, random: impl FnMut() -> u64 + Send + 'static) -> Self {
        core.begin_drift_rounds();
        let (left, random, clients) = (Vec::new(), Box::new(random), ClientLooks::default());
        Self { core, every, random, left, pause: every, next: None, checking: None, doubted: None, clients }
    }

    /// Does what is to be done: to be called a few times a second. It may take as long as a scope is large.
    pub fn poll(&mut self, now: Instant) {
        if let Some((behind, rejected)) = self.clients.poll(&self.core, now) {
            self.core.saw_clients(behind, rejected);
        }
        self.core.drift_is_polled(now);
        if let Some(Checking { check, .. }) = &mut self.checking {
            let Some(drifts) = check.compared(now) else { return };
            if let Some(checked) = self.checking.take() {
                self.compared(checked, drifts, now);
            }
        }
        if let Some((at, _)) = &self.doubted {
            if now >= *at
                && let Some((_, place)) = self.doubted.take()
            {
                self.compare(place, true, now);
            }
            return;
        }
        // Relays that were started together do not ask together.
        let Some(next) = self.next else {
            self.next = Some(now + self.every.mul_f64(part(&mut self.random)));
            return;
        };
        if now >= next {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        if self.left.is_empty() {
            self.left = self.core.places_to_compare(now);
            let count = u32::try_from(self.left.len()).unwrap_or(u32::MAX).max(1);
            self.pause = (self.every / count).max(LEAST_PAUSE);
            self.clients.begin(&self.core, now);
        }
        // Between three and five quarters of it.
        self.next = Some(now + self.pause.mul_f64(0.75 + part(&mut self.random) / 2.0));
        if let Some(place) = self.left.pop() {
            self.compare(place, false, now);
        }
    }

    fn compare(&mut self, place: Place, again: bool, now: Instant) {
        match self.core.compare_place(&place, now) {
            Some(check) => self.checking = Some(Checking { place, again, check }),
            None => self.core.has_no_drift(&place),
        }
    }

    /// What differs where nothing did before counts once it is found again.
    fn compared(&mut self, Checking { place, again, .. }: Checking, drifts: Drifts, now: Instant) {
        if !again && drifts.scopes.iter().any(|scope| differ(scope) > 0) && !self.core.has_drift(&place) {
            self.doubted = Some((now + DOUBT, place));
        } else {
            self.core.saw_drift(place, drifts, now);
        }
    }
}

/// From 0 to 1.
fn part(random: &mut dyn FnMut() -> u64) -> f64 {
    random() as f64 / u64::MAX as f64
}

impl RelayCore {
    /// Each scope that clients share, of the origins that must be asked, but for those that are gone what was seen of them.
    fn places_to_compare(&self, now: Instant) -> Vec<Place> {
        let asked: BTreeMap<usize, _> = self
            .origins()
            .into_iter()
            .filter(|(.., of)| !of.is_authoritative())
            .map(|(at, name, _)| (at, name))
            .collect();
        let scopes = self.federation.scopes().into_iter();
        let scopes = scopes.filter(|scope| asked.contains_key(&scope.origin()) && scope.supply().is_some());
        let places: Vec<_> = scopes.map(|scope| (scope.origin(), scope.key.clone())).collect();
        if let Some(seen) = &mut *lock(&self.drift_seen) {
            seen.keep_only(asked.keys(), &places, now);
        }
        places
    }

    /// None where there is no such scope any more.
    fn compare_place(self: &Arc<Self>, (origin, key): &Place, now: Instant) -> Option<DriftCheck> {
        let scope = self.federation.scope_of(key);
        let scope = scope.filter(|scope| scope.origin() == *origin && scope.supply().is_some())?;
        let name = self.names.of(*origin)?;
        Some(self.check_scopes(name, vec![scope], None, now))
    }

    fn saw_drift(&self, (at, key): Place, drifts: Drifts, now: Instant) {
        let origin = drifts.origin.clone();
        let Some(scope) = drifts.scopes.into_iter().next() else { return };
        let differ = differ(&scope);
        let is_whole = scope.trouble.is_none() && scope.unanswered == 0 && scope.moving == 0;
        let outcome = Outcome::of(differ, is_whole);
        let before = match &mut *lock(&self.drift_seen) {
            Some(seen) => seen.saw((at, key), differ, outcome, now),
            None => return,
        };
        self.metrics.drift_checked(&origin, outcome.as_str());
        say(&origin, &scope, outcome, before);
    }
}

fn differ(scope: &ScopeDrift) -> usize {
    scope.drifts.len() + scope.more_drifts
}

/// Once, and again when it is otherwise.
fn say(origin: &str, scope: &ScopeDrift, outcome: Outcome, before: usize) {
    let differ = differ(scope);
    let ScopeDrift { scope: label, trouble, drifts, .. } = scope;
    if let Some(trouble) = trouble {
        tracing::debug!(%origin, scope = %label, "what is served cannot be compared with what the origin has: {trouble}");
    }
    match drifts.first() {
        Some(first) if differ != before => {
            let (r#type, name) = (&first.type_url, &first.name);
            tracing::warn!(%origin, scope = %label, resources = differ, %r#type, %name, "what is served is not what the origin has");
        }
        None if before > 0 && outcome == Outcome::Same => {
            tracing::info!(%origin, scope = %label, "what is served is what the origin has again");
        }
        _ => {}
    }
}
