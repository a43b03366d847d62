"""What a control plane has is released by a relay that follows it, with real Envoys in stages."""

from harness.envoy import DELTA, SOTW
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh
from tests.orders import HOLD, Released, is_in, scope
from tests.releases import candidate, have, revision

IDS, CANARIES = 6, 2
STAGES = [
    {"match": {"cluster": "canary"}, "hold": HOLD},
    {"percent": 50, "hold": HOLD},
    {"percent": 100, "hold": HOLD},
]


class Followed(Released):
    """A control plane whose content is a listener, its route, and a cluster that has its endpoints over xDS."""

    # Whoever comes while it is dead has the endpoints of others.
    settings = {"share_by": ["cluster"]}

    def __init__(self, bed, client, protocol, own_endpoints=False):
        super().__init__(bed)
        self.own_endpoints = own_endpoints
        self.client, self.protocol, self.port = client, protocol.partition("_")[0], free_port()
        self.backend = 10_001
        options = ["--snapshots"] if protocol.endswith("snapshots") else []
        self.plane = bed.origin(self.resources(1), name="plane", options=options)

    def resources(self, number, bad=False):
        """All that it has at a revision: its cluster is of that revision alone, and so are its endpoints, or all have the same."""
        name = f"revision-{number}"
        mesh = envoy_mesh(self.client, self.port, **{name: self.endpoint(number)})
        mesh.routes = [("/", name)]
        if not self.own_endpoints:
            mesh.endpoints_naming = lambda _type_url, _name: "backend"
        front, *others = mesh.resources()
        # Several Envoys on one machine.
        front["bind_to_port"] = False
        if bad:
            # Both are for everything.
            front["filter_chains"] *= 2
        return [front, *others]

    def endpoint(self, number):
        """The port of what a revision is served by."""
        return 10_000 + number if self.own_endpoints else self.backend

    def origins(self):
        """The control plane, and nothing of what it has but that it is followed."""
        return [{"name": "plane", "server": self.plane.address, "protocol": self.protocol, "follow": {}}]

    def change(self, number, bad=False):
        """It has this from now on."""
        self.plane.update(self.resources(number, bad))

    def serve(self, number, envoys):
        """They all have this revision, with the endpoints that its cluster refers to and the route to it."""
        have(number, envoys)
        for envoy in envoys:
            until("it has the endpoints", lambda envoy=envoy: ports(envoy, number) == {self.endpoint(number)})
            until("its route is to it", lambda envoy=envoy: routed(envoy) == f"revision-{number}")


@scenario(client=(DELTA, SOTW), origin=("delta", "sotw_snapshots"), needs_relay=True, needs_programs=True, waits=True)
def a_control_plane_that_is_followed_is_released_in_stages(bed, client, origin):
    """What is new reaches canaries, then half of all, then all; what they refuse halts there; and with the control plane dead it is
    taken back, what was stable once is so again, and a relay that starts anew serves it."""
    followed = Followed(bed, client, origin)
    relay = followed.relay(STAGES)
    clusters = {f"node-{at}": "canary" if at < CANARIES else "mesh" for at in range(IDS)}
    envoys = {node: bed.envoy(client, relay.port, node=node, cluster=cluster) for node, cluster in clusters.items()}
    everybody = list(envoys.values())
    canaries, others = everybody[:CANARIES], everybody[CANARIES:]
    followed.serve(1, everybody)
    first = scope(relay)["stable"]

    followed.change(2)
    for stage in (1, 2, 3):
        until("it is under way", lambda: candidate(relay).get("state") == "open", within=30)
        if stage > 1:
            followed.order(relay, "rollout", "stage", str(stage))
        release = candidate(relay)["release"]
        moved = [envoy for node, envoy in envoys.items() if is_in(stage, release, node, clusters[node])]
        followed.serve(2, moved)
        left = [envoy for envoy in everybody if envoy not in moved]
        throughout("nobody else has it", lambda left=left: all(revision(envoy) == 1 for envoy in left), 1)
    followed.order(relay, "rollout", "promote")
    followed.order(relay, "rollout", "wait", why=())

    followed.backend = 10_002
    followed.change(3, bad=True)
    until("the release has halted", lambda: candidate(relay).get("state") == "halted", within=30)
    throughout("the others have what is stable", lambda: all(revision(envoy) == 2 for envoy in others), 2)
    # Endpoints are in no release.
    followed.serve(2, others)
    for envoy in canaries:
        check(envoy.stat("listener_manager.lds.update_rejected") >= 1, "a canary refused nothing")

    followed.plane.kill()
    followed.order(relay, "rollback")
    followed.serve(2, everybody)
    followed.order(relay, "rollback", "--to", first)
    followed.serve(1, everybody)
    relay.restart()
    late = bed.envoy(client, relay.port, node="late", cluster="mesh")
    followed.serve(1, [late])
    until("it is ready", lambda: relay.page("/readyz"))
    throughout("all have what is stable", lambda: all(revision(envoy) == 1 for envoy in everybody), 2)
    until("all are served again", lambda: len(relay.clients()) == IDS + 1, within=20)
    for envoy in [late, *others]:
        equal(envoy.stat("listener_manager.lds.update_rejected"), 0, "what the others refused")
    for envoy in [late, *everybody]:
        equal(envoy.stat("listener_manager.listener_removed"), 0, "the listeners that were removed")


