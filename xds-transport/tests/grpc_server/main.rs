//! The gRPC server over HTTP/2 in memory, where the clock jumps when everybody waits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of a test fail by panicking"
)]

mod apart;
#[cfg(feature = "rustls-any")]
mod authority;
mod beside;
mod call;
mod client_status;
mod consistent;
mod control_plane;
mod ending;
#[cfg(feature = "rustls-any")]
mod handshake;
mod load_reports;
mod node_groups;
mod plane;
mod pressure;
mod refusals;
mod requests;
#[cfg(feature = "rustls-any")]
mod resumed;
mod served;
mod streams;
mod time;
#[cfg(feature = "rustls-any")]
mod tls;
mod turns;
mod variants;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
