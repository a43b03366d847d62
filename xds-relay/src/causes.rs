//! What an error says, with what its causes say: each says only what is its own.

use std::{error::Error, iter};

/// An error with its causes, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
