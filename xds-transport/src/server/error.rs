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
    /// More types or names on one stream than the server keeps.
    #[error("more than {limit} {what} on one stream")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many are served.
        limit: usize,
    },
    /// The client was away from a collection for longer than its tombstones live: it must reconnect
    /// and say what it holds.
    #[error("removals of {0} were dropped before this client was told: reconnect")]
    Behind(TypeUrl),
}

impl ProtocolError {
    /// The gRPC status code the stream ends with.
    pub fn code(&self) -> i32 {
        match self {
            Self::Malformed(_) | Self::MissingType | Self::WrongType { .. } => 3,
            Self::TooMany { .. } => 8,
            Self::Behind(_) => 14,
        }
    }
}
