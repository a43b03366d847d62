//! Load reports (LRS): a program counts the requests that it sends, and servers that ask for it are told.
//!
//! [`LoadStream`] decides without I/O what is said when; a client drives it over gRPC, or by its [transport](crate::Transport).
//!
//! ```text
//! reporter   what programs hold: a reporter, its clusters and their localities
//! counts     what is counted, and not reported yet: of clusters
//! cluster    of the localities of one
//! locality   of one locality
//! endpoints  of its endpoints
//! calls      of either: how many there were, and are
//! sums       of either, and of a cluster: by names that are others' own
//! bounds     how much is counted apart, and what was left out
//! ask        what a report is to be of
//! stream     the stream to a server
//! drive      driving it with tokio and tonic
//! ```

mod ask;
mod bounds;
mod calls;
mod cluster;
mod counts;
pub(crate) mod drive;
mod endpoints;
mod error;
mod locality;
mod reporter;
mod stream;
mod sums;

pub use self::bounds::LeftOut;
pub(crate) use self::bounds::Tell;
pub use self::error::{LoadError, LoadStreamError};
pub use self::reporter::{ClusterLoad, EndpointLoad, LoadReporter, LocalityLoad};
pub(crate) use self::reporter::{Reporter, new};
pub use self::stream::LoadStream;
