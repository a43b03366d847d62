//! The names that types had in xDS v2, and those that they have now.

/// What endpoints are called: requests for them name clusters, always.
pub(super) const ENDPOINTS: [&str; 2] = [
    "type.googleapis.com/envoy.api.v2.ClusterLoadAssignment",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
];

const TWINS: [(&str, &str); 8] = [
    ("envoy.api.v2.Cluster", "envoy.config.cluster.v3.Cluster"),
    ("envoy.api.v2.ClusterLoadAssignment", "envoy.config.endpoint.v3.ClusterLoadAssignment"),
    ("envoy.api.v2.Listener", "envoy.config.listener.v3.Listener"),
    ("envoy.api.v2.RouteConfiguration", "envoy.config.route.v3.RouteConfiguration"),
    ("envoy.api.v2.ScopedRouteConfiguration", "envoy.config.route.v3.ScopedRouteConfiguration"),
    ("envoy.api.v2.route.VirtualHost", "envoy.config.route.v3.VirtualHost"),
    ("envoy.api.v2.auth.Secret", "envoy.extensions.transport_sockets.tls.v3.Secret"),
    ("envoy.service.discovery.v2.Runtime", "envoy.service.runtime.v3.Runtime"),
];

/// A type URL of xDS v2.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Version2 {
    /// The URL of the type as v3 has it.
    Renamed(String),
    /// None that is known here.
    Unknown,
}

/// What a type URL of v2 is in v3; `None`: it is none of v2.
pub(super) fn of_version_2(type_url: &str) -> Option<Version2> {
    let (host, name) = type_url.rsplit_once('/')?;
    if let Some((_, twin)) = TWINS.iter().find(|(old, _)| *old == name) {
        return Some(Version2::Renamed(format!("{host}/{twin}")));
    }
    name.starts_with("envoy.api.v2.").then_some(Version2::Unknown)
}
