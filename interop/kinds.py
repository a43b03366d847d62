"""Every resource type that Envoy takes over xDS: what makes it ask for two of them, and what it then says it holds.

A kind is a class per type. `around()` is what has to be there for Envoy to ask for `one` and `two`; `resource()` is one
of them at a revision; `held()` reads name to revision out of Envoy's own pages.
"""

import json
import zlib

from ads.types import (
    CLUSTER,
    ENDPOINTS,
    EXTENSION,
    LISTENER,
    LOCALITY_ENDPOINT,
    PREFIX,
    ROUTE,
    RUNTIME,
    SCOPED_ROUTE,
    SECRET,
    VIRTUAL_HOST,
)
from harness.envoy import OVER_ADS, address
from harness.http import get
from mesh import MANAGER, ROUTER, cluster, static_cluster, wrapped, xdstp

ONE, TWO = "one", "two"
HTTP_FILTERS = PREFIX + "envoy.extensions.filters.http."


def listener(name, port=0, **manager):
    """A listener with a connection manager; without a port it is never opened, and needs an address all the same."""
    typed = {"@type": MANAGER, "stat_prefix": name, "http_filters": [ROUTER], **manager}
    return {
        "@type": LISTENER,
        "name": name,
        "address": address(port or 10000 + zlib.crc32(name.encode()) % 10000),
        "bind_to_port": bool(port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": typed}]}],
    }


def metadata(revision):
    """Where a resource can say its revision in so many words."""
    return {"filter_metadata": {"interop": {"revision": revision}}}


def revision_of(resource):
    """What `metadata` put there."""
    return resource["metadata"]["filter_metadata"]["interop"]["revision"]


def host(revision):
    """An endpoint that stands for a revision by its port."""
    return {"endpoint": {"address": address(10000 + int(revision))}}


def host_revision(endpoint):
    """The revision of one."""
    return str(endpoint["endpoint"]["address"]["socket_address"]["port_value"] - 10000)


class Kind:
    """What most have in common."""

    bootstrap = {}
    names = {ONE: ONE, TWO: TWO}

    def around(self):
        """What refers to them."""
        return []


class Listeners(Kind):
    """LDS."""

    type_url = LISTENER

    def resource(self, name, revision):
        """A listener that answers by itself."""
        routes = {"name": "inline", "virtual_hosts": []}
        return {**listener(name, route_config=routes), "metadata": metadata(revision)}

    def held(self, envoy):
        """Those in use."""
        states = envoy.dump("dynamic_listeners")
        active = [state["active_state"]["listener"] for state in states if "active_state" in state]
        return {item["name"]: revision_of(item) for item in active}


class Clusters(Kind):
    """CDS."""

    type_url = CLUSTER

    def resource(self, name, revision):
        """A cluster without endpoints."""
        return static_cluster(name, metadata=metadata(revision))

    def held(self, envoy):
        """Those in use."""
        found = [entry["cluster"] for entry in envoy.dump("dynamic_active_clusters")]
        return {item["name"]: revision_of(item) for item in found if item["name"] in self.names}


class Routes(Kind):
    """RDS."""

    type_url = ROUTE

    def around(self):
        """A listener for each."""
        return [
            listener(f"of-{name}", rds={"route_config_name": name, "config_source": OVER_ADS}) for name in self.names
        ]

    def resource(self, name, revision):
        """A route to nowhere."""
        return {"@type": ROUTE, "name": name, "internal_only_headers": [revision]}

    def held(self, envoy):
        """Those in use."""
        found = [entry["route_config"] for entry in envoy.dump("dynamic_route_configs")]
        return {item["name"]: item["internal_only_headers"][0] for item in found if "internal_only_headers" in item}


class ScopedRoutes(Kind):
    """SRDS."""

    type_url = SCOPED_ROUTE

    def around(self):
        """One listener asks for all of them; each refers to a route."""
        fragment = {"name": "scope", "element_separator": ";", "element": {"key": "scope", "separator": "="}}
        scopes = {
            "name": "scopes",
            "scope_key_builder": {"fragments": [{"header_value_extractor": fragment}]},
            "rds_config_source": OVER_ADS,
            "scoped_rds": {"scoped_rds_config_source": OVER_ADS},
        }
        return [listener("scoped", scoped_routes=scopes), {"@type": ROUTE, "name": "routes"}]

    def resource(self, name, revision):
        """A scope."""
        key = {"fragments": [{"string_key": f"{name}-{revision}"}]}
        return {"@type": SCOPED_ROUTE, "name": name, "route_configuration_name": "routes", "key": key}

    def held(self, envoy):
        """Those in use."""
        scopes = [
            scope
            for entry in envoy.dump("dynamic_scoped_route_configs")
            for scope in entry.get("scoped_route_configs", [])
        ]
        return {item["name"]: item["key"]["fragments"][0]["string_key"].partition("-")[2] for item in scopes}


class Endpoints(Kind):
    """EDS."""

    type_url = ENDPOINTS

    def around(self):
        """A cluster for each."""
        return [cluster(f"of-{name}", name) for name in self.names]

    def resource(self, name, revision):
        """One endpoint."""
        return {"@type": ENDPOINTS, "cluster_name": name, "endpoints": [{"lb_endpoints": [host(revision)]}]}

    def held(self, envoy):
        """Those in use."""
        found = [entry["endpoint_config"] for entry in envoy.dump("dynamic_endpoint_configs", "include_eds")]
        return {
            item["cluster_name"]: host_revision(item["endpoints"][0]["lb_endpoints"][0])
            for item in found
            if item.get("endpoints") and item["cluster_name"] in self.names
        }


class Secrets(Kind):
    """SDS."""

    type_url = SECRET

    def around(self):
        """A cluster for each, whose servers it is to check."""
        return [static_cluster(f"of-{name}", transport_socket=self.socket(name)) for name in self.names]

    @staticmethod
    def socket(name):
        """TLS with what comes over xDS."""
        tls = PREFIX + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
        context = {"validation_context_sds_secret_config": {"name": name, "sds_config": OVER_ADS}}
        return {"name": "tls", "typed_config": {"@type": tls, "common_tls_context": context}}

    def resource(self, name, revision):
        """Which certificates are good."""
        return {"@type": SECRET, "name": name, "validation_context": {"verify_certificate_hash": [revision * 64]}}

    def held(self, envoy):
        """Those in use."""
        found = [entry["secret"] for entry in envoy.dump("dynamic_active_secrets")]
        return {
            item["name"]: item["validation_context"]["verify_certificate_hash"][0][0]
            for item in found
            if "validation_context" in item
        }


class Runtime(Kind):
    """RTDS."""

    type_url = RUNTIME
    bootstrap = {
        "layered_runtime": {
            "layers": [{"name": name, "rtds_layer": {"name": name, "rtds_config": OVER_ADS}} for name in (ONE, TWO)]
        }
    }

    def resource(self, name, revision):
        """A layer."""
        return {"@type": RUNTIME, "name": name, "layer": {f"interop.{name}": revision}}

    def held(self, envoy):
        """What is set: the layers themselves are always there."""
        page = json.loads(get(envoy.admin, "/runtime").body)
        entries = {key.removeprefix("interop."): entry["final_value"] for key, entry in page["entries"].items()}
        return {name: value for name, value in entries.items() if name in self.names}


class Extensions(Kind):
    """ECDS."""

    type_url = EXTENSION

    def around(self):
        """A listener for each, with a filter that comes over xDS."""
        return [
            listener(
                f"of-{name}",
                route_config={"name": "inline"},
                http_filters=[
                    {
                        "name": name,
                        "config_discovery": {
                            "config_source": OVER_ADS,
                            "type_urls": [HTTP_FILTERS + "buffer.v3.Buffer"],
                        },
                    },
                    ROUTER,
                ],
            )
            for name in self.names
        ]

    def resource(self, name, revision):
        """The filter."""
        buffer = {"@type": HTTP_FILTERS + "buffer.v3.Buffer", "max_request_bytes": int(revision)}
        return {"@type": EXTENSION, "name": name, "typed_config": buffer}

    def held(self, envoy):
        """Those in use."""
        found = [entry["ecds_filter"] for entry in envoy.dump("ecds_filters")]
        return {item["name"]: str(item["typed_config"]["max_request_bytes"]) for item in found}


class VirtualHosts(Kind):
    """VHDS."""

    type_url = VIRTUAL_HOST
    names = {ONE: f"routes/{ONE}", TWO: f"routes/{TWO}"}

    def __init__(self, port):
        self.port = port

    def around(self):
        """A listener whose virtual hosts are asked for when a request needs them."""
        on_demand = {"name": "on_demand", "typed_config": {"@type": HTTP_FILTERS + "on_demand.v3.OnDemand"}}
        source = {"route_config_name": "routes", "config_source": OVER_ADS}
        return [
            listener("front", self.port, rds=source, http_filters=[on_demand, ROUTER]),
            {"@type": ROUTE, "name": "routes", "vhds": {"config_source": OVER_ADS}},
        ]

    def resource(self, name, revision):
        """A host that answers by itself."""
        answer = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": revision}}}
        return {"@type": VIRTUAL_HOST, "name": self.names[name], "domains": [name], "routes": [answer]}

    def answers(self, host):
        """The status of a request to a host."""
        return get(self.port, host=host).status

    def held(self, envoy):
        """Those in use."""
        hosts = [
            item
            for entry in envoy.dump("dynamic_route_configs")
            for item in entry["route_config"].get("virtual_hosts", [])
        ]
        return {
            item["domains"][0]: item["routes"][0]["direct_response"]["body"]["inline_string"] for item in hosts
        }


class LocalityEndpoints(Kind):
    """LEDS."""

    type_url = LOCALITY_ENDPOINT
    names = {name: xdstp(LOCALITY_ENDPOINT, name) for name in (ONE, TWO)}

    def around(self):
        """A cluster with a locality whose endpoints are a collection."""
        collection = {"leds_config": OVER_ADS, "leds_collection_name": xdstp(LOCALITY_ENDPOINT, "*")}
        locality = {"locality": {"region": "loopback"}, "leds_cluster_locality_config": collection}
        return [
            cluster("backend", "backend"),
            {"@type": ENDPOINTS, "cluster_name": "backend", "endpoints": [{**locality, "load_balancing_weight": 1}]},
        ]

    def resource(self, name, revision):
        """An endpoint, which has no name inside: its port tells name and revision."""
        body = {"@type": LOCALITY_ENDPOINT, **host(int(revision) + 10 * (name == TWO))}
        return wrapped(self.names[name], revision, body)

    def held(self, envoy):
        """Those in use."""
        found = [entry["endpoint_config"] for entry in envoy.dump("dynamic_endpoint_configs", "include_eds")]
        numbers = [
            int(host_revision(item))
            for entry in found
            for locality in entry.get("endpoints", [])
            for item in locality.get("lb_endpoints", [])
        ]
        return {(TWO if number > 10 else ONE): str(number % 10) for number in numbers if 0 < number < 20}
