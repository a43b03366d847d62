#![doc = include_str!("../README.md")]

mod backoff;
mod endpoint;
pub mod upstream;

pub use backoff::Backoff;
pub use endpoint::{Endpoint, EndpointError};
