//! A server without I/O, and clients that say what they were told in one line each.

#![allow(dead_code, unused_imports, reason = "every test binary uses its own part")]

mod ask;
mod client;
mod lines;
mod server;

use std::time::{Duration, Instant};

use prost::Message;

pub(crate) use self::ask::Ask;
pub(crate) use self::client::Client;
pub(crate) use self::server::Server;

pub(crate) const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
pub(crate) const SCOPED_ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
pub(crate) const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// A resource payload with what any server may look at: the name, and a Cluster's reference.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payload {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) eds: Option<EdsClusterConfig>,
    #[prost(string, tag = "1000")]
    pub(crate) body: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EdsClusterConfig {
    #[prost(string, tag = "2")]
    pub service_name: String,
}

pub(crate) fn payload(name: &str, body: &str) -> Vec<u8> {
    Payload { name: name.into(), eds: None, body: body.into() }.encode_to_vec()
}

pub(crate) fn any_moment() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    Instant::now()
}

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}
