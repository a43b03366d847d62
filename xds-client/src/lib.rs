#![doc = include_str!("../README.md")]

mod backoff;
pub mod bootstrap;
mod client;
mod config_source;
mod endpoint;
#[cfg(feature = "envoy")]
pub mod envoy;
mod error;
mod event;
pub mod federation;
mod files;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "lrs")]
mod load;
mod resolver;
mod resource;
#[cfg(feature = "state")]
pub mod state;
#[cfg(any(test, feature = "testing"))]
pub mod test;
#[cfg(feature = "rustls-any")]
pub mod tls;
#[cfg(feature = "rustls-any")]
pub mod token;
mod unix_address;
pub mod upstream;
mod watch;

pub use backoff::Backoff;
#[cfg(feature = "state")]
pub use client::NotKept;
#[cfg(feature = "metrics")]
pub use client::Recorded;
pub use client::{BuildError, Builder, Client, Metrics, OnDemand, ResourceCount, Single, Transport};
pub use config_source::{AdjacentSource, ConfigSource, ConfigSourceError};
pub use endpoint::{Endpoint, EndpointError, ServerError};
pub use error::Error;
pub use event::Event;
pub use federation::{Reason, ResourceStatus};
pub use files::{Decode, DiscoveryResponse, Files};
#[cfg(feature = "http")]
pub use http::{Http, HttpError};
#[cfg(feature = "lrs")]
pub use load::{
    ClusterLoad, EndpointLoad, LeftOut, LoadError, LoadReporter, LoadStream, LoadStreamError, LocalityLoad,
};
pub use resource::{Content, Raw, Resource};
pub use unix_address::{UnixAddress, UnixAddressError};
pub use watch::Watch;
