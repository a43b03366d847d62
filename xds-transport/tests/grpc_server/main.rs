//! The gRPC server over HTTP/2 in memory, where the clock jumps when everybody waits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of a test fail by panicking"
)]

mod apart;
mod call;
mod ending;
mod plane;
mod pressure;
mod refusals;
mod requests;
mod time;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
