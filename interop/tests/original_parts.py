"""What the other integration tests of envoyproxy/xds-relay do, each by its name there: with the binary in place of the packages that
they call, and a client of our own where they look at a channel."""

import json
import re
import signal

from ads.types import CLUSTER
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from harness.relay import run_once
from mesh import static_cluster
from tests.original import arguments, bootstrap, listens, started

UPDATES = 2
# For as long `TestServerShutdown` looks whether it is alive.
ALIVE = 5.0
# The exit status for what is bad in a file, or on the command line.
BAD = 2

# What `bootstrap_test.go` has wrong in a file: a field with what is in its place, or without it, and what is said of it.
MISTAKES = {
    "NegativeCacheTTL": ("cache.ttl", "-1s", "value must be greater than or equal to 0s"),
    "MissingAddress": ("admin.address.address", None, "value is required"),
    "InvalidAddress": ("admin.address.address", "invalid_hostname.net", "value must be a valid hostname, or ip address"),
    "InvalidPort": ("admin.address.port_value", 65536, "value must be less than or equal to 65535"),
    "InvalidLogLevel": ("logging.level", "foo", "expected one of INFO, DEBUG, WARN, ERROR"),
    "MissingStatsdRootPrefix": ("metrics_sink.statsd.root_prefix", None, "value is required"),
    "MissingStatsdFlushInterval": ("metrics_sink.statsd.flush_interval", None, "value is required"),
    "MissingStatsdAddress": ("metrics_sink.statsd.address", None, "value is required"),
    "InvalidStatsdPort": ("metrics_sink.statsd.address.port_value", 65536, "value must be less than or equal to 65535"),
}


@scenario(needs_relay=True)
def a_bootstrap_file_is_checked_as_the_original_does(bed):
    """`bootstrap_test.go`, all twelve."""
    ports = [free_port() for _ in range(3)]
    good = arguments(bed.folder, bootstrap(*ports), "validate")
    equal(run_once(bed.relay_binary, *good)[0], 0, "the exit status for a good file")
    refused(bed, [*good[:-1], "foo"], "'foo'")
    refused(bed, ["-c", bed.folder / "missing.yaml", *good[2:]], "missing.yaml: No such file")
    for name, (path, value, words) in MISTAKES.items():
        document = bootstrap(*ports)
        *parents, field = path.split(".")
        within = document
        for parent in parents:
            within = within[parent]
        within.pop(field) if value is None else within.update({field: value})
        place = rf"bootstrap\.yaml:\d+:\d+: {re.escape(path)}: .*{re.escape(words)}"
        refused(bed, arguments(bed.folder, document, "validate"), place, name)


SMALL = {"match": {"request_type_match": {"types": [CLUSTER]}}, "result": {"string_fragment": "cds"}}
CANARY = {"match": {"request_node_match": {"id_match": {"regex_match": "^canary-"}}}, "result": {"string_fragment": "canary"}}
SERVICE = {"request_node_fragment": {"id_action": {"regex_action": {"pattern": "^[^-]*-(.*)$", "replace": "$1"}}}}
TECH_SPEC = [
    {"rules": [CANARY, {"match": {"any_match": True}, "result": SERVICE}]},
    {"rules": [{"match": {"not_match": SMALL["match"]}, "result": {"string_fragment": "other"}}, SMALL]},
]


@scenario(needs_relay=True)
def a_file_of_rules_is_checked_as_the_originals_tool_does(bed):
    """`validator_tool_test.go`, all five: `configuration-validator aggregation --path FILE` is `keys --rules FILE` without requests."""
    file = bed.folder / "rules.yaml"
    for fragments in ([{"rules": [SMALL]}], TECH_SPEC):
        file.write_text(json.dumps({"fragments": fragments}))
        status, output = run_once(bed.relay_binary, "keys", "--rules", file)
        equal((status, output), (0, ""), "what becomes of good rules")
    file.write_text(json.dumps({"fragments": [{"rules": [{"result": SMALL["result"]}]}]}))
    place = r"rules\.yaml:1:\d+: fragments\[0\]\.rules\[0\]\.match: value is required"
    refused(bed, ["keys", "--rules", file], place)
    refused(bed, ["keys", "--rules", bed.folder / "missing.yaml"], "missing.yaml: No such file")
    refused(bed, ["keys"], "--rules <")


