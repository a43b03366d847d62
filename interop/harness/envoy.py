"""Drives a real Envoy."""

import importlib.util
import json
from pathlib import Path

from harness.http import get
from harness.polling import equal, until
from harness.processes import Process, free_port

# The wheel installs a launcher in Python; the binary itself is what has the process id we want.
BINARY = Path(importlib.util.find_spec("envoy").submodule_search_locations[0]) / "_bin" / "envoy"

DELTA, SOTW, GLOBS = "envoy_delta_wildcard", "envoy_sotw_wildcard", "envoy_delta_xdstp_globs"
VARIANTS = (DELTA, SOTW, GLOBS)
OVER_ADS = {"ads": {}, "resource_api_version": "V3"}


class Envoy:
    """An Envoy that knows nothing but where to ask."""

    def __init__(self, folder, name, variant, xds_port, listener_port, node, cluster, locators, more=None, tls=None):
        self.name, self.folder = name, folder
        self.listener_port, self.admin = listener_port, free_port()
        self.file = folder / f"{name}.json"
        document = bootstrap(variant, self.admin, xds_port, node, cluster, locators, tls) | (more or {})
        self.file.write_text(json.dumps(document, indent=1))
        self.process = None

    def start(self):
        """Starts it and waits for its admin page, not for its configuration."""
        command = [BINARY, "--config-path", self.file, "--concurrency", "1", "--disable-hot-restart"]
        self.process = Process(self.name, command, self.folder / f"{self.name}.log")
        until("Envoy's admin page answers", lambda: get(self.admin, "/server_info"), within=20)

    def live(self):
        """Whether it has finished starting."""
        return get(self.admin, "/ready").status == 200

    def request(self, path="/"):
        """Sends a request through it: the backend's tag, or an error that says what came instead."""
        return self.response(path).body

    def cluster_revision(self):
        """The revision of the cluster that serves a request: the mesh puts it into the cluster's metadata."""
        return self.response("/").headers["x-cluster-revision"]

    def response(self, path):
        """The response to a request that was served."""
        response = get(self.listener_port, path)
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {response.body[:200]}")
        return response

    def stat(self, name):
        """One counter or gauge."""
        lines = get(self.admin, f"/stats?filter=^{name}$").body.splitlines()
        return int(lines[0].rpartition(": ")[2]) if lines else 0

    def clusters(self):
        """The names of the clusters in use that came over xDS."""
        return {entry["cluster"]["name"] for entry in self.dump("dynamic_active_clusters")}

    def active(self):
        """How many they are: where they are many, to list them all is work for Envoy."""
        return self.stat("cluster_manager.active_clusters") - 1

    def dump(self, resource, *more):
        """The entries of one field of its configuration dump."""
        path = f"/config_dump?{'&'.join([f'resource={resource}', *more])}"
        return json.loads(get(self.admin, path, timeout=30).body).get("configs", [])

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()


def nothing_was_removed(envoy):
    """What Envoy counted, of clusters and listeners; a gRPC client has no such count."""
    for stat in ("cluster_manager.cluster_removed", "listener_manager.listener_removed"):
        equal(envoy.stat(stat), 0, stat)


def bootstrap(variant, admin, xds_port, node, cluster, locators, tls=None):
    """A bootstrap whose listeners and clusters all come over one aggregated stream; by TLS with an authority, a certificate
    and a key."""
    dynamic = {
        "ads_config": {
            "api_type": "GRPC" if variant == SOTW else "DELTA_GRPC",
            "transport_api_version": "V3",
            "set_node_on_first_message_only": True,
            "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}],
        },
        "lds_config": OVER_ADS,
        "cds_config": OVER_ADS,
    }
    if variant == GLOBS:
        dynamic |= locators
    secured = {"transport_socket": transport_socket(*tls)} if tls else {}
    http2 = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "node": {"id": node, "cluster": cluster},
        "admin": {"address": address(admin)},
        "dynamic_resources": dynamic,
        "static_resources": {
            "clusters": [
                {
                    "name": "xds",
                    "type": "STATIC",
                    **secured,
                    "typed_extension_protocol_options": {
                        http2: {
                            "@type": f"type.googleapis.com/{http2}",
                            "explicit_http_config": {"http2_protocol_options": {}},
                        }
                    },
                    "load_assignment": {
                        "cluster_name": "xds",
                        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(xds_port)}}]}],
                    },
                }
            ]
        },
    }


def transport_socket(ca, certificate, key):
    """TLS that trusts an authority, and shows a certificate."""
    tls = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    identity = {"certificate_chain": {"filename": certificate}, "private_key": {"filename": key}}
    context = {
        "alpn_protocols": ["h2"],
        "tls_certificates": [identity],
        "validation_context": {"trusted_ca": {"filename": ca}},
    }
    return {"name": "tls", "typed_config": {"@type": tls, "common_tls_context": context}}


def address(port):
    """A loopback address in Envoy's form, or the path of a unix socket."""
    if isinstance(port, str):
        return {"pipe": {"path": port}}
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
