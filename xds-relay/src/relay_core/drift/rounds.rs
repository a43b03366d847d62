//! Drift that is seen without being asked for: one scope after the other is compared with its origin, all within a time, again and
//! again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xdstp_client::federation::{Origin as _, ScopeKey};

use super::DriftCheck;
use super::clients::ClientLooks;
use super::compared::{Compared, Differences};
use super::seen::Outcome;
use crate::api::ScopeDrift;
use crate::lock::lock;
use crate::relay_core::core::RelayCore;

/// No two scopes begin to be compared within less: each is asked for anew by a stream of its own.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// A scope, by the position of its origin and by its key.
type Place = (usize, ScopeKey);

/// After how long a scope is compared again where something differs that did not, or not so: its origin may have been in the middle of a change.
const DOUBT: Duration = Duration::from_secs(5);

/// A scope that is being compared, and what was found the first time, if that is again.
struct Checking {
    place: Place,
    first: Option<Differences>,
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
    doubted: Option<(Instant, Place, Differences)>,
    clients: ClientLooks,
}

impl DriftRounds {
    /// A round takes about `every`, and longer where that is too short: from one scope to the next it is a second at the least, and
    /// until the one is compared, which takes 11 s where its origin does not answer. One where anything newly differs, or otherwise than before, takes
    /// as long once more and 5 s. `random` spreads over time what
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
            let Some(compared) = check.compared(now) else { return };
            if let (Some(checked), Some(compared)) = (self.checking.take(), compared.into_iter().next()) {
                self.compared(checked, compared, now);
            }
        }
        if let Some((at, ..)) = &self.doubted {
            if now >= *at
                && let Some((_, place, first)) = self.doubted.take()
            {
                self.compare(place, Some(first), now);
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
            self.compare(place, None, now);
        }
    }

    fn compare(&mut self, place: Place, first: Option<Differences>, now: Instant) {
        match self.core.compare_place(&place, now) {
            Some(check) => self.checking = Some(Checking { place, first, check }),
            None => self.core.has_no_drift(&place),
        }
    }

    /// What differs counts once it is found again, as it is: what changes all the time cannot be told from what is on its way.
    fn compared(&mut self, checked: Checking, compared: Compared, now: Instant) {
        let Some(standing) = self.core.standing_drift(&checked, &compared) else { return };
        if checked.first.is_none() && standing.len() < compared.found.len() {
            self.doubted = Some((now + DOUBT, checked.place, compared.found));
        } else {
            self.core.saw_drift(checked, compared, standing, now);
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

    fn standing_drift(&self, Checking { place, first, .. }: &Checking, compared: &Compared) -> Option<Differences> {
        lock(&self.drift_seen).as_ref().map(|seen| seen.standing(place, &compared.found, first.as_ref()))
    }

    fn saw_drift(
        &self,
        Checking { place, check, .. }: Checking,
        mut compared: Compared,
        standing: Differences,
        now: Instant,
    ) {
        let Some(asked) = check.scopes.first() else { return };
        compared.doubt_but_for(&standing);
        let scope = asked.told(compared);
        let is_whole = scope.trouble.is_none() && scope.unanswered == 0 && scope.moving == 0;
        let outcome = Outcome::of(standing.len(), is_whole);
        let (before, differ) = match &mut *lock(&self.drift_seen) {
            Some(seen) => seen.saw(place, standing, outcome, |key| asked.is_unanswered(key), now),
            None => return,
        };
        self.metrics.drift_checked(&check.origin, outcome.as_str());
        say(&check.origin, &scope, outcome, (before, differ));
    }
}

/// Once, and again when it is otherwise.
fn say(origin: &str, scope: &ScopeDrift, outcome: Outcome, (before, differ): (usize, usize)) {
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
