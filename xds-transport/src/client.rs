//! The client's side of a stream.
//!
//! A [`Stream`] holds one session a type. It does no I/O and reads no clock: bytes and times come in by
//! `handle_*`, requests, events and the next time go out by `poll_*`. It outlives the streams of its transport:
//! after [`disconnected`](Stream::disconnected) and [`connected`](Stream::connected) it asks again for all that is
//! wanted, and tells the origin what it has.
//!
//! ```
//! use std::{sync::Arc, time::Instant};
//! use bytes::Bytes;
//! use xds_transport::{Protocol, TypeRules, client::{Command, Interest, Stream}};
//!
//! let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
//! let mut stream = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
//! let now = Instant::now();
//! stream.apply(Command::Subscribe(clusters.into(), Interest::Wildcard));
//! stream.connected(now);
//! let request = stream.poll_transmit(now).unwrap();
//! assert!(request.windows(clusters.len()).any(|part| part == clusters.as_bytes()));
//! assert!(stream.poll_transmit(now).is_none());
//! ```

mod command;
mod error;
mod failure;
mod intern;
mod over;
mod per_type;
mod responses;
mod room;
mod selecting;
mod session;
mod stream;
mod update;

#[cfg(test)]
mod tests;

pub use command::{Command, Verdict};
pub use error::ProtocolError;
pub use intern::Intern;
pub use room::{DEFAULT_MAX_REQUEST_SIZE, name_size, room_for_names};
pub use selecting::Overlapping;
pub use session::Silence;
pub use stream::Stream;
pub use update::{Changed, Event, Update, UpdateId};
pub use xdstp_cache::Interest;
