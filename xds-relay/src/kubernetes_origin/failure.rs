//! Why the API server did not say what it was asked for.

use std::time::Duration;

use http::StatusCode;

/// The longest time that a server says and that counts.
const PATIENT: Duration = Duration::from_secs(60);

/// Nothing is known after it that was not before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum Failure {
    /// There is no connection, or no longer.
    #[error("{0}")]
    Unreached(String),
    /// It answered, and not with what was asked for.
    #[error("it says {status}: {message}")]
    Refused { status: StatusCode, message: String, after: Option<Duration> },
    /// What was since the version that it was asked for is not known any more, or how a list goes on.
    #[error("it does not know any more what was since")]
    Gone,
    /// What it says is not what it should be.
    #[error("it says what is no answer: {0}")]
    Bad(String),
    /// It says more at once than is taken.
    #[error("it says more than {0} bytes at once")]
    TooMuch(usize),
    /// It says nothing.
    #[error("it has said nothing for {} s", .0.as_secs())]
    Silent(Duration),
}

impl Failure {
    /// How long it asks to be left alone.
    pub(super) fn after(&self) -> Duration {
        match self {
            Self::Refused { after, .. } => after.unwrap_or_default().min(PATIENT),
            _ => Duration::ZERO,
        }
    }
}
