"""TLS with certificates on both sides, towards clients and towards the origin."""

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2

from ads.types import CLUSTER, ENDPOINTS
from harness.bed import upstream
from harness.certificates import Authority, Files
from harness.envoy import DELTA
from harness.polling import check, equal, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh, grpc_mesh, plain
from setups import GRPC

# What the relay's log says of who it has no TLS with.
REFUSED = " no TLS with "
# And of its own certificates, with which file that is.
ANEW = "certificates are read anew"


def identity(files, name):
    """A certificate and its key, in the relay's words."""
    certificate, key = files.of(name)
    return {"certificate": certificate, "key": key}


def said(relay):
    """The lines of its log."""
    return relay.log.read_text().splitlines()


def says(relay, *words):
    """Whether one line of its log has all of these words."""
    return any(all(word in line for word in words) for line in said(relay))


def undisturbed(client, what):
    """Its stream is the one that it opened, nothing was taken from it, and nothing came again as it was."""
    equal(client.error, None, f"how the stream of {what} ended")
    equal(client.removals, {}, f"what {what} was told to be gone")
    last = {}
    for response in client.responses:
        for resource in response.resources:
            key = response.type_url, resource.name
            check(last.get(key) != resource.version, f"{resource.name} came to {what} again as it was")
            last[key] = resource.version


def secured_origin(bed, resources, files, **keywords):
    """An origin, which is gRPC for Python, that wants certificates."""
    return bed.origin(resources, options=["--tls", *files.of("origin"), files.ca], **keywords)


def for_grpc(files, name="client"):
    """By which files a gRPC client speaks, in the words of gRFC A65."""
    certificate, key = files.of(name)
    return {"ca_certificate_file": files.ca, "certificate_file": certificate, "private_key_file": key}


def credentials(trusts, shows=None, name="client"):
    """What a client of our own speaks with."""
    certificate, key = (open(file, "rb").read() for file in shows.of(name)) if shows else (None, None)
    return grpc.ssl_channel_credentials(open(trusts.ca, "rb").read(), key, certificate)


@scenario(client=(DELTA, GRPC), needs_relay=True)
def certificates_are_replaced_under_traffic(bed, client):
    """All show certificates: client, relay, origin. Then another authority vouches for the relay and its clients."""
    before, after = Authority("before"), Authority("after")
    files = Files(bed.folder, "files", before, "relay", "client", "origin")
    theirs, retired = (Files(bed.folder, name, before, "client") for name in ("theirs", "retired"))
    is_envoy, port = client == DELTA, free_port()
    backend = bed.http_backend if is_envoy else bed.grpc_backend
    first, second = backend("first"), backend("second")
    mesh = envoy_mesh(DELTA, port, backend=first)

    def resources(to):
        mesh.backends["backend"] = to
        return mesh.resources() if is_envoy else grpc_mesh(to, plain)

    apart = Files(bed.folder, "apart", before, "relay", "origin")
    origin = secured_origin(bed, resources(first), apart)
    towards = upstream(origin) | {"tls": {"ca": apart.ca, **identity(apart, "relay")}}
    relay = bed.start_relay([towards], tls={**identity(files, "relay"), "client_ca": files.ca})

    def another():
        if is_envoy:
            return bed.envoy(DELTA, relay.port, port, tls=(theirs.ca, *theirs.of("client")))
        return bed.grpc_client(relay.port, tls=for_grpc(theirs))

    serving = another()
    until("a request reaches the first backend", lambda: serving.request() == "first", within=20)
    open_before = bed.delta(relay.port, node="before", credentials=credentials(theirs, theirs))
    open_before.subscribe(CLUSTER, "*")
    open_before.subscribe(ENDPOINTS, "backend" if is_envoy else "endpoints")
    until("all arrive by the old certificates", lambda: open_before.names(CLUSTER) and open_before.names(ENDPOINTS))
    load = bed.load(serving, "first", "second")
    files.replace(after, "relay")
    theirs.replace(after, "client")
    until("the relay says which file it has read", lambda: says(relay, ANEW, files.of("relay")[0]))
    known = bed.delta(relay.port, node="new", credentials=credentials(theirs, theirs))
    known.subscribe(CLUSTER, "*")
    until("clusters arrive by the new certificates", lambda: known.names(CLUSTER))
    stranger = bed.delta(relay.port, node="old", credentials=credentials(theirs, retired))
    stranger.subscribe(CLUSTER, "*")
    until("who shows the old ones is refused", lambda: says(relay, REFUSED, "UnknownIssuer"))
    # The certificates are all that has changed by now.
    arrived = len(open_before.responses)
    undisturbed(open_before, "who was there before")
    origin.update(resources(second))
    until("requests reach the second backend on the stream that was open", lambda: serving.request() == "second")
    until("so is our own client told, on its own", lambda: len(open_before.responses) > arrived)
    load.none_failed()
    undisturbed(open_before, "who was there before")
    equal(stranger.responses, [], "what who shows the old ones is sent")
    if is_envoy:
        serving.kill()
    again = another()
    until("a client with the new certificates is served", lambda: again.request() == "second", within=20)


