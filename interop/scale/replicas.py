"""Two relays that have their releases in a cluster of etcd, and Envoys that serve and may move from one to the other."""

import json
import os
import signal
import tempfile
import time

import yaml

from harness.envoy import DELTA
from harness.etcd import Etcd
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from harness.relay import run_once
from mesh import envoy_mesh, static_cluster

HOLD = "600s"
# How long a relay that publishes may be gone before another one does.
TAKES_OVER = 5.0


class Fleet:
    """Relays of the same files and the same etcd, and Envoys at them that take requests all the time."""

    def __init__(self, bed, members=3, relays=2):
        self.bed = bed
        self.etcd = bed.started(Etcd(bed.folder, members))
        self.cables = [[bed.cable(client) for client, _ in self.etcd.ports] for _ in range(relays)]
        # All Envoys listen there: a connection is taken by any of them.
        self.port = free_port()
        self.mesh = envoy_mesh(DELTA, self.port, backend=bed.http_backend("served"))
        self.directory = bed.folder / "resources"
        self.directory.mkdir()
        self.envoys, self.leads = [], []
        self.write(1)
        self.relays = [self.relay(at) for at in range(relays)]

    def write(self, number, bad=False):
        """What all relays are to serve: a listener that Envoy refuses, if it is bad."""
        front, *others = self.mesh.resources()
        if bad:
            # Both are for everything.
            front["filter_chains"] *= 2
        self.replace(yaml.safe_dump({"resources": [front, *others, static_cluster(f"revision-{number}")]}))

    def replace(self, text):
        """The file is replaced whole."""
        draft = self.bed.folder / "draft"
        draft.write_text(text)
        os.replace(draft, self.directory / "mesh.yaml")

    def relay(self, at):
        """A running relay that releases to canaries first."""
        stages = [{"match": {"cluster": "canary"}, "hold": HOLD}, {"percent": 100, "hold": HOLD}]
        sockets = tempfile.TemporaryDirectory()
        self.bed.cleanups.append(sockets.cleanup)
        endpoints = [f"127.0.0.1:{cable.port}" for cable in self.cables[at]]
        return self.bed.start_relay(
            [{"name": "files", "files": str(self.directory)}],
            name=f"relay-{at}",
            rollout=[{"scope": "old-style", "settle": "200ms", "stages": stages}],
            state={"path": f"state-{at}", "etcd": {"endpoints": endpoints, "prefix": "fleet/"}},
            orders=f"unix:{sockets.name}/orders",
        )

    def envoy(self, at, node, cluster="mesh"):
        """An Envoy at a relay, by a cable that can lead to another one."""
        cable = self.bed.cable(self.relays[at].port)
        envoy = self.bed.envoy(DELTA, cable.port, self.port, node=node, cluster=cluster)
        self.envoys.append(envoy)
        self.leads.append(cable)
        return envoy

    def move(self, envoy, at):
        """Its next stream is at that relay."""
        cable = self.leads[self.envoys.index(envoy)]
        cable.to_port = self.relays[at].port
        cable.cut()
        cable.mend()

    def order(self, at, *arguments, expect=0, why=("--by", "interop", "--why", "a test")):
        """What comes of an order at that relay, by the tool."""
        relay = self.relays[at]
        code, said = run_once(self.bed.tool_binary, "relay", "--admin", f"127.0.0.1:{relay.admin}", *arguments, *why)
        equal(code, expect, f"{' '.join(arguments)}: {said}")
        return said

    def told(self, at):
        """What that relay says of the one scope."""
        [told] = json.loads(self.relays[at].page("/api/v1/releases"))["scopes"]
        return told

    def candidate(self, at):
        """The release on its way, as that relay sees it."""
        return self.told(at).get("candidate") or {}

    def publisher(self):
        """Which of the relays publishes."""
        publisher = self.told(0)["publisher"]
        instances = [json.loads(relay.page("/api/v1/releases"))["instance"] for relay in self.relays]
        return instances.index(publisher)

    def agree(self, within=10):
        """Waits until all relays say the same of the releases."""

        def same():
            first, *others = [self.told(at) for at in range(len(self.relays))]
            keys = ("stable", "frozen", "publisher", "refused")
            stages = [(told.get("candidate") or {}).get("stage") for told in (first, *others)]
            return len(set(stages)) == 1 and all(first.get(key) == other.get(key) for other in others for key in keys)

        until("the relays agree", same, within)

    def serves(self):
        """Requests, from now on, by all Envoys that are there."""
        self.load = self.bed.load(self.envoys[0], "served")

    def nothing_was_taken(self):
        """No Envoy lost its listener, and no request failed."""
        for envoy in self.envoys:
            equal(envoy.stat("listener_manager.listener_removed"), 0, f"the listeners that {envoy.name} lost")
        self.load.none_failed()


