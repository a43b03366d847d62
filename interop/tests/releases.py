"""What is new is served to some Envoys before the others."""

import json
import os

import yaml

from ads.types import LISTENER
from harness.envoy import DELTA, SOTW
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh, static_cluster

CANARIES, OTHERS = 2, 3
HOLD = 1.5


@scenario(client=(DELTA, SOTW), needs_relay=True, waits=True)
def a_listener_that_envoy_refuses_reaches_canaries_alone(bed, client):
    """It halts there; an Envoy that is started then gets the good one; and what is good reaches all, stage by stage."""
    directory = bed.folder / "resources"
    directory.mkdir()
    port = free_port()

    def write(revision, bad=False):
        front = envoy_mesh(client, port, backend=port).resources()[0]
        # Several Envoys on one machine.
        front["bind_to_port"] = False
        if bad:
            # Both are for everything.
            front["filter_chains"] *= 2
        draft = bed.folder / "draft"
        draft.write_text(yaml.safe_dump({"resources": [front, static_cluster(f"revision-{revision}")]}))
        os.replace(draft, directory / "mesh.yaml")

    def start_relay():
        stages = [{"match": {"cluster": "canary"}, "hold": f"{HOLD}s"}, {"percent": 100}]
        rollout = [{"scope": "old-style", "settle": "200ms", "stages": stages}]
        origins = [{"name": "files", "files": str(directory)}]
        return bed.start_relay(origins, state={"path": "state"}, rollout=rollout, orders="none")

    write(1)
    relay = start_relay()
    canaries = [bed.envoy(client, relay.port, node=f"canary-{at}", cluster="canary") for at in range(CANARIES)]
    others = [bed.envoy(client, relay.port, node=f"other-{at}") for at in range(OTHERS)]
    have(1, canaries + others)

    write(2, bad=True)
    until("the release has halted", lambda: candidate(relay).get("state") == "halted", within=20)
    # Envoy took the clusters before it refused the listener.
    check(LISTENER in candidate(relay)["said"]["why"], f"why it halted: {candidate(relay)}")
    throughout("the others have what is stable", lambda: all(revision(envoy) == 1 for envoy in others), 2 * HOLD)
    for envoy in canaries:
        check(envoy.stat("listener_manager.lds.update_rejected") >= 1, "a canary refused nothing")
        equal(envoy.stat("listener_manager.total_listeners_active"), 1, "the listeners of a canary")
    late = [bed.envoy(client, relay.port, node=f"late-{cluster}", cluster=cluster) for cluster in ("canary", "mesh")]
    have(1, late)
    others += late
    for envoy in others:
        equal(envoy.stat("listener_manager.lds.update_rejected"), 0, "what the others refused")

    write(3)
    have(3, canaries)
    have(3, others)
    until("it is stable", lambda: not candidate(relay), within=20)
    for envoy in canaries + others:
        equal(envoy.stat("listener_manager.listener_removed"), 0, "the listeners that were removed")


def have(number, envoys):
    """They all have this revision, and a listener."""
    until(f"all have revision {number}", lambda: all(revision(envoy) == number for envoy in envoys), within=30)
    for envoy in envoys:
        until("it listens", lambda envoy=envoy: envoy.stat("listener_manager.total_listeners_active") == 1)


def revision(envoy):
    """That of the clusters it has; none while it has none, or two."""
    names = envoy.clusters()
    return int(min(names).removeprefix("revision-")) if len(names) == 1 else None


def candidate(relay):
    """The release that is under way."""
    [scope] = json.loads(relay.page("/api/v1/releases"))["scopes"]
    return scope.get("candidate", {})
