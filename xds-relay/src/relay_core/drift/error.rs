//! Why an origin is not asked once more.

use std::fmt;

/// There is nothing that what clients are served can be compared with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriftError {
    /// It is not said which origin.
    #[error("origin: expected the name of an origin, as in `?origin=NAME`; {0}")]
    NoName(Askable),
    /// There is none of that name.
    #[error("it is not there: no origin is called `{name}`; {askable}")]
    NoOrigin {
        /// The name.
        name: String,
        /// Those that there are.
        askable: Askable,
    },
    /// All that it has is there: nobody else can be asked.
    #[error(
        "origin `{name}` ({kind}) is asked for nothing: the relay has all of it, and it cannot be compared; {askable}"
    )]
    NotAsked {
        /// Its name.
        name: String,
        /// What it is.
        kind: &'static str,
        /// Those that can be asked.
        askable: Askable,
    },
}

/// The origins that can be asked, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Askable(pub Vec<String>);

impl fmt::Display for Askable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("there is none that can be asked"),
            names => write!(f, "those that can be asked: {}", names.join(", ")),
        }
    }
}
