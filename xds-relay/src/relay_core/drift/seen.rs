//! What was seen of drift so far, for who looks at the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use xdstp_client::federation::ScopeKey;

use super::compared::{Differences, stands};
use super::heard::Key;
use crate::lock::lock;
use crate::metrics::DriftGauges;
use crate::relay_core::core::RelayCore;

/// What was seen, of each scope when it was looked at last.
#[derive(Default)]
pub(crate) struct DriftSeen {
    /// The resources of a scope that are not as its origin has them, and were not in the look before either, where there are any.
    differ: BTreeMap<(usize, ScopeKey), Differences>,
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

    /// What of all that is `found` [stands]: it was found in the look before, be that the one that it is told of, or the `first` of two.
    pub(super) fn standing(
        &self,
        place: &(usize, ScopeKey),
        found: &Differences,
        first: Option<&Differences>,
    ) -> Differences {
        let told = self.differ.get(place);
        let before = |key: &Key| [told, first].into_iter().flatten().filter_map(|all| all.get(key)).collect::<Vec<_>>();
        let standing = found.iter().filter(|(key, sides)| before(key).into_iter().any(|before| stands(sides, before)));
        standing.map(|(key, sides)| (key.clone(), sides.clone())).collect()
    }

    /// This of a scope stands, and of what stood before what is still unanswered: how many did before, and do now.
    pub(super) fn saw(
        &mut self,
        place: (usize, ScopeKey),
        mut standing: Differences,
        outcome: Outcome,
        is_unanswered: impl Fn(&Key) -> bool,
        now: Instant,
    ) -> (usize, usize) {
        let told = self.differ.remove(&place).unwrap_or_default();
        let before = told.len();
        let unanswered = told.into_iter().filter(|(key, _)| !standing.contains_key(key) && is_unanswered(key));
        let unanswered: Vec<_> = unanswered.collect();
        standing.extend(unanswered);
        if outcome != Outcome::Unknown {
            self.checked.insert(place.0, now);
        }
        let differ = standing.len();
        if differ > 0 {
            self.differ.insert(place, standing);
        }
        (before, differ)
    }
}

impl RelayCore {
    /// It is looked for drift from now on.
    pub(super) fn begin_drift_rounds(&self) {
        lock(&self.drift_seen).get_or_insert_default();
        let asked = self.origins().into_iter().filter(|(.., origin)| !origin.is_authoritative());
        asked.for_each(|(_, name, _)| self.metrics.declare_drift(&name));
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
        for ((at, _), differences) in differ {
            if let Some(resources) = self.names.of(*at).and_then(|origin| gauges.resources.get_mut(&origin)) {
                *resources += differences.len() as u64;
            }
        }
        Some(gauges)
    }
}
