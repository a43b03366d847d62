"""TLS with certificates on both sides, towards clients and towards the origin."""

import grpc

from ads.types import CLUSTER
from harness.bed import upstream
from harness.certificates import Authority, Files
from harness.envoy import DELTA
from harness.polling import check, equal, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh, grpc_mesh, plain
from setups import GRPC

# What the relay's log says of who is not spoken to.
REFUSED = "a client is not spoken to by TLS: "


def identity(files, name):
    """A certificate and its key, in the relay's words."""
    certificate, key = files.of(name)
    return {"certificate": certificate, "key": key}


def said(relay):
    """The lines of its log."""
    return relay.log.read_text().splitlines()


def secured_origin(bed, resources, files):
    """An origin, which is gRPC for Python, that wants certificates."""
    return bed.origin(resources, options=["--tls", *files.of("origin"), files.ca])


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
        certificate, key = theirs.of("client")
        tls = {"ca_certificate_file": theirs.ca, "certificate_file": certificate, "private_key_file": key}
        return bed.grpc_client(relay.port, tls=tls)

    serving = another()
    until("a request reaches the first backend", lambda: serving.request() == "first", within=20)
    load = bed.load(serving, "first", "second")
    files.replace(after, "relay")
    theirs.replace(after, "client")
    known = bed.delta(relay.port, node="new", credentials=credentials(theirs, theirs))
    known.subscribe(CLUSTER, "*")
    until("clusters arrive by the new certificates", lambda: known.names(CLUSTER))
    stranger = bed.delta(relay.port, node="old", credentials=credentials(theirs, retired))
    stranger.subscribe(CLUSTER, "*")
    until("who shows the old ones is refused", lambda: any(REFUSED in line and "Unknown" in line for line in said(relay)))
    origin.update(resources(second))
    until("requests reach the second backend on the stream that was open", lambda: serving.request() == "second")
    load.none_failed()
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
    until("the relay says why", lambda: any(REFUSED in line and words in line for line in said(relay)))
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
    client = bed.delta(relay.port)
    client.subscribe(CLUSTER, "*")
    # gRPC's C core closes the connection, and says nothing.
    words = {"stranger": "UnknownIssuer", "expired": "expired", "none": "the connection ended before it spoke HTTP/2"}[wrong]
    until("the relay says why", lambda: any(words in line for line in said(relay)))
    check(not client.names(CLUSTER), "something came from an origin that is not trusted")
    if wrong == "stranger":
        files.replace(ours, "relay")
        until("clusters arrive once the relay trusts it", lambda: client.names(CLUSTER), within=20)
