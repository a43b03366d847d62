//! Envoy's own types: what is special about each, and its service.

use crate::types::envoy_references as references;
use crate::types::reference::Reference;
use crate::types::rule::{Dependent, TypeRule};

/// The rules of its types, but for those that differ in nothing.
pub(crate) fn rules() -> [(&'static str, TypeRule); 9] {
    let clusters_and_endpoints_again = vec![Dependent {
        type_url: ENDPOINTS.into(),
        // Cluster.eds_cluster_config.service_name, else Cluster.name
        reference_paths: vec![vec![3, 2], vec![1]],
    }];
    let plain = TypeRule::default;
    let wildcard = || TypeRule { full_state_in_sotw: true, legacy_wildcard: true, ..plain() };
    let gated = |rank| TypeRule { rank, waits_for_lower_ranks: true, ..plain() };
    [
        // The draft of TP2: by what a client selects is asked for before anything that is selected by it.
        (DYNAMIC_PARAMETERS, TypeRule { rank: 0, never_shared: true, name_path: Vec::new(), ..plain() }),
        (CLUSTERS, TypeRule { rank: 0, removals_last: true, dependents: clusters_and_endpoints_again, ..wildcard() }),
        (ENDPOINTS, TypeRule { rank: 1, removals_last: true, skip_known_on_resume: false, ..plain() }),
        (LOCALITY_ENDPOINTS, TypeRule { rank: 2, delta_only: true, name_path: Vec::new(), ..plain() }),
        (SECRETS, TypeRule { rank: 3, ..plain() }),
        (LISTENERS, TypeRule { rank: 4, waits_for_lower_ranks: true, ..wildcard() }),
        (SCOPED_ROUTES, TypeRule { rank: 5, waits_for_lower_ranks: true, ..wildcard() }),
        (ROUTES, gated(6)),
        // Rule 107: a virtual host is asked for by its route configuration and host, and has a name of its own.
        (
            VIRTUAL_HOSTS,
            TypeRule {
                delta_only: true,
                legacy_wildcard: true,
                absent_by_alias: true,
                name_path: Vec::new(),
                ..gated(7)
            },
        ),
    ]
}

/// Where they name each other.
pub(crate) fn references() -> [(&'static str, Vec<Reference>); 3] {
    let mut of_clusters = references::cluster_secrets(SECRETS);
    of_clusters.push(references::endpoints(ENDPOINTS));
    let mut of_listeners = references::listener_routes(ROUTES);
    of_listeners.extend(references::listener_secrets(SECRETS));
    [(CLUSTERS, of_clusters), (LISTENERS, of_listeners), (SCOPED_ROUTES, vec![references::scope_routes(ROUTES)])]
}

/// The per-type services: of each type, the service, and what its methods call the resources.
pub(crate) const SERVICES: [(&str, &str, &str); 11] = [
    (LISTENERS, "envoy.service.listener.v3.ListenerDiscoveryService", "Listeners"),
    (ROUTES, "envoy.service.route.v3.RouteDiscoveryService", "Routes"),
    (SCOPED_ROUTES, "envoy.service.route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes"),
    (VIRTUAL_HOSTS, "envoy.service.route.v3.VirtualHostDiscoveryService", "VirtualHosts"),
    (CLUSTERS, "envoy.service.cluster.v3.ClusterDiscoveryService", "Clusters"),
    (ENDPOINTS, "envoy.service.endpoint.v3.EndpointDiscoveryService", "Endpoints"),
    (LOCALITY_ENDPOINTS, "envoy.service.endpoint.v3.LocalityEndpointDiscoveryService", "LocalityEndpoints"),
    (SECRETS, "envoy.service.secret.v3.SecretDiscoveryService", "Secrets"),
    (RUNTIME, "envoy.service.runtime.v3.RuntimeDiscoveryService", "Runtime"),
    (
        DYNAMIC_PARAMETERS,
        "envoy.service.dynamic_parameters.v3.DynamicParametersDiscoveryService",
        "DynamicParameterConstraints",
    ),
    (EXTENSIONS, "envoy.service.extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs"),
];

const DYNAMIC_PARAMETERS: &str =
    "type.googleapis.com/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap";
const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const SCOPED_ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
const VIRTUAL_HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const LOCALITY_ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint";
const SECRETS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RUNTIME: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";
const EXTENSIONS: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
