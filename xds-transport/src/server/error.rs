//! What ends a stream.

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
    /// More requests than the server takes from one stream (rule 136).
    #[error("too many requests on one stream")]
    TooOften,
    /// The stream is as old as it may be: the client connects anew, elsewhere perhaps (rule 93).
    #[error("the stream is old: reconnect")]
    Aged,
}

/// Why a source does not serve a node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a node that is refused: {reason}")]
pub struct NodeError {
    reason: String,
}

impl NodeError {
    /// A node is refused because of `reason`, which the client is told.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl ProtocolError {
    /// The gRPC status code the stream ends with.
    pub fn code(&self) -> i32 {
        match self {
            Self::Malformed(_) | Self::MissingType | Self::WrongType { .. } | Self::Node(_) => 3,
            Self::TooMany { .. } | Self::TooOften => 8,
            Self::Aged => 14,
        }
    }
}
