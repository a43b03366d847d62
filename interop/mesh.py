"""The resources of a small mesh, in Envoy's JSON form: a listener, its route, clusters and their endpoints."""

from dataclasses import dataclass, field

from ads.types import CLUSTER, ENDPOINTS, LISTENER, PREFIX, ROUTE, WRAPPER
from harness.bed import AUTHORITY
from harness.envoy import GLOBS, address

MANAGER = PREFIX + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = {"name": "router", "typed_config": {"@type": PREFIX + "envoy.extensions.filters.http.router.v3.Router"}}


def xdstp(type_url, name, authority=AUTHORITY, directory="mesh"):
    """A name in a collection of an authority."""
    return f"xdstp://{authority}/{type_url.removeprefix(PREFIX)}/{directory}/{name}"


def plain(_type_url, name):
    """An old-style name."""
    return name


@dataclass
class EnvoyMesh:
    """What an Envoy needs to serve: change a field, then tell the origin of `resources()`."""

    port: int
    backends: dict
    naming: object = plain
    revision: str = "1"
    routes: list = field(default_factory=lambda: [("/", "backend")])
    endpoints_naming: object = None

    def resources(self):
        """All of it."""
        routes = [(prefix, self.naming(CLUSTER, name)) for prefix, name in self.routes]
        return [
            listener(self.naming(LISTENER, "front"), self.port, self.naming(ROUTE, "routes")),
            route(self.naming(ROUTE, "routes"), routes),
            *(item for name in self.backends for item in self.backend(name)),
        ]

    def backend(self, name):
        """A cluster and its endpoints."""
        service = (self.endpoints_naming or self.naming)(ENDPOINTS, name)
        metadata = {"filter_metadata": {"interop": {"revision": self.revision}}}
        return [
            cluster(self.naming(CLUSTER, name), service, metadata=metadata),
            endpoints(service, self.backends[name]),
        ]


def envoy_mesh(variant, port, **backends):
    """A mesh under the names that this kind of Envoy asks for."""
    return EnvoyMesh(port, backends, xdstp if variant == GLOBS else plain)


def grpc_mesh(backend, naming=plain, source="ads"):
    """What a gRPC client needs to reach `xds:///service`."""
    service = naming(ENDPOINTS, "endpoints")
    name = f"xdstp://{AUTHORITY}/{LISTENER.removeprefix(PREFIX)}/service" if naming is xdstp else "service"
    return [
        api_listener(name, naming(ROUTE, "routes"), source),
        route(naming(ROUTE, "routes"), [("", naming(CLUSTER, "backend"))]),
        cluster(naming(CLUSTER, "backend"), service, source),
        endpoints(service, backend),
    ]


def config_source(source="ads"):
    """Where a resource says that the next one comes from."""
    return {source: {}, "resource_api_version": "V3"}


def connection_manager(route_name, source):
    """The filter that asks for a route."""
    return {
        "@type": MANAGER,
        "stat_prefix": "front",
        "rds": {"route_config_name": route_name, "config_source": config_source(source)},
        "http_filters": [ROUTER],
    }


def listener(name, port, route_name):
    """A listener on a port."""
    manager = {"name": "http", "typed_config": connection_manager(route_name, "ads")}
    return {"@type": LISTENER, "name": name, "address": address(port), "filter_chains": [{"filters": [manager]}]}


def api_listener(name, route_name, source):
    """A listener for a gRPC client, which has no port."""
    return {"@type": LISTENER, "name": name, "api_listener": {"api_listener": connection_manager(route_name, source)}}


def route(name, routes):
    """Path prefixes to clusters; a response tells the revision of the cluster that served it."""
    revision = {"key": "x-cluster-revision", "value": "%CLUSTER_METADATA(interop:revision)%"}
    return {
        "@type": ROUTE,
        "name": name,
        "virtual_hosts": [
            {
                "name": "all",
                "domains": ["*"],
                "response_headers_to_add": [{"header": revision}],
                "routes": [{"match": {"prefix": prefix}, "route": {"cluster": to}} for prefix, to in routes],
            }
        ],
    }


def cluster(name, service, source="ads", **changes):
    """A cluster whose endpoints come over xDS."""
    return {
        "@type": CLUSTER,
        "name": name,
        "type": "EDS",
        "connect_timeout": "1s",
        "eds_cluster_config": {"eds_config": config_source(source), "service_name": service},
        **changes,
    }


def static_cluster(name, **changes):
    """A cluster that needs nothing else."""
    return {"@type": CLUSTER, "name": name, "type": "STATIC", **changes}


def endpoints(name, port):
    """One endpoint."""
    return {
        "@type": ENDPOINTS,
        "cluster_name": name,
        "endpoints": [
            {
                "locality": {"region": "loopback"},
                "load_balancing_weight": 1,
                "lb_endpoints": [{"endpoint": {"address": address(port)}}],
            }
        ],
    }


def wrapped(name, version, body):
    """A resource with a name and a version of its own."""
    return {"@type": WRAPPER, "name": name, "version": version, "resource": body}
