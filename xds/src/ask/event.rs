//! What is told of what was asked for.

use bytes::Bytes;
use xdstp_cache::Version;
use xdstp_client::Error;
use xdstp_uri::ResourceName;

/// What happened, with the place of the server that it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) server: Option<usize>,
    /// What was asked for, or what came; none where it is about all that the server has.
    pub(crate) name: Option<String>,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A resource is new or changed.
    Put {
        version: Version,
        any: Bytes,
        /// It is from before, and the server did not say yet that it is so.
        stale: bool,
    },
    /// A resource is gone.
    Removed,
    /// A collection is known.
    Answered,
    /// It is not to be had.
    Error(Failure),
    /// What was printed of the server, or under the name, may be out of date, because of this; or it is not any more.
    Ambient(Option<Failure>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// For people, with the name of what failed.
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no stream to the server.
    Unreachable,
    /// It cannot be asked for: the name is none, or not one of this type, or nobody is known to have it.
    Invalid,
    /// The server does not want to be asked.
    Refused,
    /// It does not exist.
    Absent,
    /// The server is there, and said nothing of it.
    Timeout,
}

impl Failure {
    /// Of something that is called so by who asked for it.
    pub(super) fn of(error: &Error, asked: &str, name: &ResourceName) -> Self {
        let (kind, message) = match error {
            error if error.is_absence() => (Kind::Absent, format!("there is no {asked}")),
            Error::Timeout { .. } => (Kind::Timeout, format!("{name}: {error}")),
            Error::Invalid { .. }
            | Error::BadName { .. }
            | Error::Unresolved { .. }
            | Error::UnknownAuthority { .. } => (Kind::Invalid, format!("{name}: {error}")),
            Error::Unreachable { reason, .. } => (Kind::of_ended_stream(reason), format!("{name}: {error}")),
            _ => (Kind::Refused, format!("{name}: {error}")),
        };
        Self { kind, message }
    }
}

impl Kind {
    /// Of a stream that its server ended with these words, or that there was none of: whether it would say the same to the next.
    pub(super) fn of_ended_stream(words: &str) -> Self {
        // The client has no more than words; they begin with the status, or have it in brackets.
        const REFUSALS: [&str; 5] =
            ["FailedPrecondition: ", "InvalidArgument: ", "PermissionDenied: ", "Unauthenticated: ", "Unimplemented: "];
        let is_refusal = |status: &&str| words.starts_with(status) || words.contains(&format!("({status}"));
        if REFUSALS.iter().any(is_refusal) { Self::Refused } else { Self::Unreachable }
    }

    /// Whether it was not said if there is such a thing.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::Unreachable | Self::Refused | Self::Timeout)
    }
}
