//! The release that some are served.

use std::time::{Duration, SystemTime};

use crate::releases::act::Said;
use crate::releases::release::Release;
use crate::releases::stage::Stages;

/// A release on its way to everybody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Candidate {
    /// The release.
    pub release: Release,
    /// In which stage it is, from 0. There may be fewer, if the configuration changed: then it is in the last.
    pub stage: usize,
    /// Since when, by the clock of whoever publishes; whole milliseconds.
    pub since: SystemTime,
    /// Whether it goes on by itself.
    pub progress: Progress,
}

/// Whether a candidate goes on by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// It does.
    Open,
    /// Somebody wants it to stay in its stage.
    Held(Said),
    /// All is not well: who has it keeps it, and nobody else gets it.
    Halted(Said),
}

/// Why a candidate waits for somebody to say that it goes on.
pub(crate) const REMOVES_MUCH: &str = "it removes much";
/// The same where nothing is stable, so that it cannot be compared with anything.
pub(crate) const MAY_LACK: &str = "it is the first, and may lack what clients hold";

impl Candidate {
    pub(crate) fn new(release: Release, since: SystemTime) -> Self {
        Self { release, stage: 0, since, progress: Progress::Open }
    }

    /// Its stage begins now.
    pub(crate) fn begin(&mut self, stage: usize, now: SystemTime) {
        (self.stage, self.since) = (stage, now);
    }

    /// Whether it waits because it removes much, or may.
    pub(crate) fn removes_much(&self) -> bool {
        matches!(&self.progress, Progress::Halted(said) if [REMOVES_MUCH, MAY_LACK].contains(&&*said.why))
    }

    /// How long it is to stay in its stage yet. A clock that went back makes that longer and never shorter.
    pub(crate) fn left(&self, stages: &Stages, now: SystemTime) -> Duration {
        stages.hold(self.stage).saturating_sub(now.duration_since(self.since).unwrap_or_default())
    }
}
