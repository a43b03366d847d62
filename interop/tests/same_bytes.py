"""Envoy, gRPC and programs on one relay: each is sent the same, byte for byte, and has it."""

from envoy.config.cluster.v3 import cluster_pb2
from google.protobuf import any_pb2, json_format

from ads.types import CLUSTER, ENDPOINTS, LISTENER, ROUTE, short
from harness.bed import AUTHORITY
from harness.envoy import DELTA, GLOBS
from harness.polling import equal, until
from harness.processes import free_port
from harness.registry import ORIGINS, scenario
from mesh import EnvoyMesh, api_listener, plain, xdstp

NAMING = {"plain": plain, "xdstp": xdstp}
TYPES = (ROUTE, CLUSTER, ENDPOINTS)
PROGRAMS = (("tool", "delta"), ("tool", "sotw"), ("example", "delta"))


class Fleet:
    """All kinds of clients, each behind a tap of its own."""

    def __init__(self, bed, xds_port, mesh):
        names = mesh.naming
        authority = AUTHORITY if names is xdstp else None
        self.taps = {}

        def tap(client):
            self.taps[client] = bed.tap(xds_port)
            return self.taps[client].port

        self.envoy = bed.envoy(DELTA if names is plain else GLOBS, tap("envoy"), mesh.port)
        self.grpc = bed.grpc_client(tap("grpc"), authority=authority)
        self.watches = {}
        for program, protocol in PROGRAMS:
            port = tap(f"{program} over {protocol}")
            servers = {"": [port]} | ({AUTHORITY: [port]} if authority else {})
            for type_url in TYPES:
                name = names(type_url, "routes" if type_url == ROUTE else "backend")
                label = f"{program}-{protocol}-{short(type_url)}"
                watch = bed.watching(program, servers, type_url, name, protocol=protocol, name=label)
                self.watches[program, protocol, type_url, name] = watch

    def have(self, expected):
        """Whether all have been sent these versions of what they ask for; `expected` is by type and name."""
        # Each asks for a listener of its own, or for none.
        others = {what: version for what, version in expected.items() if what[0] != LISTENER}
        sent = [tap.newest().items() for tap in self.taps.values()]
        return all({what: came[0] for what, came in items if what[0] != LISTENER} == others for items in sent)

    def check(self, expected, own):
        """Each was sent the bytes that the origin has, and says that it has them; `own` is a stream of the origin's."""
        bodies = {what: as_any(what, own.body(*what)) for what in expected}
        for client, tap in self.taps.items():
            for what, (version, body) in tap.newest().items():
                equal(version, expected[what], f"{client}: the version of {what}")
                equal(body, bodies[what], f"{client}: the bytes of {what}")
        for (program, _, type_url, name), watch in self.watches.items():
            wanted = {name: expected[type_url, name]}
            until(f"{watch.name} has it", lambda watch=watch, wanted=wanted: watch.versions() == wanted)
            if program == "example":
                equal(watch.bodies(), {name: bodies[type_url, name]}, "the bytes that a program has")
        self.check_envoy(expected, bodies)

    def check_envoy(self, expected, bodies):
        """What Envoy shows is what it was sent."""
        entry = until("Envoy shows its cluster", lambda: self.envoy.dump("dynamic_active_clusters"))[0]
        what = CLUSTER, entry["cluster"]["name"]
        equal(entry["version_info"], expected[what], "the version that Envoy has")
        body = any_pb2.Any.FromString(bodies[what])
        shown = json_format.ParseDict(entry["cluster"], any_pb2.Any())
        equal(cluster_pb2.Cluster.FromString(shown.value), cluster_pb2.Cluster.FromString(body.value), "what Envoy has")


def as_any(what, body):
    """A body as it is in a response."""
    return any_pb2.Any(type_url=what[0], value=body).SerializeToString(deterministic=True)


@scenario(names=("plain", "xdstp"), origin=ORIGINS, needs_relay=True, needs_programs=True)
def everybody_is_sent_the_same_bytes(bed, names, origin):
    """At first, and of a cluster and its endpoints that changed."""
    naming = NAMING[names]
    mesh = EnvoyMesh(free_port(), {"backend": bed.grpc_backend("first")}, naming)
    name = naming(LISTENER, "service") if names == "plain" else xdstp(LISTENER, "service").replace("/mesh/", "/")

    def resources():
        return [*mesh.resources(), api_listener(name, naming(ROUTE, "routes"), "ads")]

    source = bed.origin(resources())
    xds_port = bed.front(source, origin)
    fleet, reference, own = Fleet(bed, xds_port, mesh), bed.delta(xds_port), bed.delta(source.port)

    last_parts = {LISTENER: "front", ROUTE: "routes", CLUSTER: "backend", ENDPOINTS: "backend"}
    for stream in (reference, own):
        for type_url, last in last_parts.items():
            stream.subscribe(type_url, naming(type_url, last), *([name] if type_url == LISTENER else []))
    until("a call reaches the backend", lambda: fleet.grpc.request() == "first", within=20)
    until("both have told of all", lambda: len(versions(own)) == len(versions(reference)) == 5, within=20)
    until("all are sent all", lambda: fleet.have(versions(reference)), within=20)
    fleet.check(versions(reference), own)

    mesh.revision, mesh.backends["backend"] = "2", bed.grpc_backend("second")
    before = versions(reference)
    before_there = versions(own)
    source.update(resources())
    until("a call reaches the other backend", lambda: fleet.grpc.request() == "second", within=20)
    until("the origin has told of both", lambda: changes(before_there, versions(own)) == 2)
    until("and so has the relay", lambda: changes(before, versions(reference)) == 2, within=20)
    until("all are sent what changed", lambda: fleet.have(versions(reference)), within=20)
    fleet.check(versions(reference), own)


def versions(stream):
    """The versions that a stream has, by type and name."""
    return {(kind, what): version for kind in (LISTENER, *TYPES) for what, version in stream.versions(kind).items()}


def changes(before, after):
    """How many have another version."""
    return sum(before[what] != version for what, version in after.items())