def have(number, envoys):
    """They all have this revision, and a listener."""
    until(f"all have revision {number}", lambda: all(revision(envoy) == number for envoy in envoys), within=30)
    for envoy in envoys:
        until("it listens", lambda envoy=envoy: envoy.stat("listener_manager.total_listeners_active") == 1)


def revision(envoy):
    """That of what it has; none while it has none, or two."""
    names = [name for name in envoy.clusters() if name.startswith("revision-")]
    return int(names[0].removeprefix("revision-")) if len(names) == 1 else None


def serving(bed):
    """Two relays with a canary each, which take requests."""
    fleet = Fleet(bed)
    envoys = [fleet.envoy(at, f"canary-{at}", "canary") for at in range(2)]
    have(1, envoys)
    fleet.agree()
    fleet.serves()
    return fleet, envoys


@scenario(needs_relay=True, needs_programs=True, alone=True)
def what_any_canary_refuses_halts_on_all_relays_and_envoys_may_move(bed):
    """Each relay has canaries; only those of one refuse, and it is the other one that publishes."""
    fleet = Fleet(bed)
    canaries = [fleet.envoy(at, f"canary-{at}", "canary") for at in range(2)]
    others = [fleet.envoy(at, f"other-{at}") for at in range(2)]
    have(1, fleet.envoys)
    fleet.agree()
    fleet.serves()

    # Only the relay that does not publish has a canary.
    fleet.move(canaries[fleet.publisher()], 1 - fleet.publisher())
    have(1, fleet.envoys)
    fleet.write(2, bad=True)
    for at in range(2):
        until("it has halted", lambda at=at: fleet.candidate(at).get("state") == "halted", within=30)
    throughout("the others have what is stable", lambda: all(revision(envoy) == 1 for envoy in others), 3)
    fleet.order(0, "rollback")
    have(1, fleet.envoys)

    fleet.write(3)
    have(3, canaries)
    # A client that moves is in the same stage.
    for envoy in (*canaries, *others):
        for at in (0, 1):
            fleet.move(envoy, at)
    throughout("who moves keeps what it has", lambda: all(revision(envoy) == 3 for envoy in canaries), 5)
    equal([revision(envoy) for envoy in others], [1, 1], "what the others have")
    fleet.order(1, "rollout", "promote")
    have(3, fleet.envoys)
    fleet.agree()
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, alone=True)
def another_relay_publishes_within_five_seconds_of_a_crash(bed):
    """The relay that publishes is killed; its Envoys go to the other one, and what is new then reaches the canaries."""
    fleet, envoys = serving(bed)
    dead = fleet.publisher()
    left = 1 - dead
    fleet.relays[dead].kill()
    killed = time.monotonic()
    fleet.move(envoys[dead], left)
    instance = json.loads(fleet.relays[left].page("/api/v1/releases"))["instance"]
    fleet.write(2)
    until("the other one publishes", lambda: fleet.told(left)["publisher"] == instance, within=20)
    took = time.monotonic() - killed
    check(took < TAKES_OVER, f"another relay published after {took:.1f} s")
    print(f"       another relay published {took:.1f} s after the crash")
    have(2, envoys)
    fleet.relays[dead].start()
    fleet.agree()
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, alone=True)
def etcd_loses_its_leader_its_quorum_and_its_past(bed):
    """What Envoys have is served all along; what is ordered meanwhile holds, and what was ordered is not forgotten."""
    fleet, envoys = serving(bed)
    snapshot = bed.folder / "snapshot"
    fleet.etcd.save(snapshot)

    dead = fleet.etcd.kill_leader()
    fleet.write(2)
    have(2, envoys)
    fleet.etcd.start_member(dead)
    fleet.order(0, "rollout", "promote")
    fleet.agree()

    fleet.etcd.stop_all()
    fleet.write(3)
    said = fleet.order(1, "freeze")
    throughout("all have what was stable", lambda: all(revision(envoy) == 2 for envoy in envoys), 20)
    check("cannot be written now" in said, f"what is said of an order that is not written: {said}")
    late = fleet.envoy(0, "late")
    have(2, [late])
    fleet.etcd.go_on()
    until("the freeze holds on both", lambda: all(fleet.told(at).get("frozen") for at in range(2)), within=30)
    fleet.agree(within=30)

    fleet.etcd.restore(snapshot)
    time.sleep(10)
    for at in range(2):
        check(fleet.told(at).get("frozen"), "a freeze is forgotten")
    throughout("all have what was stable", lambda: all(revision(envoy) == 2 for envoy in fleet.envoys), 5)
    fleet.order(0, "unfreeze")
    have(3, envoys)
    fleet.agree(within=30)
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, alone=True)
def relays_that_start_while_etcd_is_away_serve_what_they_served_last(bed):
    """All of etcd is stopped, and both relays are killed and start again: Envoys that are new are served, too."""
    fleet, envoys = serving(bed)
    fleet.etcd.stop_all()
    for at, relay in enumerate(fleet.relays):
        relay.kill()
        relay.start()
        check(fleet.told(at).get("recalled"), "that etcd does not answer is not told")
    fleet.order(0, "freeze")
    late = [fleet.envoy(at, f"late-{at}") for at in range(2)]
    have(1, late)
    fleet.write(2)
    throughout("nothing new is released", lambda: all(revision(envoy) == 1 for envoy in fleet.envoys), 5)
    fleet.etcd.go_on()
    until("the freeze holds on both", lambda: all(fleet.told(at).get("frozen") for at in range(2)), within=30)
    fleet.order(1, "unfreeze")
    have(2, envoys)
    fleet.agree(within=30)
    equal([revision(envoy) for envoy in late], [1, 1], "what those have that are no canaries")
    check(not any(fleet.told(at).get("recalled") for at in range(2)), "etcd has answered")
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, alone=True)
def a_relay_that_is_cut_off_serves_what_it_knows(bed):
    """The relay that publishes is cut off from etcd for longer than its lease: another one publishes, and no two at once."""
    fleet, envoys = serving(bed)
    cut = fleet.publisher()
    for cable in fleet.cables[cut]:
        cable.cut()
    fleet.write(2)
    have(2, [envoys[1 - cut]])
    throughout("who is cut off serves what there was", lambda: revision(envoys[cut]) == 1, 20)
    fleet.move(envoys[cut], 1 - cut)
    have(2, envoys)
    for cable in fleet.cables[cut]:
        cable.mend()
    fleet.agree(within=30)
    fleet.move(envoys[cut], cut)
    throughout("it has the same there", lambda: revision(envoys[cut]) == 2, 3)
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, alone=True)
def a_relay_that_was_stopped_and_goes_on_publishes_nothing_late(bed):
    """The relay that publishes is stopped for longer than its lease; meanwhile another one publishes, and what the first had in
    hand when it goes on is not done."""
    fleet, envoys = serving(bed)
    stopped = fleet.publisher()
    fleet.relays[stopped].process.child.send_signal(signal.SIGSTOP)
    fleet.move(envoys[stopped], 1 - stopped)
    fleet.write(2)
    have(2, envoys)
    fleet.write(3)
    have(3, envoys)
    fleet.relays[stopped].process.child.send_signal(signal.SIGCONT)
    fleet.agree(within=30)
    throughout("nothing older comes back", lambda: all(revision(envoy) == 3 for envoy in envoys), 5)
    equal(fleet.publisher(), 1 - stopped, "who publishes")
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, alone=True)
def what_etcd_has_forgotten_is_read_anew(bed):
    """Two of three members are dead, and when they are back etcd is compacted while a relay is cut off: it cannot hear what was done."""
    fleet, envoys = serving(bed)
    for at in (1, 2):
        fleet.etcd.processes[at].kill()
    fleet.write(2)
    throughout("without a quorum nothing is published", lambda: all(revision(envoy) == 1 for envoy in envoys), 15)
    for at in (1, 2):
        fleet.etcd.start_member(at)
    have(2, envoys)
    fleet.agree(within=30)

    cut = 1 - fleet.publisher()
    for cable in fleet.cables[cut]:
        cable.cut()
    for number in (3, 4, 5):
        fleet.write(number)
        have(number, [envoys[1 - cut]])
    fleet.etcd.compact()
    throughout("who is cut off serves what there was", lambda: revision(envoys[cut]) == 2, 3)
    for cable in fleet.cables[cut]:
        cable.mend()
    have(5, envoys)
    fleet.agree(within=30)
    fleet.nothing_was_taken()
