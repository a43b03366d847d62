"""People stop a release, take it back, and have it go on, while Envoys are served."""

import hashlib
import json
import os
import tempfile

import yaml

from harness.envoy import DELTA, SOTW
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from harness.relay import run_once
from mesh import envoy_mesh, static_cluster
from tests.releases import candidate, have, revision

HOLD = "600s"
IDS, CANARIES = 10, 2


class Released:
    """What an origin has, which relays release; and people who have a say in it."""

    # What is configured beside.
    settings = {}

    def __init__(self, bed):
        self.bed = bed

    def origins(self):
        """The origins of a relay."""
        raise NotImplementedError

    def relay(self, stages, name="relay"):
        """A running relay that releases it by these stages."""
        rollout = [{"scope": "old-style", "settle": "200ms", "stages": stages}]
        # The path of a socket is short.
        sockets = tempfile.TemporaryDirectory()
        self.bed.cleanups.append(sockets.cleanup)
        settings = {"state": {"path": f"state-{name}"}, "orders": f"unix:{sockets.name}/orders"} | self.settings
        return self.bed.start_relay(self.origins(), name=name, rollout=rollout, **settings)

    def order(self, relay, *arguments, expect=0, why=("--by", "interop", "--why", "a test")):
        """What comes of an order, by the tool."""
        code, said = run_once(self.bed.tool_binary, "relay", "--admin", f"127.0.0.1:{relay.admin}", *arguments, *why)
        equal(code, expect, f"{' '.join(arguments)}: {said}")
        return said


class Push(Released):
    """A directory of files that relays serve, which is pushed to."""

    def __init__(self, bed, client):
        super().__init__(bed)
        self.client, self.port = client, free_port()
        self.directory = bed.folder / "resources"
        self.directory.mkdir()

    def origins(self):
        """The directory."""
        return [{"name": "files", "files": str(self.directory)}]

    def write(self, number, bad=False):
        """What is pushed: a listener that Envoy refuses, if it is bad."""
        front = envoy_mesh(self.client, self.port, backend=self.port).resources()[0]
        # Several Envoys on one machine.
        front["bind_to_port"] = False
        if bad:
            # Both are for everything.
            front["filter_chains"] *= 2
        self.replace(yaml.safe_dump({"resources": [front, static_cluster(f"revision-{number}")]}))

    def replace(self, text):
        """The file is replaced whole."""
        draft = self.bed.folder / "draft"
        draft.write_text(text)
        os.replace(draft, self.directory / "mesh.yaml")


@scenario(client=(DELTA, SOTW), needs_relay=True, needs_programs=True, waits=True)
def people_stop_a_bad_push_and_go_back_with_the_origin_dead(bed, client):
    """Frozen, nobody gets what is bad; and what was good once is served again though the files are broken."""
    push = Push(bed, client)
    push.write(1)
    relay = push.relay([{"match": {"cluster": "canary"}, "hold": HOLD}])
    canary = bed.envoy(client, relay.port, node="canary", cluster="canary")
    envoys = [canary, *(bed.envoy(client, relay.port, node=f"other-{at}") for at in range(2))]
    have(1, envoys)
    first = scope(relay)["stable"]

    push.order(relay, "freeze")
    push.write(2, bad=True)
    until("what is new waits", lambda: candidate(relay).get("state") == "frozen", within=20)
    push.order(relay, "rollout", "wait", expect=4, why=())
    throughout("all have what is stable", lambda: all(revision(envoy) == 1 for envoy in envoys), 3)
    push.order(relay, "rollback")
    push.order(relay, "unfreeze")

    push.write(3)
    have(3, [canary])
    equal([revision(envoy) for envoy in envoys[1:]], [1, 1], "what the others have")
    push.order(relay, "rollout", "promote")
    push.order(relay, "rollout", "wait", why=())
    have(3, envoys)

    push.replace("resources: [")
    push.order(relay, "rollback", "--to", first)
    have(1, envoys)
    # The files are bad still.
    relay.restart()
    have(1, [bed.envoy(client, relay.port, node="late")])
    for envoy in envoys:
        equal(envoy.stat("listener_manager.lds.update_rejected"), 0, "what Envoys refused")
        equal(envoy.stat("listener_manager.listener_removed"), 0, "the listeners that were removed")
    said = push.order(relay, "audit", why=())
    check(all(word in said for word in ("frozen", "rolled back", "unfrozen", "promoted", "interop (uid ")), said)


@scenario(needs_relay=True, needs_programs=True, waits=True)
def twenty_envoys_are_in_the_same_stages_on_two_relays(bed):
    """What Envoy refuses reaches the canaries of both; what is good reaches as many of all as are said, and the same on both."""
    push = Push(bed, DELTA)
    push.write(1)
    stages = [
        {"match": {"cluster": "canary"}, "hold": HOLD},
        {"percent": 50, "hold": HOLD},
        {"percent": 100, "hold": HOLD},
    ]
    relays = [push.relay(stages, name=f"relay-{at}") for at in range(2)]
    clusters = {f"node-{at}": "canary" if at < CANARIES else "mesh" for at in range(IDS)}
    envoys = [
        {node: bed.envoy(DELTA, relay.port, node=node, cluster=cluster) for node, cluster in clusters.items()}
        for relay in relays
    ]
    everybody = [envoy for of_relay in envoys for envoy in of_relay.values()]
    have(1, everybody)

    push.write(2, bad=True)
    for relay in relays:
        until("the release has halted", lambda relay=relay: candidate(relay).get("state") == "halted", within=30)
    others = [envoy for of_relay in envoys for node, envoy in of_relay.items() if clusters[node] != "canary"]
    throughout("the others have what is stable", lambda: all(revision(envoy) == 1 for envoy in others), 3)
    for relay in relays:
        push.order(relay, "rollout", "wait", expect=3, why=())
        push.order(relay, "rollback")
    have(1, everybody)

    push.write(3)
    for stage in (1, 2, 3):
        for relay, of_relay in zip(relays, envoys, strict=True):
            until("it is under way", lambda relay=relay: candidate(relay).get("state") == "open", within=20)
            if stage > 1:
                push.order(relay, "rollout", "stage", str(stage))
            release = candidate(relay)["release"]
            moved = [envoy for node, envoy in of_relay.items() if is_in(stage, release, node, clusters[node])]
            have(3, moved)
            throughout(
                f"in stage {stage} nobody else has it",
                lambda of_relay=of_relay, moved=moved: all(
                    revision(envoy) == (3 if envoy in moved else 1) for envoy in of_relay.values()
                ),
                1,
            )
    equal(candidate(relays[0])["release"], candidate(relays[1])["release"], "the id of the release")
    for envoy in others:
        equal(envoy.stat("listener_manager.lds.update_rejected"), 0, "what the others refused")
    for envoy in everybody:
        equal(envoy.stat("listener_manager.listener_removed"), 0, "the listeners that were removed")


def is_in(stage, release, node, cluster):
    """Whether a node is served a release in a stage: reckoned here, and not by the relay."""
    place = int.from_bytes(hashlib.sha256(bytes.fromhex(release) + node.encode()).digest()[:8]) % 10_000
    return stage == 3 or cluster == "canary" or stage == 2 and place < 5_000


def scope(relay):
    """What is told of the one scope."""
    [told] = json.loads(relay.page("/api/v1/releases"))["scopes"]
    return told
