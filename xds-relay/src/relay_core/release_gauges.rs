//! How releases are, as metrics tell it.

use std::collections::BTreeMap;

use crate::lock::lock;
use crate::metrics::{ReleaseGauges, ReleaseState};
use crate::relay_core::core::RelayCore;
use crate::relay_core::rollout::{Releases, Told};
use crate::releases::{Candidate, Control, Progress};

impl RelayCore {
    /// By scope, as the configuration calls it.
    pub(crate) fn release_gauges(&self) -> BTreeMap<String, ReleaseGauges> {
        let all = lock(&self.releases).clone();
        all.iter().map(|releases| (releases.rollout.scope(), self.gauges_of(releases))).collect()
    }

    fn gauges_of(&self, releases: &Releases) -> ReleaseGauges {
        let (control, Told { unsaved, damaged, is_recalled, has_other_stages, .. }) = releases.told();
        let candidate = control.candidate();
        let publisher = control.publisher().map(|publisher| publisher.instance.0);
        ReleaseGauges {
            state: state(&control),
            stage: candidate.map_or(0, |candidate| candidate.stage as u64 + 1),
            unsaved: unsaved as u64,
            recalled: is_recalled,
            store_up: !releases.is_store_away(),
            damaged: damaged.len() as u64,
            other_stages: has_other_stages,
            denied: releases.denied().map(|names| names as u64),
            publishes: publisher == Some(self.relays.own().number()),
        }
    }
}

fn state(control: &Control) -> ReleaseState {
    match control.candidate().map(|candidate| (&candidate.progress, candidate)) {
        Some((Progress::Halted(_), candidate)) if Candidate::removes_much(candidate) => ReleaseState::RemovesMuch,
        Some((Progress::Halted(_), _)) => ReleaseState::Halted,
        _ if control.frozen().is_some() => ReleaseState::Frozen,
        None => ReleaseState::None,
        Some((Progress::Open, _)) => ReleaseState::Open,
        Some((Progress::Held(_), _)) => ReleaseState::Held,
    }
}
