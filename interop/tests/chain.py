"""Relays behind relays: what one of them does when it dies is not noticed at either end."""

from ads.types import CLUSTER
from harness.bed import upstream
from harness.envoy import DELTA, SOTW, VARIANTS, nothing_was_removed
from harness.polling import equal, until
from harness.registry import ORIGINS, scenario
from mesh import static_cluster, xdstp
from setups import CLIENTS, GRPC, serving

RETURN = 40.0
LENGTH = 3

# More than a relay sends in one response.
MANY, BALLAST = 400, 2000
SLOW = 8_000_000


def chain(bed, protocol, relays, cables=None, **settings):
    """What puts relays one behind the other before an origin: `relays` then holds them, the origin's first. If
    `cables` is given, then it holds what leads to the next."""

    def front(origin):
        for number in range(LENGTH):
            port = origin.port
            if cables is not None:
                cables.append(bed.cable(port))
                port = cables[-1].port
            source = upstream(origin, protocol, port=port)
            relays.append(bed.start_relay([source], name=f"relay-{number + 1}", **settings))
            origin = relays[-1]
        return relays[-1].port

    return front


@scenario(client=CLIENTS, origin=ORIGINS, needs_relay=True, waits=True)
def a_relay_that_is_killed_in_the_middle_is_not_noticed(bed, client, origin):
    """It comes back knowing nothing, between two that know everything."""
    relays = []
    check_restart(bed, client, origin, relays, lambda: relays[1].restart())


@scenario(client=(DELTA, SOTW, GRPC), needs_relay=True, waits=True)
def a_relay_that_is_asked_to_stop_in_the_middle_is_not_noticed(bed, client):
    """It drains, leaves and comes back."""
    relays = []

    def restart():
        relays[1].terminate()
        until("it has ended", lambda: not relays[1].process.alive())
        relays[1].start()

    check_restart(bed, client, "delta", relays, restart, drain="1s")


@scenario(client=CLIENTS, needs_relay=True, waits=True)
def relays_that_are_killed_one_after_the_other_are_not_noticed(bed, client):
    """From the origin's to the client's."""
    relays = []

    def restart():
        for relay in relays:
            relay.restart()

    check_restart(bed, client, "delta", relays, restart)


def check_restart(bed, client, origin, relays, restart, **settings):
    """Restarts relays under traffic; a change made afterwards reaches the client."""
    setup = serving(bed, client, origin, front=chain(bed, origin, relays, **settings))
    load = bed.load(setup.client, "first", "second")
    restart()
    another_is_served(bed, relays)
    setup.move()
    setup.reaches("second", within=RETURN)
    load.none_failed()
    if client in VARIANTS:
        nothing_was_removed(setup.client)


def another_is_served(bed, relays):
    """Waits until the relays have what they had: a client of our own asks for it. A relay may wait a while before it
    dials one that was away, and ends streams of which it knows nothing (rule 157): then the client comes back."""
    others = []

    def served():
        if not others or others[-1].error is not None:
            others.append(bed.delta(relays[-1].port, node="another"))
            others[-1].subscribe(CLUSTER, "*", xdstp(CLUSTER, "*"))
        return others[-1].names(CLUSTER)

    until("another client is served", served, within=RETURN)


@scenario(client=VARIANTS, needs_relay=True, waits=True)
def a_large_answer_comes_whole_through_relays(bed, client):
    """A relay's own server answers in pieces: the one behind it takes none of them for the end."""
    relays, cables = [], []
    setup = serving(bed, client, "delta", front=chain(bed, "delta", relays, cables))
    metadata = {"filter_metadata": {"interop": {"ballast": "x" * BALLAST}}}
    names = [setup.mesh.naming(CLUSTER, f"ballast-{number}") for number in range(MANY)]
    more = [static_cluster(name, metadata=metadata) for name in names]
    setup.origin.update([*more, *setup.mesh.resources()])
    until("Envoy has all clusters", lambda: setup.client.active() == MANY + 1, within=30)
    load = bed.load(setup.client, "first")
    cables[-1].bits_per_second = SLOW
    for relay in relays:
        relay.restart()
    later = static_cluster(setup.mesh.naming(CLUSTER, "later"))
    setup.origin.update([*more, later, *setup.mesh.resources()])
    until("Envoy takes changes", lambda: setup.client.active() == MANY + 2, within=RETURN)
    load.none_failed()
    nothing_was_removed(setup.client)
    equal(len(setup.client.clusters()), MANY + 2, "the clusters that Envoy has")
