//! Envoy's resources, typed: messages of the crate `envoy-types`, as this crate's version of prost reads them.
//!
//! ```no_run
//! use xdstp_client::envoy::Listener;
//! use xdstp_client::{Client, Event, bootstrap::Bootstrap};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let mut watch = Client::from_bootstrap(Bootstrap::from_env()?)?.watch_as::<Listener>("edge");
//! while let Event::Put { resource, .. } = watch.changed().await {
//!     println!("{} has {} filter chains", resource.name, resource.filter_chains.len());
//! }
//! # Ok(())
//! # }
//! ```

/// All of the crate, for what is in these messages.
pub use envoy_types;
pub use envoy_types::pb::envoy::config::cluster::v3::Cluster;
pub use envoy_types::pb::envoy::config::core::v3::TypedExtensionConfig;
pub use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
pub use envoy_types::pb::envoy::config::listener::v3::Listener;
pub use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration, VirtualHost};
pub use envoy_types::pb::envoy::extensions::transport_sockets::tls::v3::Secret;
pub use envoy_types::pb::envoy::service::runtime::v3::Runtime;
