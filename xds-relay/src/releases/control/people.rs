//! What people do.

use std::time::SystemTime;

use crate::releases::act::{Order, Transition};
use crate::releases::candidate::Progress;
use crate::releases::control::Control;
use crate::releases::control::error::ControlError;
use crate::releases::release::Release;
use crate::releases::stage::Stages;

/// How many releases are remembered that are not taken again.
const REFUSED: usize = 256;

impl Control {
    pub(super) fn stage(&mut self, at: usize, now: SystemTime, stages: &Stages) -> Result<Transition, ControlError> {
        let candidate = self.candidate.as_mut().ok_or(ControlError::NoCandidate)?;
        if let Some(frozen) = &self.frozen {
            return Err(ControlError::Frozen(frozen.clone()));
        }
        if at > stages.len() {
            return Err(ControlError::NoStage { stage: at, stages: stages.len() });
        }
        // Nobody is served a candidate where nothing is stable.
        if at == stages.len() || self.stable.is_none() {
            let release = candidate.release;
            return Ok(self.promote(release));
        }
        candidate.begin(at, now);
        candidate.progress = Progress::Open;
        Ok(Transition::InStage(at))
    }

    /// What halted is not held: that would give it to more.
    pub(super) fn hold(&mut self, order: &Order) -> Result<Transition, ControlError> {
        let candidate = self.candidate.as_mut().ok_or(ControlError::NoCandidate)?;
        match &candidate.progress {
            Progress::Halted(said) => Err(ControlError::Halted(said.clone())),
            Progress::Held(_) => Ok(Transition::Unchanged),
            Progress::Open => {
                candidate.progress = Progress::Held(order.said());
                Ok(Transition::Held)
            }
        }
    }

    pub(super) fn roll_back(
        &mut self,
        to: Option<Release>,
        is_kept: &dyn Fn(Release) -> bool,
    ) -> Result<Transition, ControlError> {
        let stable = self.stable.ok_or(ControlError::NothingStable)?;
        let to = to.unwrap_or(stable);
        if to == stable && self.candidate.is_none() {
            return Ok(Transition::Unchanged);
        }
        if to != stable && !is_kept(to) {
            return Err(ControlError::NotKept(to));
        }
        let left = self.candidate.take().map(|candidate| candidate.release);
        left.into_iter().chain(Some(stable)).filter(|left| *left != to).for_each(|left| self.refuse(left));
        self.refused.retain(|refused| *refused != to);
        self.not_taken = self.not_taken.filter(|not_taken| not_taken.release != to);
        self.stable = Some(to);
        Ok(Transition::RolledBack)
    }

    pub(super) fn refuse(&mut self, release: Release) {
        self.refused.retain(|refused| *refused != release);
        self.refused.push(release);
        let excess = self.refused.len().saturating_sub(REFUSED);
        self.refused.drain(..excess);
    }

    pub(super) fn freeze(&mut self, order: &Order) -> Result<Transition, ControlError> {
        if self.stable.is_none() {
            return Err(ControlError::NothingStable);
        }
        if self.frozen.is_some() {
            return Ok(Transition::Unchanged);
        }
        self.frozen = Some(order.said());
        Ok(Transition::Frozen)
    }

    /// Who had the candidate has what is stable since: it begins anew.
    pub(super) fn unfreeze(&mut self, now: SystemTime) -> Result<Transition, ControlError> {
        self.frozen.take().ok_or(ControlError::NotFrozen)?;
        if let Some(candidate) = &mut self.candidate {
            candidate.begin(0, now);
        }
        Ok(Transition::Unfrozen)
    }
}
