"""Traffic moves from one cluster to another, and the old one is removed: make before break."""

from harness.polling import until
from harness.registry import ORIGINS, scenario
from mesh import api_listener, cluster, endpoints, route

MOVES = 8
# Longer than the relay lets a removal wait.
REQUESTS = 40


def mesh(name, backend):
    """What a gRPC client needs to reach `xds:///service` on a backend, through a cluster of this name."""
    service = f"{name}-endpoints"
    return [
        api_listener("service", "routes", "ads"),
        route("routes", [("", name)]),
        cluster(name, service),
        endpoints(service, backend),
    ]


@scenario(origin=ORIGINS, linger=("1ms", "50ms", "30s"), needs_relay=True, waits=True)
def a_cluster_goes_after_the_route_that_uses_it(bed, origin, linger):
    """Back and forth. The origin says first what is gone, and the client asks for a cluster when it has the route."""
    backends = {name: bed.grpc_backend(name) for name in ("first", "second")}
    source = bed.origin(mesh("first", backends["first"]))
    client = bed.grpc_client(bed.front(source, origin, linger=linger))
    until("requests reach the first", lambda: client.request() == "first", within=20)
    load = bed.load(client, *backends)
    for move in range(MOVES):
        name = ("second", "first")[move % 2]
        source.update(mesh(name, backends[name]))
        load.sends(REQUESTS, within=30)
    load.none_failed()
    until("requests reach the first again", lambda: client.request() == "first")
