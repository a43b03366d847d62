"""The relay's configuration is another one while Envoy and gRPC send requests."""

from ads.types import CLUSTER
from harness.bed import upstream
from harness.certificates import Authority, Files, spiffe
from harness.envoy import DELTA, GLOBS, VARIANTS, nothing_was_removed
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh, grpc_mesh, static_cluster, xdstp
from setups import GRPC_JS_XDSTP, GRPC_XDSTP, serving
from tests.tls import credentials, for_grpc, identity, secured_origin

# How long the relay may take to find out that an origin is there: it backs off.
RETURN = 40.0
APART = "apart"
ONE = xdstp(CLUSTER, "one", APART)
PEERS = ("relay", "origin", "envoy", "grpc", "raw", "stranger")


class Traffic:
    """An Envoy and a gRPC client at a relay, by TLS all of them, and a client of our own that has what another origin has."""

    def __init__(self, bed):
        self.bed, self.port = bed, free_port()
        self.files = Files(bed.folder, "files", Authority("before"), *PEERS)
        self.others = Files(bed.folder, "others", Authority("after"), *PEERS)
        origin = self.serves("first", self.files)
        self.apart = bed.origin([static_cluster(ONE)], name=APART)
        self.relay = bed.start_relay(
            self.origins(origin, self.files),
            tls={**identity(self.files, "relay"), "client_ca": self.files.ca},
            clients=[{"match": {"any": True}}],
        )
        self.envoy = bed.envoy(DELTA, self.relay.port, self.port, tls=(self.files.ca, *self.files.of("envoy")))
        self.grpc = bed.grpc_client(self.relay.port, tls=for_grpc(self.files, "grpc"))
        self.raw = self.asks("raw", self.files)
        self.reach("first")
        until("the other origin's cluster arrives", lambda: self.raw.names(CLUSTER) == {ONE})
        self.loads = [bed.load(client, "first", "second") for client in (self.envoy, self.grpc)]
        self.streams = self.relay.clients()
        equal(set(self.streams), {"envoy", "grpc", "raw"}, "who has a stream")

    def serves(self, tag, files):
        """An origin that leads both clients to backends that say so."""
        mesh = envoy_mesh(DELTA, self.port, backend=self.bed.http_backend(tag))
        views = {"envoy": mesh.resources(), "grpc": grpc_mesh(self.bed.grpc_backend(tag))}
        return secured_origin(self.bed, [], files, name=f"origin-{tag}", views=views)

    def origins(self, origin, files):
        """Both, as the relay is told of them."""
        first = upstream(origin, authorities=()) | {"name": "origin"}
        return [first | {"tls": {"ca": files.ca, **identity(files, "relay")}}, upstream(self.apart, authorities=(APART,))]

    def asks(self, name, trusts):
        """A client of our own that asks for what the other origin has."""
        stream = self.bed.delta(self.relay.port, node=name, credentials=credentials(trusts, self.files, name))
        stream.subscribe(CLUSTER, ONE)
        return stream

    def reach(self, backend):
        """Waits until requests of both reach a backend."""
        for client in (self.envoy, self.grpc):
            until(f"requests reach {backend}", lambda client=client: client.request() == backend, within=20)

    def nobody_noticed(self):
        """Who was there is there on the stream that he had, and the other origin was asked once."""
        for load in self.loads:
            load.sends(2)
        there = {node: stream for node, stream in self.relay.clients().items() if node in self.streams}
        equal(there, self.streams, "the streams of clients")
        equal(len(self.apart.events("open")), 1, "the streams to the origin of which nothing was changed")
        equal(self.raw.arrivals, {ONE: 1}, "how often came what that has")


@scenario(needs_relay=True, waits=True)
def another_configuration_counts_under_traffic(bed):
    """Rules, certificates, the origin's address and its certificates are others, by SIGHUP or as the file is another one: no
    request fails, and no stream ends but that of who may not be there any more."""
    traffic = Traffic(bed)
    relay = traffic.relay
    stranger = traffic.asks("stranger", traffic.files)
    until("the stranger is served", lambda: stranger.names(CLUSTER) == {ONE})
    relay.configure(clients=[{"match": {"spiffe": [spiffe(name) for name in traffic.streams]}}])
    until("the stranger's stream is ended", lambda: stranger.error is not None)
    equal(stranger.error.code().name, "PERMISSION_DENIED", "how it ended")
    equal(stranger.removals, {}, "what he was told is gone")
    traffic.nobody_noticed()

    tls = {**identity(traffic.others, "relay"), "client_ca": traffic.files.ca}
    relay.configure(hang_up=False, tls=tls)
    known = traffic.asks("raw", traffic.others)
    until("who trusts the other certificate is served", lambda: known.names(CLUSTER) == {ONE})
    known.stop()
    until("its stream is over", lambda: relay.count("downstream_streams") == len(traffic.streams))
    traffic.nobody_noticed()

    elsewhere = traffic.serves("second", traffic.others)
    relay.configure(origins=traffic.origins(elsewhere, traffic.others))
    traffic.reach("second")
    traffic.nobody_noticed()

    relay.configure(hang_up=False, result="failed", origins=[{"name": "origin", "sever": "nowhere"}])
    check("origins[0]" in relay.page("/"), "what is wrong with it is not told")
    traffic.nobody_noticed()
    for load in traffic.loads:
        load.none_failed()
    nothing_was_removed(traffic.envoy)
    opened = len(traffic.streams) + len((stranger, known))
    equal(relay.count("downstream_streams_opened_total"), opened, "the streams that clients opened")


@scenario(client=(GLOBS, GRPC_XDSTP, GRPC_JS_XDSTP), needs_relay=True, waits=True)
def an_authority_becomes_another_origins_under_traffic(bed, client):
    """The other one is dead when it is told of, and takes over as it comes; then it is gone from the configuration, and the authority
    is the default origin's again. No request fails, nothing is removed, and the client's stream stays."""
    setup = serving(bed, client, "delta")
    relay, streams = bed.relay, bed.relay.clients()
    load = bed.load(setup.client, "first", "second")
    other = bed.origin(setup.resources_for(setup.second), name="other")
    other.kill()
    mine = upstream(setup.origin, authorities=())
    relay.configure(origins=[mine, upstream(other)])
    throughout("requests reach the first backend", lambda: setup.client.request() == "first", 2.0)
    other.start()
    setup.reaches("second", within=RETURN)
    relay.configure(origins=[mine])
    setup.reaches("first")
    setup.move()
    setup.reaches("second")
    load.none_failed()
    equal(relay.clients(), streams, "the streams of clients")
    if client in VARIANTS:
        nothing_was_removed(setup.client)
