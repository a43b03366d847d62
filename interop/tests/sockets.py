"""Clients and origins on the relay's own machine, without ports."""

from ads.types import CLUSTER
from harness.bed import upstream
from harness.envoy import VARIANTS
from harness.polling import equal, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh


@scenario(client=VARIANTS, needs_relay=True)
def envoy_is_served_over_a_pipe(bed, client):
    """And again after the relay was killed, which leaves its socket behind."""
    first, second, port = bed.http_backend("first"), bed.http_backend("second"), free_port()
    mesh = envoy_mesh(client, port, backend=first)
    origin = bed.origin(mesh.resources())
    path = str(bed.folder / "s")
    relay = bed.start_relay([upstream(origin)], listen=f"unix:{path}")
    envoy = bed.envoy(client, path, port)
    until("a request reaches the first backend", lambda: envoy.request() == "first", within=20)
    relay.restart()
    mesh.backends["backend"] = second
    origin.update(mesh.resources())
    until("a request reaches the second backend", lambda: envoy.request() == "second", within=20)


@scenario(scheme=("unix", "unix-abstract"), needs_relay=True)
def grpc_is_served_over_a_unix_socket(bed, scheme):
    """Through two relays: between them, too, there is no port."""
    mesh = envoy_mesh(VARIANTS[0], free_port(), backend=1)
    far, near = (f"{scheme}:{bed.folder / name}" for name in ("f", "n"))
    bed.start_relay([upstream(bed.origin(mesh.resources()))], name="far", listen=far)
    bed.start_relay([{"name": "far", "server": far}], name="near", listen=near)
    client = bed.delta(near)
    client.subscribe(CLUSTER, "*")
    until("clusters arrive", lambda: client.names(CLUSTER))
    equal(client.error, None, "what the stream ended with")