def refused(bed, command, pattern, name=""):
    """It ends, and says why."""
    ended, output = run_once(bed.relay_binary, *command)
    check(ended == BAD, f"{name}: exit status {ended}: {output}")
    check(re.search(pattern, output), f"{name}: {pattern} is not said: {output}")


@scenario(needs_relay=True, waits=True)
def it_serves_until_it_is_interrupted(bed):
    """`TestServerShutdown`."""
    relay = started(bed, bed.origin([]))
    throughout("it is alive, and listens", lambda: relay.process.alive() and listens(relay.port), ALIVE)
    interrupted(relay)


@scenario(needs_relay=True)
def what_the_origin_says_comes_in_order_and_each_is_acknowledged(bed):
    """`TestXdsClientGetsIncrementalResponsesFromUpstreamServer`."""
    origin, relay, client = served(bed)
    for version in range(1, UPDATES):
        origin.update([static_cluster("a", alt_stat_name=f"v{version}")])
        until(f"v{version} comes", lambda v=version: has(client, f"v{v}"))
    bodies = [response.resources[0].value for response in client.responses]
    equal([f"v{number}".encode() in body for number, body in enumerate(bodies)], [True] * UPDATES, "what came, in order")
    until("each is acknowledged", lambda: len(origin.events("request")) == UPDATES + 1)
    equal(connected(relay), 1, "the streams to the origin that are up")


@scenario(needs_relay=True)
def who_is_served_is_told_of_the_relays_end(bed):
    """`TestXdsClientShutdownShouldCloseTheResponseChannel`, and `TestClientContextCancellationShouldCloseAllResponseChannels`: there
    are several clients, of two groups."""
    origin, relay, client = served(bed)
    clients = [client, *(asking(bed, relay, f"c{number}") for number in range(3))]
    for other in clients:
        until("all have it", lambda other=other: has(other, "v0"))
    check(len(origin.streams()) >= 2, "each group has a stream to the origin")
    interrupted(relay)
    for other in clients:
        until("its stream is over", lambda other=other: other.error is not None or other.call.done())
    until("so are those to the origin", lambda: not origin.streams())


@scenario(needs_relay=True)
def of_the_origins_end_is_told_and_who_is_served_stays(bed):
    """`TestServerShutdownShouldCloseResponseChannel`, but that no client pays for it: the original ended their streams."""
    origin, relay, client = served(bed)
    origin.kill()
    until("the stream to the origin is not up", lambda: connected(relay) == 0)
    check(client.error is None and not client.call.done() and has(client, "v0"), "the client is served no more")


def served(bed):
    """An origin, the relay by the original's files, and a client that has what the origin has."""
    origin = bed.origin([static_cluster("a", alt_stat_name="v0")], options=["--per-type"])
    relay = started(bed, origin)
    client = asking(bed, relay, "c0")
    until("v0 comes", lambda: has(client, "v0"))
    return origin, relay, client


def asking(bed, relay, cluster):
    """A client that asks for all clusters."""
    client = bed.sotw(relay.port, node=f"node-{cluster}", cluster=cluster)
    client.subscribe(CLUSTER)
    return client


def has(client, version):
    """Whether this is the last that it was told."""
    return version.encode() in client.body(CLUSTER, "a")


def connected(relay):
    """The streams to the origin that are up."""
    return relay.count("upstream_connected")


def interrupted(relay):
    """It is asked to stop by ^C, and does."""
    relay.process.child.send_signal(signal.SIGINT)
    until("it has ended", lambda: not relay.process.alive(), within=20)
    equal(relay.process.child.returncode, 0, "its exit status")
    check(not listens(relay.port) and not listens(relay.admin), "somebody listens still")
