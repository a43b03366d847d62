#![doc = include_str!("../README.md")]

mod backoff;
pub mod bootstrap;
mod client;
mod endpoint;
pub mod federation;
mod store;
#[cfg(feature = "rustls-any")]
pub mod tls;
#[cfg(feature = "rustls-any")]
pub mod token;
mod unix_address;
pub mod upstream;
mod watch;

pub use backoff::Backoff;
pub use client::Client;
pub use endpoint::{Endpoint, EndpointError};
pub use unix_address::{UnixAddress, UnixAddressError};
pub use watch::{Event, Watch};
