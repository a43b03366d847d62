#![doc = include_str!("../README.md")]

mod backoff;
pub mod bootstrap;
mod client;
mod endpoint;
pub mod federation;
mod store;
#[cfg(feature = "rustls-any")]
pub mod tls;
pub mod upstream;
mod watch;

pub use backoff::Backoff;
pub use client::Client;
pub use endpoint::{Endpoint, EndpointError};
pub use watch::{Event, Watch};
