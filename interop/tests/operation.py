"""The relay as a process: how it starts, what it says of itself, how it stops, how it refuses."""

import json
import re
import threading
import time

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2

from ads.types import CLUSTER, ENDPOINTS, LISTENER, ROUTE
from harness.backends import GrpcBackend, HttpBackend
from harness.envoy import DELTA
from harness.polling import check, equal, until
from harness.registry import scenario
from harness.relay import Relay, run_once
from mesh import static_cluster, xdstp
from setups import CLIENTS, envoy_serving, serving

PAGES = ("/healthz", "/readyz", "/config_dump", "/metrics")


@scenario(needs_relay=True, alone=True)
def without_arguments_it_serves_its_example(bed):
    """The first minute of a new user: no configuration, an Envoy and a gRPC client that get the example's."""
    relay = bed.started(Relay(bed.relay_binary, bed.folder, None, arguments=[], listen=18000, admin=18001))
    index = relay.page("/")
    for page in PAGES:
        check(page in index, f"the index does not list {page}")
        relay.page(page)
    example = Example(bed.delta(relay.port))
    dumped = [name for name, _ in resources(relay, LISTENER)]
    equal(sorted(name for name in dumped if not name.startswith("xdstp:")), sorted(example.names), "what it dumps")
    proxied = [name for name in example.names if not example.listener(name).HasField("api_listener")]
    called = [name for name in example.names if example.listener(name).HasField("api_listener")]
    check(proxied, "the example has no listener for Envoy")
    check(called, "the example has no listener for a gRPC client")

    bed.stopped(HttpBackend("the example's backend", example.endpoint(proxied[0])))
    port = example.listener(proxied[0]).address.socket_address.port_value
    envoy = bed.envoy(DELTA, relay.port, port, node="example")
    until("Envoy serves the example", lambda: envoy.request("/"), within=20)
    bed.stopped(GrpcBackend("the example's greeter", example.endpoint(called[0])))
    client = bed.grpc_client(relay.port, target=f"xds:///{called[0]}")
    until("a gRPC client serves the example", lambda: client.request() == "the example's greeter", within=20)


class Example:
    """What a relay serves under old-style names, followed from listener to endpoint as a client would."""

    def __init__(self, stream):
        self.stream = stream
        stream.subscribe(LISTENER)
        self.names = sorted(until("the example's listeners are there", lambda: stream.names(LISTENER)))

    def fetch(self, type_url, name, message):
        """A resource by its name."""
        if type_url != LISTENER:
            self.stream.subscribe(type_url, name)
        until(f"{name} is there", lambda: name in self.stream.names(type_url))
        return message.FromString(self.stream.body(type_url, name))

    def listener(self, name):
        """A listener."""
        return self.fetch(LISTENER, name, listener_pb2.Listener)

    def endpoint(self, name):
        """The port of the first endpoint of the last route's cluster of a listener."""
        listener = self.listener(name)
        manager = http_connection_manager_pb2.HttpConnectionManager()
        if listener.HasField("api_listener"):
            listener.api_listener.api_listener.Unpack(manager)
        else:
            listener.filter_chains[0].filters[0].typed_config.Unpack(manager)
        routes = self.fetch(ROUTE, manager.rds.route_config_name, route_pb2.RouteConfiguration)
        targets = [route.route.cluster for route in routes.virtual_hosts[0].routes if route.HasField("route")]
        cluster = self.fetch(CLUSTER, targets[-1], cluster_pb2.Cluster)
        service = cluster.eds_cluster_config.service_name or cluster.name
        assignment = self.fetch(ENDPOINTS, service, endpoint_pb2.ClusterLoadAssignment)
        return assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value


def resources(relay, type_url):
    """Name and version of what the relay says it holds of a type."""
    held = (kind for scope in json.loads(relay.page("/config_dump"))["scopes"] for kind in scope["types"])
    return [
        (item["name"], item["version"]) for kind in held if kind["type_url"] == type_url for item in kind["resources"]
    ]


