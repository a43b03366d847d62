//! What can be wrong with releases, and with what is ordered of them.

use crate::releases::{ReleaseError, StoredError};

/// Why there are no releases of a scope, or what was ordered is not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RolloutError {
    /// Its origin is asked for what clients want, so that it is never known what all of it is.
    #[error(
        "the releases of {0}: its origin is a server; expected one that is followed, or has all there is, such as files"
    )]
    Asked(String),
    /// There are none.
    #[error("there are no releases of {0}")]
    NoReleases(String),
    /// There are several, and none is named.
    #[error("there are releases of several scopes; expected one of {0}")]
    Several(String),
    /// There is no release to compare with another.
    #[error("there is nothing to compare: {0}")]
    NothingToCompare(&'static str),
    /// It was not its turn before whoever ordered it did not wait any more.
    #[error("it is not done: nobody waits for it any more")]
    GivenUp,
    /// It is for another relay.
    #[error("this is relay {is}, and another one is meant: {meant}")]
    OtherRelay {
        /// This one.
        is: String,
        /// The one that is meant.
        meant: String,
    },
    /// An order says what no such order does.
    #[error("{0}")]
    Order(&'static str),
    /// That is no release.
    #[error("`{text}`: {error}")]
    NoRelease {
        /// What was meant for one.
        text: String,
        /// Why it is not.
        error: ReleaseError,
    },
    /// They are there already.
    #[error("there are releases of {0} already")]
    Twice(String),
    /// They cannot be kept, or it is not to be.
    #[error(transparent)]
    Stored(#[from] StoredError),
}
