//! Why what is ordered is not done.

use std::time::Duration;

use crate::releases::act::Said;
use crate::releases::release::Release;

/// Why something is not done. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Another relay publishes, or this one in a later term.
    #[error("another relay publishes the releases of this scope")]
    NotThePublisher,
    /// That is for others to do: people, or the relay that publishes.
    #[error("this is not for {by} to do")]
    NotTheirs {
        /// Who wanted it.
        by: String,
    },
    /// There is no candidate.
    #[error("there is no release under way")]
    NoCandidate,
    /// Another release is the candidate.
    #[error("the release under way is {}, and not {}", .is, .meant)]
    OtherCandidate {
        /// It.
        is: Release,
        /// The one that was meant.
        meant: Release,
    },
    /// What is frozen does not go on.
    #[error("frozen by {}: {}", .0.by, .0.why)]
    Frozen(Said),
    /// The candidate is to stay in its stage.
    #[error("held by {}: {}", .0.by, .0.why)]
    Held(Said),
    /// The candidate halted.
    #[error("halted: {}", .0.why)]
    Halted(Said),
    /// Its stage is not over.
    #[error("its stage lasts another {left:?}")]
    TooEarly {
        /// How long it lasts yet.
        left: Duration,
    },
    /// There are fewer stages.
    #[error("there is no stage {}: there are {stages}", .stage.saturating_add(1))]
    NoStage {
        /// Which, from 0.
        stage: usize,
        /// How many there are.
        stages: usize,
    },
    /// There is nothing that everybody could have.
    #[error("this scope has no release yet")]
    NothingStable,
    /// It was never here, or so long ago that it is not kept.
    #[error("release {0} is not kept")]
    NotKept(Release),
    /// Nothing is frozen.
    #[error("nothing is frozen")]
    NotFrozen,
}
