"""What a relay does beside discovery: it passes on load reports, and tells its health and what its clients have."""

import queue
import signal
import threading

import grpc
from envoy.admin.v3 import config_dump_shared_pb2
from envoy.service.status.v3 import csds_pb2, csds_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ads.types import CLUSTER, ENDPOINTS, LISTENER, ROUTE
from harness.envoy import DELTA, SOTW, nothing_was_removed
from harness.http import get
from harness.polling import check, equal, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import endpoints, envoy_mesh, grpc_mesh, static_cluster

REPORTS = {
    "api_type": "GRPC",
    "transport_api_version": "V3",
    "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}],
}
# How long a client may take to find out that the relay is there again.
RETURN = 40.0
LOOKED_AT = {
    "timeout": "1s",
    "interval": "0.2s",
    "no_traffic_interval": "0.2s",
    "unhealthy_threshold": 1,
    "healthy_threshold": 1,
    "grpc_health_check": {},
}
ACKED, NACKED = (config_dump_shared_pb2.ClientResourceStatus.Value(status) for status in ("ACKED", "NACKED"))
# As a whole, and what discovery is.
SERVICES = ("", "envoy.service.discovery.v3.AggregatedDiscoveryService")
HEALTHY = "cluster.relay.membership_healthy"


@scenario(client=(DELTA, SOTW), needs_relay=True, waits=True)
def loads_health_and_what_clients_have_are_told(bed, client):
    """By an Envoy and a gRPC client: their load reports reach the origin; Envoy looks at the relay's health; and CSDS, read by gRPC's own
    stubs, says of both what they accepted and what Envoy rejects, in its words."""
    port = free_port()
    mesh = envoy_mesh(client, port, backend=bed.http_backend("proxied"))
    called = grpc_mesh(bed.grpc_backend("called"))
    # It tells the server that it has its cluster from.
    next(each for each in called if each["@type"] == CLUSTER)["lrs_server"] = {"self": {}}
    origin = bed.origin([], views={"envoy": mesh.resources(), "grpc": called})
    relay_port = bed.front(origin, client_status=True)
    assigned = {"cluster_name": "relay", "endpoints": endpoints("relay", relay_port)["endpoints"]}
    looked_at = {"load_assignment": assigned, "health_checks": [LOOKED_AT], "http2_protocol_options": {}}
    proxied = [*mesh.resources(), static_cluster("relay", **looked_at)]
    origin.update(proxied, node="envoy")
    envoy = bed.envoy(client, relay_port, port, more={"cluster_manager": {"load_stats_config": REPORTS}})
    caller = bed.grpc_client(relay_port)
    for tag, each in (("proxied", envoy), ("called", caller)):
        until("requests are served", lambda tag=tag, each=each: each.request() == tag, within=20)

    for node, each in (("envoy", envoy), ("grpc", caller)):
        until(f"the origin is told of loads by {node}", lambda node=node, each=each: each.request() and served(origin, node))
    equal(bed.relay.count("load_report_streams"), 2, "the streams of load reports")
    bed.relay.restart()
    before = len(origin.events("load", node="envoy"))
    until("Envoy goes on with them", lambda: len(origin.events("load", node="envoy")) > before, within=RETURN)

    until("Envoy finds the relay healthy", lambda: envoy.stat(HEALTHY) == 1)
    get(bed.relay.admin, "/ready/false", method="POST")
    until("Envoy finds it otherwise", lambda: envoy.stat(HEALTHY) == 0)
    get(bed.relay.admin, "/ready/true", method="POST")
    until("Envoy finds it healthy again", lambda: envoy.stat(HEALTHY) == 1)

    names = {LISTENER: "front", ROUTE: "routes", CLUSTER: "backend", ENDPOINTS: "backend"}
    until("Envoy has all", lambda: set(names.items()) <= accepted(relay_port, "envoy"))
    names |= {LISTENER: "service", ENDPOINTS: "endpoints"}
    until("gRPC has all", lambda: accepted(relay_port, "grpc") == set(names.items()))
    bad = {**proxied[0], "filter_chains": proxied[0]["filter_chains"] * 2}
    origin.update([bad, *proxied[1:]], node="envoy")
    told = until("it is told that Envoy rejects it", lambda: rejected(relay_port, "envoy"))
    equal(list(told), [(LISTENER, "front")], "what it rejects")
    check("filter chain" in told[LISTENER, "front"], f"in which words: {told}")
    equal(rejected(relay_port, "grpc"), {}, "what gRPC rejects")
    equal((envoy.request(), caller.request()), ("proxied", "called"), "the backends that serve")
    nothing_was_removed(envoy)


@scenario(needs_relay=True, waits=True)
def grpcs_own_health_checking_is_told_how_the_relay_is(bed):
    """By grpcio-health-checking: asked once and watched, of the relay as a whole and of its service; it hears at once of a drain."""
    relay_port = bed.front(bed.origin([static_cluster("any")]), drain_delay="10s", drain="1s")
    serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    with grpc.insecure_channel(f"127.0.0.1:{relay_port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in SERVICES:
            equal(stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status, serving, f"that of {service!r}")
        try:
            stub.Check(health_pb2.HealthCheckRequest(service="of.another"), timeout=5)
            check(False, "a service that it does not have has a status")
        except grpc.RpcError as error:
            equal(error.code(), grpc.StatusCode.NOT_FOUND, "of a service that it does not have")
        watched = [watch(stub, service) for service in SERVICES]

        def told(status, of):
            equal([each.get(timeout=5) for each in watched], [status for _ in SERVICES], of)

        told(serving, "what is told first")
        for ready, status in (("false", not_serving), ("true", serving)):
            get(bed.relay.admin, f"/ready/{ready}", method="POST")
            told(status, f"what is told after /ready/{ready}")
        bed.relay.process.child.send_signal(signal.SIGTERM)
        told(not_serving, "what is told of a drain")


def watch(stub, service):
    """A queue of what is told of a service."""
    told = queue.SimpleQueue()

    def read():
        try:
            for response in stub.Watch(health_pb2.HealthCheckRequest(service=service)):
                told.put(response.status)
        except grpc.RpcError:
            # The relay ends, or the channel does.
            pass

    threading.Thread(target=read, daemon=True).start()
    return told


def served(origin, node):
    """How many requests a client has told the origin of, of its backend."""
    return sum(report.get("served", {}).get("backend", 0) for report in origin.events("load", node=node))


def status(port, node):
    """What the relay tells of one client: for each type and name its status, and what was said of it."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = csds_pb2_grpc.ClientStatusDiscoveryServiceStub(channel)
        told = stub.FetchClientStatus(csds_pb2.ClientStatusRequest(), timeout=5)
    [client] = [client for client in told.config if client.node.id == node]
    for held in client.generic_xds_configs:
        yield (held.type_url, held.name), held


def accepted(port, node):
    """What it accepted; of each the version and the content are told."""
    return {
        name for name, held in status(port, node) if held.client_status == ACKED and held.version_info and held.xds_config.value
    }


def rejected(port, node):
    """What it rejected, and in which words."""
    return {name: held.error_state.details for name, held in status(port, node) if held.client_status == NACKED}