@scenario(shown=("none", "stranger", "expired"), needs_relay=True)
def who_is_not_vouched_for_is_refused_with_words(bed, shown):
    """The relay says why, and serves who is vouched for."""
    ours = Files(bed.folder, "ours", Authority("ours"), "relay", "client")
    others = Files(bed.folder, "others", Authority("stranger"), "client")
    late_authority = Authority("late")
    words = {"none": "peer sent no certificates", "stranger": "UnknownIssuer", "expired": "certificate expired"}[shown]
    if shown == "expired":
        others.replace(late_authority, "client", expired=True)
        with open(ours.ca, "ab") as trusted:
            trusted.write(late_authority.pem)
    origin = bed.origin(envoy_mesh(DELTA, free_port(), backend=1).resources())
    relay = bed.start_relay([upstream(origin)], tls={**identity(ours, "relay"), "client_ca": ours.ca})
    refused = bed.delta(relay.port, credentials=credentials(ours, None if shown == "none" else others))
    refused.subscribe(CLUSTER, "*")
    until("the relay says why", lambda: says(relay, REFUSED, words))
    served = bed.delta(relay.port, credentials=credentials(ours, ours))
    served.subscribe(CLUSTER, "*")
    until("clusters arrive", lambda: served.names(CLUSTER))
    equal(refused.responses, [], "what who is refused is sent")


@scenario(wrong=("stranger", "expired", "none"), needs_relay=True)
def an_origin_that_cannot_be_trusted_is_not_asked(bed, wrong):
    """Nor one that does not trust the relay. Its log says why, and once all is well it serves."""
    ours = Authority("ours")
    origin_files = Files(bed.folder, "origin", ours, "origin")
    files = Files(bed.folder, "files", Authority("other") if wrong == "stranger" else ours, "relay")
    if wrong == "expired":
        origin_files.replace(ours, "origin", expired=True)
    origin = secured_origin(bed, envoy_mesh(DELTA, free_port(), backend=1).resources(), origin_files)
    shown = {} if wrong == "none" else identity(files, "relay")
    relay = bed.start_relay([upstream(origin) | {"tls": {"ca": files.ca, **shown}}])
    streams = []

    def asks():
        """A stream that asks for clusters: another one, once the relay has ended the one before for want of its origin."""
        if not streams or streams[-1].error is not None:
            streams.append(bed.delta(relay.port))
            streams[-1].subscribe(CLUSTER, "*")
        return streams[-1]

    asks()
    # gRPC's C core closes the connection, and says nothing.
    words = {
        "stranger": "UnknownIssuer",
        "expired": "certificate expired",
        "none": "the connection ended before it spoke HTTP/2",
    }[wrong]
    until("the relay says why", lambda: says(relay, words))
    equal([response for each in streams for response in each.responses], [], "what came from an origin that is not trusted")
    equal(origin.events("request"), [], "what an origin was asked that is not trusted, or does not trust")
    if wrong == "stranger":
        files.replace(ours, "relay")
        until("clusters arrive once the relay trusts it", lambda: asks().names(CLUSTER), within=20)
    if wrong == "expired":
        origin_files.replace(ours, "origin")
        origin.kill()
        origin.start()
        until("clusters arrive once it shows one that is good", lambda: asks().names(CLUSTER), within=30)


@scenario(client=(DELTA, GRPC), needs_relay=True, waits=True)
def an_origin_comes_back_with_other_certificates_under_traffic(bed, client):
    """Another authority vouches for the origin, and for the relay towards it: the next connection goes by its files."""
    before, after = Authority("before"), Authority("after")
    files = Files(bed.folder, "files", before, "relay", "origin")
    is_envoy, port = client == DELTA, free_port()
    backend = bed.http_backend if is_envoy else bed.grpc_backend
    first, second = backend("first"), backend("second")
    mesh = envoy_mesh(DELTA, port, backend=first)

    def resources(to):
        mesh.backends["backend"] = to
        return mesh.resources() if is_envoy else grpc_mesh(to, plain)

    origin = secured_origin(bed, resources(first), files)
    relay = bed.start_relay([upstream(origin) | {"tls": {"ca": files.ca, **identity(files, "relay")}}])
    serving = bed.envoy(DELTA, relay.port, port) if is_envoy else bed.grpc_client(relay.port)
    until("a request reaches the first backend", lambda: serving.request() == "first", within=20)
    left = expires(relay)
    check(0 < left < 2 * 24 * 3600, f"the relay's certificate expires in {left} s")
    watching = bed.delta(relay.port)
    watching.subscribe(CLUSTER, "*")
    until("clusters arrive", lambda: watching.names(CLUSTER))
    load = bed.load(serving, "first", "second")
    files.replace(after, "relay", "origin")
    origin.kill()
    origin.write(resources(second))
    origin.start()
    until("requests reach the second backend", lambda: serving.request() == "second", within=30)
    load.none_failed()
    undisturbed(watching, "who was there before")
    files.replace(after, "relay", expired=True)
    until("the relay says that its certificate has expired", lambda: expires(relay) < 0, within=20)
    until("so does its log", lambda: says(relay, files.of("relay")[0], "certificate 1 expired"))
    check(serving.request() == "second", "what is open goes on")