@scenario(client=(DELTA, SOTW), origin=("sotw_snapshots",), needs_relay=True, needs_programs=True, waits=True)
def a_control_plane_that_comes_back_is_released_in_stages(bed, client, origin):
    """The relay was started while it was dead; what it has then reaches canaries, and the others when that is ordered."""
    followed = Followed(bed, client, origin)
    relay = followed.relay(STAGES)
    canary, other = (bed.envoy(client, relay.port, node=cluster, cluster=cluster) for cluster in ("canary", "mesh"))
    followed.serve(1, [canary, other])
    followed.plane.kill()
    relay.restart()
    until("both are served again", lambda: len(relay.clients()) == 2, within=20)

    followed.plane.write(followed.resources(2))
    followed.plane.start()
    followed.serve(2, [canary])
    throughout("the other has what is stable", lambda: revision(other) == 1, 2)
    followed.order(relay, "rollout", "promote")
    followed.serve(2, [canary, other])
    for envoy in (canary, other):
        equal(envoy.stat("listener_manager.listener_removed"), 0, "the listeners that were removed")


@scenario(client=(DELTA, SOTW), origin=("delta",), needs_relay=True, needs_programs=True, waits=True)
def who_has_what_is_stable_keeps_its_endpoints(bed, client, origin):
    """Those of what is new have another name: who comes gets those of what is stable, while others have what is new, and after that."""
    followed = Followed(bed, client, origin, own_endpoints=True)
    relay = followed.relay(STAGES)
    canary, other = (bed.envoy(client, relay.port, node=cluster, cluster=cluster) for cluster in ("canary", "mesh"))
    followed.serve(1, [canary, other])

    # The endpoints are there for as long as somebody may go to them.
    followed.plane.update([*followed.resources(2), followed.resources(1)[-1]])
    followed.serve(2, [canary])
    followed.serve(1, [other, bed.envoy(client, relay.port, node="late", cluster="mesh")])
    followed.order(relay, "rollback")
    followed.serve(1, [canary, other, bed.envoy(client, relay.port, node="later", cluster="canary")])


def ports(envoy, number):
    """Those of the endpoints that the cluster of a revision has."""
    found = [entry["endpoint_config"] for entry in envoy.dump("dynamic_endpoint_configs", "include_eds")]
    return {
        endpoint["endpoint"]["address"]["socket_address"]["port_value"]
        for of in found
        if of.get("cluster_name") in ("backend", f"revision-{number}")
        for locality in of.get("endpoints", [])
        for endpoint in locality.get("lb_endpoints", [])
    }


def routed(envoy):
    """The cluster that its one route is to."""
    [entry] = envoy.dump("dynamic_route_configs")
    return entry["route_config"]["virtual_hosts"][0]["routes"][0]["route"]["cluster"]
