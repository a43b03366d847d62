"""Setups that many tests begin with: a client that serves, and all that is behind it."""

from dataclasses import dataclass

from harness.bed import AUTHORITY
from harness.cable import Cable
from harness.envoy import VARIANTS
from harness.grpc_client import C_CORE, NODE
from harness.polling import until
from harness.processes import free_port
from harness.registry import NODE_CLIENTS
from mesh import EnvoyMesh, envoy_mesh, grpc_mesh, plain, xdstp

GRPC, GRPC_XDSTP = "grpc_plain", "grpc_xdstp"
GRPC_JS, GRPC_JS_XDSTP = NODE_CLIENTS
CLIENTS = (*VARIANTS, GRPC, GRPC_XDSTP)
# With those of gRPC for Node, which are left out where there is none.
WITH_NODE = (*CLIENTS, *NODE_CLIENTS)


@dataclass
class Serving:
    """A client whose requests reach the backend `first`; there is a second one to go to."""

    client: object
    origin: object
    xds_port: int
    cable: Cable
    first: int
    second: int
    resources_for: object
    mesh: EnvoyMesh = None

    def move(self):
        """Tells the origin that the endpoint is the second backend now; nothing else changes."""
        self.origin.update(self.resources_for(self.second))

    def prepare_move(self):
        """The same for an origin that is not running: it has it when it starts."""
        self.origin.write(self.resources_for(self.second))

    def reaches(self, backend, within=10):
        """Waits until requests reach a backend."""
        until(f"requests reach {backend}", lambda: self.client.request() == backend, within)


def serving(bed, client, origin, **relay):
    """A client of any kind that serves."""
    if client in VARIANTS:
        return envoy_serving(bed, client, origin, **relay)
    return grpc_serving(bed, origin, xdstp if is_xdstp(client) else plain, program=program(client), **relay)


def another(bed, client, xds_port, listener_port=None, node="other", **keywords):
    """A started client of any kind, of another node than the one of a setup."""
    if client in VARIANTS:
        return bed.envoy(client, xds_port, listener_port, node=node, **keywords)
    authority = AUTHORITY if is_xdstp(client) else None
    return bed.grpc_client(xds_port, authority, node=node, program=program(client), **keywords)


def is_xdstp(client):
    """Whether a gRPC client of this kind asks for names of an authority."""
    return client in (GRPC_XDSTP, GRPC_JS_XDSTP)


def program(client):
    """What a gRPC client of this kind is."""
    return NODE if client in NODE_CLIENTS else C_CORE


def envoy_serving(bed, variant, protocol, options=(), front=None, within=20, **relay):
    """An Envoy that serves. `protocol` is what the relay speaks to the origin, `options` are the origin's. `front`
    puts something else than one relay before an origin: what it gives is the port that clients dial."""
    first, second, port = bed.http_backend("first"), bed.http_backend("second"), free_port()
    mesh = envoy_mesh(variant, port, backend=first)

    def resources_for(backend):
        mesh.backends["backend"] = backend
        return mesh.resources()

    origin = bed.origin(mesh.resources(), options=options)
    xds_port = front(origin) if front else bed.front(origin, protocol, **relay)
    cable = bed.cable(xds_port)
    envoy = bed.envoy(variant, cable.port, port)
    setup = Serving(envoy, origin, xds_port, cable, first, second, resources_for, mesh)
    setup.reaches("first", within)
    return setup


def grpc_serving(bed, protocol, naming=plain, source="ads", front=None, within=20, program=C_CORE, **relay):
    """A gRPC client that serves; with `xdstp` names its bootstrap is a federated one."""
    first, second = bed.grpc_backend("first"), bed.grpc_backend("second")
    origin = bed.origin(grpc_mesh(first, naming, source))
    xds_port = front(origin) if front else bed.front(origin, protocol, **relay)
    cable = bed.cable(xds_port)
    client = bed.grpc_client(cable.port, authority=AUTHORITY if naming is xdstp else None, program=program)
    setup = Serving(client, origin, xds_port, cable, first, second, lambda port: grpc_mesh(port, naming, source))
    setup.reaches("first", within)
    return setup
