"""What the integration test of envoyproxy/xds-relay does, with its own two files: an Envoy behind the relay, and an origin that has
one snapshot after the other, and is asked by the methods of types alone."""

import json
import signal
import socket

from harness.envoy import DELTA, SOTW
from harness.http import get
from harness.polling import check, equal, until
from harness.processes import free_port
from harness.registry import scenario
from harness.relay import Relay
from mesh import cluster, endpoints, listener, route

CLUSTERS, LISTENERS, VERSIONS = 7, 9, 4


@scenario(client=(DELTA, SOTW), needs_relay=True)
def all_listeners_serve_each_snapshot_and_nobody_listens_after_an_interrupt(bed, client):
    """`TestSnapshotCacheSingleEnvoyAndXdsRelayServer`. Where the original stops listening for a page, this one says that it is not ready."""
    ports = [free_port() for _ in range(LISTENERS)]
    backends = [bed.http_backend(f"version {version}") for version in range(VERSIONS)]
    origin = bed.origin(snapshot(ports, backends[0]), options=["--per-type"])
    relay = started(bed, origin)
    envoy = bed.envoy(client, relay.port, ports[0])
    for version, backend in enumerate(backends):
        origin.update(snapshot(ports, backend))
        for port in ports:
            until(f"{port} serves {version}", lambda p=port, v=version: get(p).body == f"version {v}", within=20)
    check(json.loads(relay.page("/cache"))["Cache"], "the page of the original has nothing")
    equal(get(relay.admin, "/ready").status, 200, "whether it is ready")
    equal(get(relay.admin, "/ready/false").status, 405, "a page that somebody looks at changes nothing")
    for state, ready in (("false", 503), ("true", 200)):
        equal(get(relay.admin, f"/ready/{state}", method="POST").status, 200, f"what comes of /ready/{state}")
        equal(get(relay.admin, "/readyz").status, ready, "whether it is ready then")
    check(json.loads(relay.page("/cache"))["Cache"], "the page of the original has nothing")
    relay.process.child.send_signal(signal.SIGINT)
    until("the relay has ended", lambda: not relay.process.alive(), within=15)
    check(not listens(relay.port) and not listens(relay.admin), "somebody listens still")
    equal(envoy.request(), f"version {VERSIONS - 1}", "what Envoy serves without it")


def snapshot(ports, backend):
    """Clusters, and listeners each with a route to one of them."""
    names = [f"cluster-{number}" for number in range(CLUSTERS)]
    resources = [item for name in names for item in (cluster(name, name), endpoints(name, backend))]
    for number, port in enumerate(ports):
        resources.append(listener(f"listener-{number}", port, f"route-{number}"))
        resources.append(route(f"route-{number}", [("/", names[number % CLUSTERS])]))
    return resources


def started(bed, origin):
    """The relay with a bootstrap file and aggregation rules, by the options of the original."""
    relay = Relay(bed.relay_binary, bed.folder, None, listen=free_port(), admin=free_port())
    relay.arguments = arguments(bed.folder, bootstrap(relay.port, origin.port, relay.admin))
    return bed.started(relay)


def arguments(folder, document, mode="serve"):
    """The original's options, with files of this bootstrap and of rules by which nodes of a cluster share."""
    by_cluster = {"request_node_fragment": {"cluster_action": {"exact": True}}}
    rules = {"fragments": [{"rules": [{"match": {"any_match": True}, "result": by_cluster}]}]}
    (folder / "bootstrap.yaml").write_text(json.dumps(document))
    (folder / "rules.yaml").write_text(json.dumps(rules))
    return ["-c", folder / "bootstrap.yaml", "-a", folder / "rules.yaml", "-m", mode]


def bootstrap(listen, origin, admin):
    """One that says all that must be said, with these ports."""
    at = lambda port: {"address": {"address": "127.0.0.1", "port_value": port}}
    return {
        "server": at(listen),
        "origin_server": at(origin),
        "logging": {"level": "INFO"},
        "cache": {"ttl": "60s", "max_entries": 1000},
        "metrics_sink": {"statsd": at(free_port()) | {"root_prefix": "relay", "flush_interval": "1s"}},
        "admin": at(admin),
    }


def listens(port):
    """Whether a connection is taken."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
