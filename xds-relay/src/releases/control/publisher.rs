//! What the relay that publishes does by itself.

use std::time::SystemTime;

use crate::releases::act::{Instance, OnHalt, Order, Publisher, Said, Transition};
use crate::releases::candidate::{Candidate, MAY_LACK, Progress, REMOVES_MUCH};
use crate::releases::control::error::ControlError;
use crate::releases::control::{Control, NotTaken};
use crate::releases::release::Release;
use crate::releases::stage::Stages;

impl Control {
    pub(super) fn is_publisher(&self, by: Publisher) -> Result<(), ControlError> {
        if self.publisher == Some(by) { Ok(()) } else { Err(ControlError::NotThePublisher) }
    }

    /// The clock of another relay is another: stages begin anew, so that none is shorter than it is to be.
    pub(super) fn take_over(&mut self, instance: Instance, now: SystemTime) -> Transition {
        let term = self.publisher.map_or(0, |publisher| publisher.term).saturating_add(1);
        self.publisher = Some(Publisher { instance, term });
        if let Some(candidate) = &mut self.candidate {
            candidate.begin(candidate.stage, now);
        }
        Transition::TookOver
    }

    pub(super) fn publish(
        &mut self,
        release: Release,
        removes_much: bool,
        order: &Order,
        stages: &Stages,
    ) -> Transition {
        if self.refused.contains(&release) || self.stable == Some(release) {
            // An origin that says something else than the candidate does not want that any more, either.
            let was_there = self.candidate.take().is_some();
            if self.stable != Some(release) {
                self.not_taken = Some(NotTaken { release, at: order.at });
                return Transition::NotTaken;
            }
            // Nor does it want what was not taken.
            let was_not_taken = self.not_taken.take().is_some();
            return if was_there || was_not_taken { Transition::Withdrawn } else { Transition::Unchanged };
        }
        // The first one is stable at once. Who serves nothing yet takes nothing away: one that may lack something waits.
        let is_first = self.stable.is_none();
        if is_first && !removes_much {
            self.not_taken = None;
            return self.promote(release);
        }
        if self.candidate.as_ref().is_some_and(|candidate| candidate.release == release) {
            return Transition::Unchanged;
        }
        self.not_taken = None;
        let candidate = self.candidate.insert(Candidate::new(release, order.at));
        if removes_much {
            let why = if is_first { MAY_LACK } else { REMOVES_MUCH };
            candidate.progress = Progress::Halted(Said { why: why.to_owned(), ..order.said() });
            Transition::RemovesMuch
        } else if self.frozen.is_some() {
            Transition::Waits
        } else if stages.is_empty() {
            self.promote(release)
        } else {
            Transition::Opened
        }
    }

    pub(super) fn promote(&mut self, release: Release) -> Transition {
        (self.stable, self.candidate) = (Some(release), None);
        Transition::Promoted
    }

    pub(super) fn advance(
        &mut self,
        release: Release,
        now: SystemTime,
        stages: &Stages,
    ) -> Result<Transition, ControlError> {
        let frozen = self.frozen.clone();
        let candidate = self.candidate_meant(release)?;
        if let Some(frozen) = frozen {
            return Err(ControlError::Frozen(frozen));
        }
        match &candidate.progress {
            Progress::Open => {}
            Progress::Held(said) => return Err(ControlError::Held(said.clone())),
            Progress::Halted(said) => return Err(ControlError::Halted(said.clone())),
        }
        let left = candidate.left(stages, now);
        if !left.is_zero() {
            return Err(ControlError::TooEarly { left });
        }
        let next = candidate.stage.saturating_add(1);
        if next >= stages.len() {
            return Ok(self.promote(release));
        }
        candidate.begin(next, now);
        Ok(Transition::InStage(next))
    }

    fn candidate_meant(&mut self, meant: Release) -> Result<&mut Candidate, ControlError> {
        match &mut self.candidate {
            None => Err(ControlError::NoCandidate),
            Some(Candidate { release, .. }) if *release != meant => {
                Err(ControlError::OtherCandidate { is: *release, meant })
            }
            Some(candidate) => Ok(candidate),
        }
    }

    /// What halted because it removes much was had by nobody; what somebody holds is worth to be halted, too.
    pub(super) fn halt(&mut self, release: Release, then: OnHalt, order: &Order) -> Result<Transition, ControlError> {
        let candidate = self.candidate_meant(release)?;
        match then {
            OnHalt::Rollback => {
                self.candidate = None;
                self.refuse(release);
                Ok(Transition::RolledBack)
            }
            OnHalt::Hold if matches!(candidate.progress, Progress::Halted(_)) => Ok(Transition::Unchanged),
            OnHalt::Hold => {
                candidate.progress = Progress::Halted(order.said());
                Ok(Transition::Halted)
            }
        }
    }
}