@scenario(needs_relay=True)
def its_pages_say_what_it_holds_and_for_whom(bed):
    """Resources with versions, subscribers, the state of the origin; and metrics that do not grow with either."""
    setup = envoy_serving(bed, DELTA, "delta")
    for page in PAGES:
        bed.relay.page(page)
    stream = bed.delta(setup.xds_port, node="envoy")
    stream.subscribe(CLUSTER)
    until("the stream has the cluster", lambda: stream.names(CLUSTER) == {"backend"})
    check(("backend", stream.versions(CLUSTER)["backend"]) in resources(bed.relay, CLUSTER), "it is not in the dump")
    dump = json.loads(bed.relay.page("/config_dump"))
    equal([origin["name"] for origin in dump["origins"]], ["origin"], "the origins")
    check(all(stream["connected"] for stream in dump["origins"][0]["streams"]), "the origin is not connected")
    check("envoy" in {client["node_id"] for client in dump["clients"]}, "Envoy is not among the clients")
    samples = [line for line in bed.relay.page("/metrics").splitlines() if line and not line.startswith("#")]
    for line in samples:
        check(re.fullmatch(r"[a-z_]+(\{[^}]*\})? [-+0-9.eE]+", line), f"not a sample: {line}")
        check("backend" not in line and '"envoy"' not in line, f"grows with resources or clients: {line}")
    check(samples, "there are no metrics")
    setup.origin.kill()
    until("the dump says that the origin is gone", lambda: not connected(bed.relay))
    equal(bed.relay.page("/healthz"), "ok\n", "the health page")


def connected(relay):
    """Whether any stream to an origin is up, as the relay says."""
    origins = json.loads(relay.page("/config_dump"))["origins"]
    return any(stream["connected"] for origin in origins for stream in origin["streams"])


@scenario(client=CLIENTS, needs_relay=True, waits=True)
def it_may_start_before_its_origin(bed, client):
    """A client that is there first is served when the origin is: its streams were ended, so it has backed off."""

    def front(origin):
        origin.kill()
        later = threading.Timer(2.0, origin.start)
        bed.cleanups.append(later.cancel)
        later.start()
        return bed.front(origin)

    serving(bed, client, "delta", front=front, within=40)


@scenario(needs_relay=True)
def asked_to_stop_it_drains_within_its_bound(bed):
    """With streams open it is gone after `drain`; what it says to them is that the stream is over."""
    name = xdstp(CLUSTER, "one")
    source = bed.origin([static_cluster(name)])
    stream = bed.delta(bed.front(source, drain="2s"))
    stream.subscribe(CLUSTER, name)
    until("the client has it", lambda: stream.names(CLUSTER) == {name})
    started = time.monotonic()
    bed.relay.terminate()
    until("the relay has ended", lambda: not bed.relay.process.alive(), within=10)
    took = time.monotonic() - started
    check(took < 3.2, f"it took {took:.1f} s")
    equal(bed.relay.process.child.returncode, 0, "its exit status")
    equal(stream.removals, {}, "what the client was told is gone")


# A configuration, the line with the mistake, and the field that is wrong.
MISTAKES = (
    ("listen: nowhere\norigins: [{name: a, server: 127.0.0.1:1}]\n", 1, "listen"),
    ("origins:\n- name: a\n  server: 127.0.0.1:1\n  protocol: dleta\n", 4, "origins[0].protocol"),
    ("origins:\n- name: a\n  sever: 127.0.0.1:1\n", 3, "origins[0]"),
    ("origins:\n- name: a\n  server: 127.0.0.1:1\nlinger: soon\n", 4, "linger"),
    ("origins:\n- {name: a, server: 127.0.0.1:1}\ndefault_origin: b\n", 3, "default_origin"),
    ("origins:\n- {name: a, server: 127.0.0.1:1}\nshare_by: [colour]\n", 3, "share_by[0]"),
)


@scenario(needs_relay=True)
def a_bad_configuration_is_refused_with_file_line_and_field(bed):
    """Checked or run, it exits non-zero and says in one line where the mistake is; a good one is good."""
    file = bed.folder / "relay.yaml"
    for text, line, field in MISTAKES:
        file.write_text(text)
        for arguments in (["--config", file, "--check"], ["--config", file]):
            status, output = run_once(bed.relay_binary, *arguments)
            check(status != 0, f"accepted: {text}")
            place = rf"{re.escape(str(file))}:{line}:\d+: {re.escape(field)}"
            check(re.search(place, output), f"{field} at line {line}: {output}")
    status, output = run_once(bed.relay_binary, "--config", bed.folder / "missing.yaml", "--check")
    check(status != 0 and "missing.yaml" in output, f"a missing file: {output}")
    file.write_text("origins: [{name: a, server: 127.0.0.1:1}]\n")
    status, output = run_once(bed.relay_binary, "--config", file, "--check")
    equal(status, 0, f"the exit status for a good configuration ({output})")
