//! The gRPC methods of xDS, as data: which protocol and which type each one means.

use xdstp_cache::TypeUrl;

use crate::Protocol;

/// The aggregated method of a protocol.
///
/// ```
/// use xds_transport::grpc::methods;
/// use xds_transport::Protocol;
///
/// assert!(methods::aggregated(Protocol::Delta).ends_with("DeltaAggregatedResources"));
/// ```
pub fn aggregated(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        Protocol::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    }
}

/// What a method serves: a protocol, and the one type of a per-type service (rules 1, 2).
pub fn served(path: &str) -> Option<(Protocol, Option<TypeUrl>)> {
    if let Some(protocol) = [Protocol::Sotw, Protocol::Delta].into_iter().find(|protocol| aggregated(*protocol) == path)
    {
        return Some((protocol, None));
    }
    PER_TYPE.iter().find_map(|(service, of, type_url)| {
        let method = path.strip_prefix('/')?.strip_prefix(service)?.strip_prefix('/')?;
        let protocol = match method.split_at_checked(method.len().checked_sub(of.len())?)? {
            ("Stream", rest) if rest == *of && !DELTA_ONLY.contains(of) => Protocol::Sotw,
            ("Delta", rest) if rest == *of => Protocol::Delta,
            _ => return None,
        };
        Some((protocol, Some(TypeUrl::from(*type_url))))
    })
}

/// Rule 2: these have no SotW method.
const DELTA_ONLY: [&str; 2] = ["VirtualHosts", "LocalityEndpoints"];

const PER_TYPE: [(&str, &str, &str); 10] = [
    (
        "envoy.service.listener.v3.ListenerDiscoveryService",
        "Listeners",
        "type.googleapis.com/envoy.config.listener.v3.Listener",
    ),
    (
        "envoy.service.route.v3.RouteDiscoveryService",
        "Routes",
        "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    ),
    (
        "envoy.service.route.v3.ScopedRoutesDiscoveryService",
        "ScopedRoutes",
        "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
    ),
    (
        "envoy.service.route.v3.VirtualHostDiscoveryService",
        "VirtualHosts",
        "type.googleapis.com/envoy.config.route.v3.VirtualHost",
    ),
    (
        "envoy.service.cluster.v3.ClusterDiscoveryService",
        "Clusters",
        "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    ),
    (
        "envoy.service.endpoint.v3.EndpointDiscoveryService",
        "Endpoints",
        "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    ),
    (
        "envoy.service.endpoint.v3.LocalityEndpointDiscoveryService",
        "LocalityEndpoints",
        "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
    ),
    (
        "envoy.service.secret.v3.SecretDiscoveryService",
        "Secrets",
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
    ),
    (
        "envoy.service.runtime.v3.RuntimeDiscoveryService",
        "Runtime",
        "type.googleapis.com/envoy.service.runtime.v3.Runtime",
    ),
    (
        "envoy.service.extension.v3.ExtensionConfigDiscoveryService",
        "ExtensionConfigs",
        "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_001_the_method_picks_the_protocol() {
        let clusters = Some(TypeUrl::from("type.googleapis.com/envoy.config.cluster.v3.Cluster"));
        assert_eq!(served(aggregated(Protocol::Sotw)), Some((Protocol::Sotw, None)));
        let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters";
        assert_eq!(served(path), Some((Protocol::Delta, clusters.clone())));
        let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters";
        assert_eq!(served(path), Some((Protocol::Sotw, clusters)));
    }

    #[test]
    fn rule_002_virtual_hosts_and_localities_are_delta_only() {
        assert_eq!(served("/envoy.service.route.v3.VirtualHostDiscoveryService/StreamVirtualHosts"), None);
        assert!(served("/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts").is_some());
    }
}
