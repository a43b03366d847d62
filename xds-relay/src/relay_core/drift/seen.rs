//! What was seen of drift so far, for who looks at the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use xdstp_client::federation::ScopeKey;

use crate::lock::lock;
use crate::metrics::DriftGauges;
use crate::relay_core::core::RelayCore;

/// What was seen, of each scope when it was looked at last.
#[derive(Default)]
pub(crate) struct DriftSeen {
    /// How many resources of a scope are not as its origin has them, where any are.
    differ: BTreeMap<(usize, ScopeKey), usize>,
    /// When a scope of an origin was compared last, or was to be first.
    checked: BTreeMap<usize, Instant>,
    now: Option<Instant>,
    /// Clients that are behind, and that rejected what they were sent.
    clients: (usize, usize),
}

/// What came of comparing a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Same,
    Differs,
    /// Not all was compared, and of what was, nothing differs.
    Unknown,
}

impl Outcome {
    pub(super) fn of(differ: usize, is_whole: bool) -> Self {
        match (differ, is_whole) {
            (0, true) => Self::Same,
            (0, false) => Self::Unknown,
            _ => Self::Differs,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Unknown => "unknown",
        }
    }
}

impl DriftSeen {
    /// Only these origins and scopes are there still.
    pub(super) fn keep_only<'a>(
        &mut self,
        origins: impl Iterator<Item = &'a usize>,
        scopes: &[(usize, ScopeKey)],
        now: Instant,
    ) {
        // Of who never answers it is told for how long it did not.
        scopes.iter().for_each(|(origin, _)| _ = self.checked.entry(*origin).or_insert(now));
        let origins: BTreeSet<_> = origins.copied().collect();
        self.checked.retain(|origin, _| origins.contains(origin));
        if !self.differ.is_empty() {
            let scopes: BTreeSet<_> = scopes.iter().collect();
            self.differ.retain(|place, _| scopes.contains(place));
        }
    }

    /// So many resources of a scope differ: how many did before. Where not all of it was compared, and nothing that was differs, what
    /// was seen before counts.
    pub(super) fn saw(&mut self, place: (usize, ScopeKey), differ: usize, outcome: Outcome, now: Instant) -> usize {
        if outcome == Outcome::Unknown {
            return self.differ.get(&place).copied().unwrap_or_default();
        }
        self.checked.insert(place.0, now);
        let before = if differ > 0 { self.differ.insert(place, differ) } else { self.differ.remove(&place) };
        before.unwrap_or_default()
    }
}

impl RelayCore {
    /// It is looked for drift from now on.
    pub(super) fn begin_drift_rounds(&self) {
        lock(&self.drift_seen).get_or_insert_default();
        let asked = self.origins().into_iter().filter(|(.., origin)| !origin.is_authoritative());
        asked.for_each(|(_, name, _)| self.metrics.declare_drift(&name));
    }

    /// Whether something of a scope differed when it was compared last.
    pub(super) fn has_drift(&self, place: &(usize, ScopeKey)) -> bool {
        lock(&self.drift_seen).as_ref().is_some_and(|seen| seen.differ.contains_key(place))
    }

    /// There is no such scope any more.
    pub(super) fn has_no_drift(&self, place: &(usize, ScopeKey)) {
        lock(&self.drift_seen).iter_mut().for_each(|seen| _ = seen.differ.remove(place));
    }

    pub(super) fn drift_is_polled(&self, now: Instant) {
        lock(&self.drift_seen).iter_mut().for_each(|seen| seen.now = Some(now));
    }

    /// So many clients are behind, and so many rejected what they were sent.
    pub(super) fn saw_clients(&self, behind: usize, rejected: usize) {
        lock(&self.drift_seen).iter_mut().for_each(|seen| seen.clients = (behind, rejected));
    }

    /// None where nobody looks.
    pub(crate) fn drift_gauges(&self) -> Option<DriftGauges> {
        let seen = lock(&self.drift_seen);
        let DriftSeen { differ, checked, now, clients: (behind, rejected) } = seen.as_ref()?;
        let mut gauges = DriftGauges { behind: *behind as u64, rejected: *rejected as u64, ..DriftGauges::default() };
        for (at, since) in checked {
            let Some(origin) = self.names.of(*at) else { continue };
            let age = now.map_or(0, |now| now.saturating_duration_since(*since).as_secs());
            gauges.age_seconds.insert(origin.clone(), age);
            gauges.resources.insert(origin, 0);
        }
        for ((at, _), count) in differ {
            if let Some(resources) = self.names.of(*at).and_then(|origin| gauges.resources.get_mut(&origin)) {
                *resources += *count as u64;
            }
        }
        Some(gauges)
    }
}
