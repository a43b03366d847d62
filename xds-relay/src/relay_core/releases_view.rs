//! The releases of a relay, as its pages and its API tell them.

use std::sync::Arc;

use crate::api::{
    self, CandidateState, CandidateStatus, KeptRelease, NotTakenRelease, ReleasedScope, SaidOf, ServedCounts,
    StageStatus,
};
use crate::lock::lock;
use crate::relay_core::core::RelayCore;
use crate::relay_core::rollout::{Releases, Told};
use crate::relay_core::stream_entry::StreamEntry;
use crate::releases::{Candidate, Control, Kept, Progress, Release, Said, Stage, Stages, millis_of};

impl RelayCore {
    /// What is released of which scope, and to how many. It may take as long as a store takes.
    pub fn released(&self) -> api::Releases {
        let all = lock(&self.releases).clone();
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        let served = |at: usize, release: Option<Release>| {
            let is_served = |entry: &&Arc<StreamEntry>| {
                lock(&entry.releases).get(&at).is_some_and(|has| has.is_some() && *has == release)
            };
            streams.iter().filter(is_served).count()
        };
        let scope = |(at, releases): (usize, &Arc<Releases>)| {
            let (control, told) = releases.told();
            let Told { mark, kept, damaged, unsaved, is_recalled, has_other_stages, .. } = told;
            let damaged = damaged.iter().map(|damage| format!("{}: {}", damage.key, damage.problem)).collect();
            let candidate = control.candidate().map(|candidate| candidate.release);
            let clients = ServedCounts {
                stable: served(at, control.stable()),
                candidate: candidate.map_or(0, |release| served(at, Some(release))),
            };
            let rollout = &releases.rollout;
            ReleasedScope {
                scope: rollout.scope(),
                mark,
                stages: rollout.stages.iter().map(stage).collect(),
                stable: control.stable().map(|release| release.to_string()),
                candidate: control.candidate().map(|candidate| {
                    let check = releases.check_words(candidate.release);
                    CandidateStatus { check, ..status(candidate, &control, &rollout.stages) }
                }),
                frozen: control.frozen().map(said),
                not_taken: control
                    .not_taken()
                    .map(|of| NotTakenRelease { release: of.release.to_string(), at: millis_of(of.at) }),
                refused: control.refused().iter().map(Release::to_string).collect(),
                kept: kept.into_iter().map(kept_release).collect(),
                clients,
                damaged,
                publisher: control.publisher().map(|publisher| format!("{:016x}", publisher.instance.0)),
                unsaved,
                keeps_unsaved: releases.keep_unsaved(),
                other_stages: has_other_stages,
                recalled: is_recalled,
            }
        };
        api::Releases { scopes: all.iter().enumerate().map(scope).collect(), orders: None, instance: self.instance() }
    }
}

fn status(candidate: &Candidate, control: &Control, stages: &Stages) -> CandidateStatus {
    let (state, by) = match &candidate.progress {
        // It does not go on when nothing is frozen any more, either.
        Progress::Halted(by) => (CandidateState::Halted, Some(by)),
        _ if control.frozen().is_some() => (CandidateState::Frozen, None),
        Progress::Open => (CandidateState::Open, None),
        Progress::Held(by) => (CandidateState::Held, Some(by)),
    };
    CandidateStatus {
        release: candidate.release.to_string(),
        stage: candidate.stage.saturating_add(1),
        stages: stages.len(),
        since: millis_of(candidate.since),
        state,
        due: control.due(stages).map(millis_of),
        said: by.map(said),
        check: None,
    }
}

fn stage(stage: &Stage) -> StageStatus {
    StageStatus { who: stage.who.to_string(), hold_seconds: stage.hold.as_secs() }
}

fn said(said: &Said) -> SaidOf {
    SaidOf { by: said.by.clone(), why: said.why.clone(), at: millis_of(said.at) }
}

fn kept_release(kept: Kept) -> KeptRelease {
    let Kept { release, at, from, resources } = kept;
    KeptRelease { release: release.to_string(), at: millis_of(at), from, resources }
}
