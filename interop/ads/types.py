"""The resource types the suite uses, and what the protocol says about them."""

import importlib

PREFIX = "type.googleapis.com/"
LISTENER = PREFIX + "envoy.config.listener.v3.Listener"
LISTENER_COLLECTION = PREFIX + "envoy.config.listener.v3.ListenerCollection"
ROUTE = PREFIX + "envoy.config.route.v3.RouteConfiguration"
CLUSTER = PREFIX + "envoy.config.cluster.v3.Cluster"
ENDPOINTS = PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
LOCALITY_ENDPOINT = PREFIX + "envoy.config.endpoint.v3.LbEndpoint"
SCOPED_ROUTE = PREFIX + "envoy.config.route.v3.ScopedRouteConfiguration"
VIRTUAL_HOST = PREFIX + "envoy.config.route.v3.VirtualHost"
SECRET = PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret"
RUNTIME = PREFIX + "envoy.service.runtime.v3.Runtime"
EXTENSION = PREFIX + "envoy.config.core.v3.TypedExtensionConfig"
WRAPPER = PREFIX + "envoy.service.discovery.v3.Resource"

# In SotW a response of these types is the whole state.
FULL_STATE = frozenset({LISTENER, CLUSTER, SCOPED_ROUTE})

# A client that names nothing of these wants everything.
LEGACY_WILDCARD = FULL_STATE | {VIRTUAL_HOST}

# Make before break: what is referred to goes before what refers to it.
ADS_ORDER = (CLUSTER, ENDPOINTS, LISTENER, SCOPED_ROUTE, ROUTE)

WRAPPED_IN_SOTW = "xds.config.resource-in-sotw"

# Importing a generated module registers its messages, so that JSON with "@type" can be turned into an Any.
for module in (
    "envoy.config.cluster.v3.cluster_pb2",
    "envoy.config.endpoint.v3.endpoint_pb2",
    "envoy.config.listener.v3.listener_pb2",
    "envoy.config.route.v3.route_pb2",
    "envoy.config.route.v3.scoped_route_pb2",
    "envoy.extensions.filters.http.buffer.v3.buffer_pb2",
    "envoy.extensions.filters.http.on_demand.v3.on_demand_pb2",
    "envoy.extensions.filters.http.router.v3.router_pb2",
    "envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2",
    "envoy.extensions.transport_sockets.tls.v3.secret_pb2",
    "envoy.extensions.transport_sockets.tls.v3.tls_pb2",
    "envoy.service.discovery.v3.discovery_pb2",
    "envoy.service.runtime.v3.rtds_pb2",
):
    importlib.import_module(module)


def short(type_url):
    """`Cluster` for the type URL of a Cluster: how traces and messages name a type."""
    return type_url.rsplit(".", 1)[-1]
