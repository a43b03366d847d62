"""Which client may ask for what, by what its certificate says it is, or by where it comes from."""

from harness.bed import AUTHORITY, upstream
from harness.certificates import Authority, Files, spiffe
from harness.envoy import DELTA, SOTW, VARIANTS, nothing_was_removed
from harness.polling import check, equal, until, until_still
from harness.processes import free_port
from harness.registry import NODE_CLIENTS, scenario
from mesh import EnvoyMesh, grpc_mesh, plain, xdstp
from setups import GRPC, GRPC_XDSTP, another, is_xdstp
from tests.tls import for_grpc, identity

# All that clients of both kinds ask for, but for endpoints.
NAMES = ["front", "service", "routes", "backend"]
NAMES += [f"xdstp://{AUTHORITY}/*/service", xdstp("*", "routes"), xdstp("*", "backend")]
NODES = ("shop", "other", "late")


class ByCertificate:
    """Who a client is, its certificate says."""

    def __init__(self, bed, client):
        self.is_envoy = client in VARIANTS
        self.files = Files(bed.folder, "files", Authority("ours"), "relay", "shop", "other")
        self.settings = {"tls": {**identity(self.files, "relay"), "client_ca": self.files.ca}}
        self.everybody, self.shop = ({"spiffe": [spiffe(name)]} for name in ("*", "shop"))

    def of(self, port, who):
        """By which port it comes, and what it shows."""
        return port, {"tls": (self.files.ca, *self.files.of(who)) if self.is_envoy else for_grpc(self.files, who)}


class ByAddress:
    """Who a client is, the address says that it comes from: gRPC for Node has no certificate to show."""

    ADDRESSES = {"shop": "127.0.0.2", "other": "127.0.0.3"}

    def __init__(self, bed, _client):
        self.bed, self.settings = bed, {}
        self.everybody, self.shop = {"cidr": ["127.0.0.2/31"]}, {"cidr": [f"{self.ADDRESSES['shop']}/32"]}

    def of(self, port, who):
        """By which port it comes, and what it shows."""
        return self.bed.cable(port, source=self.ADDRESSES[who]).port, {}


class Fleet:
    """Clients of one kind at a relay with rules."""

    def __init__(self, bed, client):
        self.bed, self.client = bed, client
        self.identities = (ByAddress if client in NODE_CLIENTS else ByCertificate)(bed, client)
        self.all = [{"match": self.identities.everybody}]
        self.some = [{"match": self.identities.shop, "names": NAMES, "wildcard": True}, *self.all]
        backend = bed.http_backend if client in VARIANTS else bed.grpc_backend
        self.backends = {tag: backend(tag) for tag in ("first", "second")}
        self.ports = {node: free_port() for node in NODES}
        # What has an authority is the same for all.
        views = {} if is_xdstp(client) else {node: self.resources(node, "first") for node in NODES}
        self.origin = bed.origin([] if views else self.resources(None, "first"), views=views)
        self.relay = bed.start_relay([upstream(self.origin)], clients=self.all, **self.identities.settings)

    def resources(self, node, tag):
        """What leads it to a backend."""
        if self.client not in VARIANTS:
            return grpc_mesh(self.backends[tag], xdstp if is_xdstp(self.client) else plain)
        backends = {"backend": self.backends[tag]}
        return EnvoyMesh(self.ports[node], backends, endpoints_naming=lambda *_: "endpoints").resources()

    def start(self, node, who):
        """A client that says it is this node, and is this one."""
        port, shown = self.identities.of(self.relay.port, who)
        return another(self.bed, self.client, port, self.ports[node], node=node, **shown)

    def move(self):
        """The endpoint of all is the second backend."""
        for node in self.origin.views or (None,):
            self.origin.update(self.resources(node, "second"), node=node)

    def denied(self):
        """How often a name was denied."""
        return self.relay.count("downstream_denied_total", 'reason="name"')

    def requests(self):
        """How many requests came from clients."""
        return self.relay.count("downstream_requests_total")


@scenario(client=(DELTA, SOTW, GRPC, GRPC_XDSTP, *NODE_CLIENTS), needs_relay=True, waits=True)
def who_is_denied_a_name_is_told_once_and_keeps_what_he_has(bed, client):
    """Rules become others under traffic: one identity may not ask for endpoints any more. It is told once, and so is who comes
    with it then; who had some serves on with them, and another identity is not concerned. Then all may again."""
    fleet = Fleet(bed, client)
    shop, other = fleet.start("shop", "shop"), fleet.start("other", "other")
    for each in (shop, other):
        until("requests reach the first backend", lambda each=each: each.request() == "first", within=20)
    loads = [bed.load(shop, "first"), bed.load(other, "first", "second")]
    fleet.relay.configure(clients=fleet.some)
    until("the name is denied", lambda: fleet.denied() == 1)
    fleet.move()
    until("requests of the other reach the second backend", lambda: other.request() == "second")
    late = fleet.start("late", "shop")
    late_asks(late, client)
    until("it is denied to who comes then", lambda: fleet.denied() == 2, within=20)

    until_still("requests of clients", fleet.requests, 2.0)
    equal(fleet.denied(), 2, "how often the name was denied")
    loads[0].none_failed()
    check(not answers(late), "who may not have endpoints reaches them")
    told = [line.split(" audit: ")[1] for line in fleet.relay.audited()]
    equal(len(told), 2, f"the lines that were written of it: {told}")
    for node, line in zip(("shop", "late"), told):
        check(f" node={node} " in line and line.endswith("endpoints"), f"what was written of {node}: {line}")

    fleet.relay.configure(clients=fleet.all)
    for each in (shop, late):
        until("requests reach the second backend", lambda each=each: each.request() == "second", within=20)
    loads[1].none_failed()
    equal(fleet.denied(), 2, "how often the name was denied")
    if client in VARIANTS:
        for envoy in (shop, other, late):
            nothing_was_removed(envoy)


def late_asks(late, client):
    """Whoever has no endpoints: a gRPC client asks when it is called, and Envoy as it starts."""
    if client not in VARIANTS:
        answers(late)
    else:
        until("it has the cluster", lambda: late.stat("cluster.backend.update_attempt") or "backend" in warming(late))


def warming(envoy):
    """The names of the clusters that wait for endpoints."""
    return {entry["cluster"]["name"] for entry in envoy.dump("dynamic_warming_clusters")}


def answers(client):
    """What a request comes to: nothing, if it fails."""
    try:
        return client.request()
    except (RuntimeError, OSError):
        return None