def expires(relay):
    """In how many seconds its certificate towards its origin does."""
    field = 'xds_relay_certificate_expires_in_seconds{field="origins[0].tls.certificate"} '
    lines = (line for line in relay.page("/metrics").splitlines() if line.startswith(field))
    return int(next(lines).removeprefix(field))


@scenario(shown=("none", "stranger", "expired"), needs_relay=True, needs_node=True)
def grpc_for_node_is_served_with_a_certificate_and_refused_without(bed, shown):
    """Its TLS is that of Node. It speaks with who is vouched for, before and after the relay's certificate is replaced."""
    before, after = Authority("before"), Authority("after")
    late, others = Authority("late"), Files(bed.folder, "others", Authority("stranger"), "client")
    files, theirs = (Files(bed.folder, name, before, "relay", "client") for name in ("files", "theirs"))
    words = {"none": "peer sent no certificates", "stranger": "UnknownIssuer", "expired": "certificate expired"}[shown]
    if shown == "expired":
        others.replace(late, "client", expired=True)
        with open(files.ca, "ab") as trusted:
            trusted.write(late.pem)
    mesh = envoy_mesh(DELTA, free_port(), backend=1)
    origin = bed.origin(mesh.resources())
    relay = bed.start_relay([upstream(origin)], tls={**identity(files, "relay"), "client_ca": files.ca})
    node = bed.grpc_js()
    refused = node.opens(relay.port, CLUSTER, theirs, None if shown == "none" else others)
    until("the relay says why", lambda: says(relay, REFUSED, words))
    until("so does Node", lambda: (refused()["ended"] or "").startswith("UNAVAILABLE "))
    equal(refused()["messages"], 0, "what who is refused is sent")
    served = node.opens(relay.port, CLUSTER, theirs, theirs)
    until("clusters arrive", lambda: served()["messages"] == 1)
    files.replace(after, "relay", "client")
    theirs.replace(after, "client")
    until("the relay has read them", lambda: says(relay, ANEW, files.of("relay")[0]))
    again = node.opens(relay.port, CLUSTER, theirs, theirs)
    until("clusters arrive by the new certificates", lambda: again()["messages"] == 1)
    mesh.backends["backend"] = 2
    mesh.backends["another"] = 3
    origin.update(mesh.resources())
    until("an update arrives on both", lambda: served()["messages"] > 1 and again()["messages"] > 1)
    equal([served()["messages"], again()["messages"]], [2, 2], "what they were told: all there is, and the update")
    equal([served()["ended"], again()["ended"]], [None, None], "how they ended")


@scenario(shown=("ours", "none"), needs_relay=True, needs_node=True)
def grpc_for_node_is_an_origin_for_who_shows_a_certificate(bed, shown):
    """It wants one, and says so in the handshake."""
    files = Files(bed.folder, "files", Authority("ours"), "relay", "origin")
    held = discovery_pb2.Resource(name="a", version="1")
    held.resource.Pack(cluster_pb2.Cluster(name="a"))
    node = bed.grpc_js()
    port = node.serves(files, discovery_pb2.DeltaDiscoveryResponse(type_url=CLUSTER, nonce="1", resources=[held]))
    tls = {"ca": files.ca, **(identity(files, "relay") if shown == "ours" else {})}
    relay = bed.start_relay([{"name": "node", "server": f"127.0.0.1:{port}", "tls": tls}])
    client = bed.delta(relay.port)
    client.subscribe(CLUSTER, "*")
    if shown == "ours":
        until("the cluster arrives", lambda: client.names(CLUSTER) == {"a"})
        equal(node.asked(), 1, "how many streams there were")
    else:
        until("the relay says why", lambda: says(relay, "CertificateRequired"))
        equal(node.asked(), 0, "how many streams there were")
