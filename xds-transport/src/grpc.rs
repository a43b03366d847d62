//! xDS over gRPC: everything that needs a socket, a task or a clock.
#![allow(clippy::disallowed_methods, reason = "this module is above the layer line: clocks and tasks live here")]

#[cfg(feature = "grpc-client")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc-client")))]
pub mod client;
#[cfg(feature = "grpc-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc-server")))]
pub mod server;
#[cfg(feature = "rustls-any")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "tls", feature = "tls-aws-lc"))))]
pub mod tls;

/// tokio's clock, which tests may stop.
fn now() -> std::time::Instant {
    tokio::time::Instant::now().into_std()
}
