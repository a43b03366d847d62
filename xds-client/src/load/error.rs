//! Why no load is reported.

use std::sync::Arc;

use thiserror::Error;

/// Why there is nobody to report load to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Load goes to servers of the bootstrap only.
    #[error("load is reported to servers of the bootstrap, and {server:?} is none of those in use")]
    UnknownServer {
        /// What is none.
        server: Arc<str>,
    },
    /// What is watched has no server: the watch cannot be, or is of an origin that the program [brought](crate::Builder::origin).
    #[error("load is reported to the server of what is watched, and what is watched here has none")]
    NotWatched,
    /// The client's transport has no streams for it.
    #[error("{server}: the client's transport opens no streams of load reports")]
    Unsupported {
        /// The server.
        server: Arc<str>,
    },
}

/// What a server says that is of no use.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LoadStreamError {
    /// It cannot be read.
    #[error("a LoadStatsResponse that cannot be read: {0}")]
    Unreadable(#[from] prost::DecodeError),
    /// An interval that is none.
    #[error("load_reporting_interval: {seconds} s and {nanos} ns are no interval")]
    Interval {
        /// Its seconds.
        seconds: i64,
        /// Its nanoseconds.
        nanos: i32,
    },
}
