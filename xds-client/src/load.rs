//! Load reports (LRS): a program counts the requests that it sends, and servers that ask for it are told.
//!
//! [`LoadStream`] decides without I/O what is said when; a client drives it over gRPC, or by its [transport](crate::Transport).
//!
//! ```text
//! reporter   what programs hold: a reporter, its clusters and their localities
//! counts     what is counted, and not reported yet
//! stream     the stream to a server
//! drive      driving it with tokio and tonic
//! ```

mod counts;
pub(crate) mod drive;
mod error;
mod locality;
mod reporter;
mod stream;

pub use self::error::{LoadError, LoadStreamError};
pub use self::reporter::{ClusterLoad, LoadReporter, LocalityLoad};
pub(crate) use self::reporter::{Reporter, new};
pub use self::stream::LoadStream;
