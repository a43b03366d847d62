"""Two relays that have their releases in a cluster of etcd, and clients that serve and may move from one to the other."""

import signal
import time

from harness.polling import check, equal, throughout, until
from harness.registry import scenario
from scale.fleet import Fleet, have, revision

# How long a relay that publishes may be gone before another one does: its lease is one of 3 s, however it went, and etcd looks
# twice a second for leases that are over.
TAKES_OVER = 5.0
# For how long one is cut off from etcd: for many leases.
CUT_OFF = 61
# How long canaries have what is new by themselves, where that is to be seen, in seconds.
CANARIES = 15


def serving(bed, **how):
    """Two relays with a canary each, which take requests, and a gRPC client each."""
    fleet = Fleet(bed, **how)
    envoys = [fleet.envoy(at, f"canary-{at}", "canary") for at in range(2)]
    have(1, envoys)
    fleet.agree()
    fleet.serves()
    return fleet, envoys


@scenario(origin=("files", "etcd"), needs_relay=True, needs_programs=True, waits=True)
def what_any_canary_refuses_halts_on_all_relays_and_envoys_may_move(bed, origin):
    """Each relay has canaries; only those of one refuse, and it is the other one that publishes. What there is is in files, or
    in etcd, where the tool puts it."""
    fleet = Fleet(bed, origin=origin)
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


@scenario(how=("killed", "cut_off"), needs_relay=True, needs_programs=True, alone=True)
def another_relay_publishes_within_five_seconds(bed, how):
    """The relay that publishes is killed, or cut off from etcd; its Envoys go to the other one, and what is new then reaches the
    canaries."""
    fleet, envoys = serving(bed)
    gone = fleet.publisher()
    left = 1 - gone
    if how == "killed":
        fleet.relays[gone].kill()
    else:
        cut_off(fleet, gone)
    since = time.monotonic()
    fleet.move(envoys[gone], left)
    fleet.write(2)
    takes_over(fleet, left)
    took = time.monotonic() - since
    check(took < TAKES_OVER, f"another relay published after {took:.1f} s")
    print(f"       another relay published after {took:.1f} s")
    have(2, envoys)
    if how == "killed":
        fleet.relays[gone].start()
        fleet.agree()
    else:
        back(fleet, gone)
        fleet.agree(within=30)
    fleet.nothing_was_taken()


def takes_over(fleet, at):
    """Waits until that relay publishes."""
    instance = fleet.instance(at)
    until("the other one publishes", lambda: fleet.told(at)["publisher"] == instance, within=20)


def cut_off(fleet, at):
    """No member of etcd is there for that relay."""
    for cable in fleet.cables[at]:
        cable.cut()


def back(fleet, at):
    """All members are there for it again."""
    for cable in fleet.cables[at]:
        cable.mend()


@scenario(needs_relay=True, needs_programs=True, waits=True)
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


@scenario(needs_relay=True, needs_programs=True, waits=True)
def relays_that_start_while_etcd_is_away_serve_what_they_served_last(bed):
    """All of etcd is stopped, and both relays are killed and start again: Envoys that are new are served, too. Etcd wants
    certificates and a password of them."""
    fleet, envoys = serving(bed, secured=True)
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


@scenario(needs_relay=True, needs_programs=True, waits=True)
def a_relay_that_is_cut_off_serves_what_it_knows(bed):
    """The relay that publishes is cut off from etcd for longer than its lease: another one publishes, and no two at once."""
    fleet, envoys = serving(bed)
    cut = fleet.publisher()
    cut_off(fleet, cut)
    takes_over(fleet, 1 - cut)
    fleet.write(2)
    have(2, [envoys[1 - cut]])
    late = fleet.envoy(cut, "late", "canary")
    have(1, [late])
    throughout("who is cut off serves what there was", lambda: all(revision(envoy) == 1 for envoy in (envoys[cut], late)), CUT_OFF)
    fleet.move(envoys[cut], 1 - cut)
    have(2, envoys)
    back(fleet, cut)
    fleet.agree(within=30)
    have(2, [late])
    fleet.move(envoys[cut], cut)
    throughout("it has the same there", lambda: revision(envoys[cut]) == 2, 3)
    fleet.nothing_was_taken()


@scenario(needs_relay=True, needs_programs=True, waits=True)
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


@scenario(needs_relay=True, needs_programs=True, waits=True)
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
    cut_off(fleet, cut)
    for number in (3, 4, 5):
        fleet.write(number)
        have(number, [envoys[1 - cut]])
    fleet.etcd.compact()
    throughout("who is cut off serves what there was", lambda: revision(envoys[cut]) == 2, 3)
    back(fleet, cut)
    have(5, envoys)
    fleet.agree(within=30)
    fleet.nothing_was_taken()


@scenario(ahead=(3600, -3600), needs_relay=True, needs_programs=True, needs_clocks=True, waits=True)
def a_clock_that_is_wrong_makes_no_stage_shorter_or_longer(bed, ahead):
    """The clock of one relay is an hour ahead, or behind. Both publish in turn, and each goes on once with a stage that the other began
    and did not end."""
    fleet, canaries = serving(bed, holds=(f"{CANARIES}s", "1s"), ahead=(ahead, 0))
    others = [fleet.envoy(at, f"other-{at}") for at in range(2)]
    have(1, others)
    for number in (2, 3):
        since = time.monotonic()
        fleet.write(2 * number)
        have(2 * number, canaries)
        lasts(fleet, others, 2 * number, since)

        fleet.write(2 * number + 1)
        have(2 * number + 1, canaries)
        gone = fleet.publisher()
        for client in [client for client, cable in fleet.leads.items() if cable.to_port == fleet.relays[gone].port]:
            fleet.move(client, 1 - gone)
        since = time.monotonic()
        fleet.relays[gone].kill()
        takes_over(fleet, 1 - gone)
        lasts(fleet, others, 2 * number + 1, since, told_by=1 - gone)
        fleet.relays[gone].start()
        fleet.agree(within=30)
        for at, client in enumerate((*canaries, *others)):
            fleet.move(client, at % 2)
    fleet.order(0, "freeze")
    until("the freeze holds on both", lambda: all(fleet.told(at).get("frozen") for at in range(2)), within=30)
    fleet.order(1, "unfreeze")
    fleet.agree()
    fleet.nothing_was_taken()


def lasts(fleet, others, number, since, told_by=0):
    """All others get it when canaries have had it for as long as they are to, and then it is stable."""
    have(number, others)
    took = time.monotonic() - since
    check(took >= CANARIES, f"the stage lasted {took:.1f} s")
    until("it is stable", lambda: not fleet.candidate(told_by), within=30)
