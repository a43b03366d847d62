"""What one test builds and what is taken down after it."""

from harness.backends import GrpcBackend, HttpBackend
from harness.browser import Browser
from harness.cable import Cable
from harness.clock import clock
from harness.envoy import Envoy
from harness.grpc_client import C_CORE, GrpcClient
from harness.grpc_js import GrpcJs
from harness.load import Load
from harness.origin import Origin
from harness.polling import brief
from harness.program import ControlPlane, Example, Tool
from harness.raw import DeltaClient, SotwClient
from harness.relay import Relay
from harness.scripted import VariantsClient, VariantsOrigin
from harness.tap import Tap

AUTHORITY = "authority"
LOCATORS = {
    "lds_resources_locator": f"xdstp://{AUTHORITY}/envoy.config.listener.v3.Listener/mesh/*",
    "cds_resources_locator": f"xdstp://{AUTHORITY}/envoy.config.cluster.v3.Cluster/mesh/*",
}


class Bed:
    """Starts peers in a folder of the test's own; `relay_binary` is None where clients face the origin itself."""

    def __init__(self, folder, relay_binary):
        self.folder, self.relay_binary = folder, relay_binary
        self.relay = None
        self.browser_binary, self.pictures = None, None
        self.tool_binary, self.example_binary, self.plane_binary = None, None, None
        self.dynamic_binary = None
        self.cleanups, self.peers = [], []

    def close(self):
        """Ends all that the test started, the latest first."""
        for cleanup in reversed(self.cleanups):
            cleanup()

    def origin(self, resources, name="origin", options=(), tombstones=(), views=()):
        """A running origin with these resources; a node among the views has resources of its own."""
        origin = Origin(self.folder, name, options, views)
        origin.write(resources, tombstones)
        for node in views:
            origin.write(views[node], node=node)
        return self.started(origin)

    def front(self, origin, protocol="delta", port=None, **settings):
        """The port clients dial: a relay before this origin, or the origin itself. `port` is what leads the relay to
        the origin, if it is not its own."""
        if self.relay_binary is None:
            return origin.port
        return self.start_relay([upstream(origin, protocol, port=port)], **settings).port

    def start_relay(self, origins, name="relay", ahead=0, **settings):
        """A running relay; the first origin is the default one. Its clock may be so many seconds ahead."""
        configuration = {"origins": origins, "default_origin": origins[0]["name"], **settings}
        binary, environment = (self.dynamic_binary, clock(ahead)) if ahead else (self.relay_binary, None)
        self.relay = self.started(Relay(binary, self.folder, configuration, name=name, environment=environment))
        return self.relay

    def envoy(
        self, variant, xds_port, listener_port=None, node="envoy", cluster="mesh", locators=None, more=None, tls=None
    ):
        """A started Envoy that has yet to get its configuration; `more` is added to its bootstrap, and `tls` says by which
        files it speaks to its server: authority, certificate, key."""
        name = f"envoy-{len(self.cleanups)}"
        locators = locators or LOCATORS
        return self.started(Envoy(self.folder, name, variant, xds_port, listener_port, node, cluster, locators, more, tls))

    def grpc_client(
        self,
        xds_port,
        authority=None,
        node="grpc",
        cluster="mesh",
        target="xds:///service",
        fallback=None,
        tls=None,
        program=C_CORE,
    ):
        """A started gRPC client; `fallback` is the port of its second server, and `tls` has the files of gRFC A65."""
        name = f"grpc-{len(self.cleanups)}"
        ports = [port for port in (xds_port, fallback) if port is not None]
        return self.started(GrpcClient(self.folder, name, ports, node, cluster, authority, target, tls, program))

    def grpc_js(self):
        """gRPC for Node, started: clients and a server."""
        return self.started(GrpcJs(self.folder))

    def watching(self, program, servers, type_url, *names, protocol="delta", name=None):
        """A started program that watches: the `tool` or the `example`. `servers` are ports by authority, in order; those
        of the empty one are for all else."""
        kind, binary = {"tool": (Tool, self.tool_binary), "example": (Example, self.example_binary)}[program]
        name = name or f"{program}-{len(self.cleanups)}"
        return self.started(kind(binary, self.folder, name, servers, protocol, type_url, names))

    def control_plane(self, example="control_plane"):
        """An example of a control plane, started."""
        return self.started(ControlPlane(self.plane_binary.with_name(example), self.folder))

    def tap(self, to_port):
        """A port that passes on streams of gRPC and keeps what comes on them."""
        return self.stopped(Tap(to_port))

    def browser(self):
        """A started browser without a window."""
        return self.started(Browser(self.browser_binary, self.folder))

    def delta(self, xds_port, node="raw", **keywords):
        """A stream of our own, incremental."""
        return self.stopped(DeltaClient(dialed(xds_port), node, **keywords))

    def sotw(self, xds_port, node="raw", **keywords):
        """A stream of our own, state of the world."""
        return self.stopped(SotwClient(dialed(xds_port), node, **keywords))

    def variants_origin(self, dialect, type_url, contents):
        """An origin in this process that has a content for each set of parameters."""
        return self.stopped(VariantsOrigin(dialect, type_url, contents))

    def variants_client(self, xds_port, dialect, type_url, node):
        """A stream of our own that asks for variants."""
        return self.stopped(VariantsClient(dialed(xds_port), dialect, type_url, node))

    def cable(self, to_port, **keywords):
        """A port that forwards to another one until it is cut."""
        return self.stopped(Cable(to_port, **keywords))

    def load(self, client, *backends):
        """Requests, one after the other, each of which has to reach one of these backends."""
        return self.stopped(Load(client, backends))

    def http_backend(self, tag):
        """The port of an HTTP server that answers with its tag."""
        return self.stopped(HttpBackend(tag)).port

    def grpc_backend(self, tag):
        """The port of a gRPC server that answers with its tag."""
        return self.stopped(GrpcBackend(tag)).port

    def started(self, peer):
        """Starts a process that is killed in the end."""
        self.cleanups.append(peer.kill)
        self.peers.append(peer)
        peer.start()
        return peer

    def stopped(self, peer):
        """Has a peer stopped in the end."""
        self.cleanups.append(peer.stop)
        self.peers.append(peer)
        return peer

    def remains(self):
        """What a failed test leaves to look at: who died, how streams of our own ended, and what the relay says of itself."""
        found = []
        for peer in self.peers:
            process = getattr(peer, "process", None)
            if process is not None and not process.alive():
                found.append(f"{process.name} is over: {process.child.returncode}")
            if getattr(peer, "error", None):
                found.append(f"a stream of {type(peer).__name__} is over: {brief(peer.error)}")
        for path in ("/api/v1/clients", "/api/v1/origins") if self.relay is not None else ():
            try:
                found.append(f"{self.relay.name} {path}: {self.relay.page(path)[:3000]}")
            except Exception as error:
                found.append(f"{self.relay.name} {path}: {error!r}")
        return "\n" + "\n".join(found)


def dialed(xds_port):
    """What gRPC dials: a port, or a unix socket in gRPC's own words."""
    return xds_port if isinstance(xds_port, str) else f"127.0.0.1:{xds_port}"


def upstream(origin, protocol="delta", authorities=(AUTHORITY,), port=None):
    """An origin, or another relay, in the relay's configuration; `port` is what leads to it, if it is not its own."""
    return {
        "name": origin.name,
        "server": f"127.0.0.1:{port or origin.port}",
        "protocol": protocol.partition("_")[0],
        "authorities": list(authorities),
    }
