"""A client that stops reading costs nobody anything."""

import json

from envoy.config.cluster.v3 import cluster_pb2

from ads.types import CLUSTER
from harness.polling import check, until
from harness.registry import scenario
from mesh import static_cluster, xdstp

MIB = 1 << 20
BALLAST = MIB // 2
WARM_UP, ROUNDS = 10, 100
STALLED = 5

# Were updates queued for the stalled ones, even as shared bodies, they would hold ROUNDS * BALLAST = 50 MiB.
BOUND = 24 * MIB


@scenario(needs_relay=True)
def clients_that_stop_reading_are_not_noticed(bed):
    """While some read nothing, another one is told of every change; the relay's memory stays where it was; and when
    they read again they are sent the newest state, not the history."""
    name = xdstp(CLUSTER, "large")

    def state(number):
        metadata = {"filter_metadata": {"interop": {"ballast": "x" * BALLAST, "round": number}}}
        return [static_cluster(name, metadata=metadata)]

    def round_of(client):
        cluster = cluster_pb2.Cluster.FromString(client.body(CLUSTER, name))
        return cluster.metadata.filter_metadata["interop"]["round"]

    source = bed.origin(state(0))
    port = bed.front(source)
    stalled = [bed.delta(port, node=f"stalled-{number}", reads=False) for number in range(STALLED)]
    reader = bed.delta(port, node="reader")
    for client in (*stalled, reader):
        client.subscribe(CLUSTER, xdstp(CLUSTER, "*"))
    until("the relay knows all clients", lambda: len(clients(bed.relay)) == STALLED + 1)
    before = None
    for number in range(1, ROUNDS + 1):
        source.update(state(number))
        until(f"the reader has round {number}", lambda n=number: round_of(reader) == n, within=5)
        if number == WARM_UP:
            before = bed.relay.process.resident_bytes()
    growth = bed.relay.process.resident_bytes() - before
    check(growth < BOUND, f"the relay grew by {growth / MIB:.0f} MiB")
    for client in stalled:
        client.start_reading()
        until("one that stalled has the newest state", lambda c=client: round_of(c) == ROUNDS)
        check(client.arrivals[name] < ROUNDS // 2, f"it was sent {client.arrivals[name]} of {ROUNDS} states")


def clients(relay):
    """Who the relay says is subscribed."""
    return [client for client in json.loads(relay.page("/config_dump"))["clients"] if client["types"]]
