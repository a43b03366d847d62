//! What ends a stream.

use std::time::Duration;

use thiserror::Error;
use xdstp_cache::TypeUrl;

/// Why a server ends a stream.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A request is not the message it should be.
    #[error("a request that does not decode: {0}")]
    Malformed(String),
    /// Rule 3: on an aggregated stream every request names its type.
    #[error("a request without a type URL on an aggregated stream")]
    MissingType,
    /// Rule 3: a stream of one type was asked for another.
    #[error("a request for {asked} on a stream of {served}")]
    WrongType {
        /// The type of the stream.
        served: TypeUrl,
        /// The type of the request.
        asked: TypeUrl,
    },
    /// The client is one that cannot be served, such as one whose node does not decode (rule 154).
    #[error(transparent)]
    Node(#[from] NodeError),
    /// More types or names on one stream than the server keeps.
    #[error("more than {limit} {what} on one stream")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many are served.
        limit: usize,
    },
    /// A request, or a type URL, a version or a node in one, longer than the server takes.
    #[error("a {what} of {length} bytes, {limit} are taken")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// What is taken, in bytes.
        limit: usize,
    },
    /// More bytes of requests that are not whole than the server keeps: no client sends more than that of this stream, nor on another of its streams more.
    #[error("more than {limit} bytes of unfinished requests on all streams")]
    TooMuch {
        /// How many are kept.
        limit: usize,
    },
    /// No request came in time.
    #[error("no request came within {within:?}")]
    NoRequest {
        /// How long it might have taken.
        within: Duration,
    },
    /// What the source does not serve this stream any more, because there is too much of it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// More requests than the server takes from one stream (rule 136).
    #[error("more requests on one stream than {burst} at once and one every {every:?}")]
    TooOften {
        /// How many are taken at once.
        burst: u32,
        /// How long it takes until another is.
        every: Duration,
    },
    /// The stream is as old as it may be: the client connects anew, elsewhere perhaps (rule 93).
    #[error("the stream is old: reconnect")]
    Aged,
}

/// Why a source does not serve a node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a node that is refused: {reason}")]
pub struct NodeError {
    reason: String,
    denied: bool,
}

impl NodeError {
    /// A node is refused because of `reason`, which the client is told.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), denied: false }
    }

    /// The same where the node is good, and this client may not say that it is one.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), denied: true }
    }
}

/// Why a source serves a stream no more: what it, or all streams together, ask for is too much.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Refused {
    reason: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    TooMuch,
    Invalid,
    Denied,
}

impl Refused {
    /// A stream is refused because of `reason`, which the client is told.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: Kind::TooMuch }
    }

    /// The same where it is not too much that it asks for, but what there cannot be.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: Kind::Invalid }
    }

    /// The same where it is what this client may not have.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: Kind::Denied }
    }
}

impl ProtocolError {
    /// The gRPC status code the stream ends with.
    pub fn code(&self) -> i32 {
        match self {
            Self::Node(NodeError { denied: true, .. }) | Self::Refused(Refused { kind: Kind::Denied, .. }) => 7,
            Self::Refused(Refused { kind: Kind::Invalid, .. })
            | Self::Malformed(_)
            | Self::MissingType
            | Self::WrongType { .. }
            | Self::Node(_) => 3,
            Self::TooMany { .. }
            | Self::TooLong { .. }
            | Self::TooMuch { .. }
            | Self::Refused(_)
            | Self::TooOften { .. } => 8,
            Self::NoRequest { .. } | Self::Aged => 14,
        }
    }
}
