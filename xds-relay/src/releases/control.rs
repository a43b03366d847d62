//! Which release everybody is served, which one some are, and what may become of them: without I/O.

use std::time::SystemTime;

use xds_transport::wire::Node;

use self::error::ControlError;
use crate::releases::act::{Act, By, Order, Publisher, Said, Transition};
use crate::releases::candidate::{Candidate, Progress};
use crate::releases::release::Release;
use crate::releases::stage::Stages;

pub(crate) mod error;
#[cfg(test)]
mod exploration;
mod people;
mod publisher;
#[cfg(test)]
mod tests;

/// The control value of a scope. It is small, it is all that relays must agree on, and [`Order`]s alone change it.
///
/// What holds, whatever is ordered: nobody is served a candidate who is in none of its stages so far, nor while there is a freeze; a
/// freeze ends by [`Act::Unfreeze`] alone; and nobody publishes who is not the publisher of the last term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control {
    pub(crate) stable: Option<Release>,
    pub(crate) candidate: Option<Candidate>,
    pub(crate) frozen: Option<Said>,
    /// The last one is the latest.
    pub(crate) refused: Vec<Release>,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) not_taken: Option<NotTaken>,
}

/// What the origin had last, and is not taken: it was left by a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NotTaken {
    /// The release.
    pub release: Release,
    /// When it was not, by the clock of whoever publishes; whole milliseconds.
    pub at: SystemTime,
}

impl Control {
    /// What everybody is served who is served no candidate; none before the first release.
    pub fn stable(&self) -> Option<Release> {
        self.stable
    }

    /// The release that is under way, or waits.
    pub fn candidate(&self) -> Option<&Candidate> {
        self.candidate.as_ref()
    }

    /// What is stable, and the candidate.
    pub(crate) fn named(&self) -> impl Iterator<Item = Release> + use<> {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.release);
        [self.stable, candidate].into_iter().flatten()
    }

    /// Who froze it.
    pub fn frozen(&self) -> Option<&Said> {
        self.frozen.as_ref()
    }

    /// The releases that are not taken again, the latest last: the last 256 that a rollback left.
    pub fn refused(&self) -> &[Release] {
        &self.refused
    }

    /// The release that the origin had last, if it is not taken.
    pub fn not_taken(&self) -> Option<NotTaken> {
        self.not_taken
    }

    /// Who publishes.
    pub fn publisher(&self) -> Option<Publisher> {
        self.publisher
    }

    /// When the candidate may [advance](Act::Advance) to the next stage: none if it may not by itself.
    pub fn due(&self, stages: &Stages) -> Option<SystemTime> {
        let candidate = self.candidate.as_ref().filter(|_| self.frozen.is_none())?;
        let is_open = candidate.progress == Progress::Open;
        is_open.then(|| candidate.since.checked_add(stages.hold(candidate.stage))).flatten()
    }

    /// Which release a node is served; `has` is the one that its stream was served last. None before the first release.
    pub fn release_for(&self, stages: &Stages, node: &Node, has: Option<Release>) -> Option<Release> {
        let of_candidate = self.candidate.as_ref().filter(|candidate| {
            let may_be_had = match candidate.progress {
                Progress::Open | Progress::Held(_) => true,
                Progress::Halted(_) => has == Some(candidate.release),
            };
            self.frozen.is_none() && may_be_had && stages.contains(candidate.stage, candidate.release, node)
        });
        // Nobody is served a candidate where nothing is stable.
        let stable = self.stable?;
        Some(of_candidate.map_or(stable, |candidate| candidate.release))
    }

    /// Does what is ordered. `is_kept` says which releases there still are.
    ///
    /// # Errors
    /// Why it is not done; then nothing has changed.
    pub fn apply(
        &mut self,
        order: &Order,
        stages: &Stages,
        is_kept: &dyn Fn(Release) -> bool,
    ) -> Result<Transition, ControlError> {
        match (&order.act, &order.by) {
            (Act::TakeOver, By::Instance(instance)) => Ok(self.take_over(*instance, order.at)),
            (Act::Publish { release, removes_much }, By::Publisher(by)) => {
                self.is_publisher(*by)?;
                Ok(self.publish(*release, *removes_much, order, stages))
            }
            (Act::Advance { release }, By::Publisher(by)) => {
                self.is_publisher(*by)?;
                self.advance(*release, order.at, stages)
            }
            (Act::Halt { release, then }, By::Publisher(by)) => {
                self.is_publisher(*by)?;
                self.halt(*release, *then, order)
            }
            (Act::Stage { at }, By::Person(_)) => self.stage(*at, order.at, stages),
            (Act::Hold, By::Person(_)) => self.hold(order),
            (Act::Rollback { to }, By::Person(_)) => self.roll_back(*to, is_kept),
            (Act::Freeze, By::Person(_)) => self.freeze(order),
            (Act::Unfreeze, By::Person(_)) => self.unfreeze(order.at),
            (_, by) => Err(ControlError::NotTheirs { by: by.to_string() }),
        }
    }
}
