"""A relay that lost everything comes back before clients that hold everything: nothing is taken away from them."""

from ads.types import CLUSTER, PREFIX
from harness.envoy import DELTA, SOTW, VARIANTS
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import ORIGINS, scenario
from mesh import envoy_mesh, static_cluster
from setups import CLIENTS, serving

# How long a client, and the relay, may take to find out that the other is there again: they back off.
RETURN = 40.0

# What was seen to do harm: 3.4 MB of clusters, sent as a relay's own server would, over a slow link.
MANY, BALLAST, PIECE = 1500, 2000, 100
SLOW = 8_000_000

# Beyond the 15 s after which a client takes silence for an answer.
SILENCE = 17.0


def with_ballast(bed, variant, many, ballast=0):
    """A mesh with as many clusters, and the origin that has it: the one that serves comes last."""
    mesh = envoy_mesh(variant, free_port(), backend=bed.http_backend("first"))
    metadata = {"filter_metadata": {"interop": {"ballast": "x" * ballast}}}
    names = [mesh.naming(CLUSTER, f"ballast-{number}") for number in range(many - 1)]
    more = [static_cluster(name, metadata=metadata) for name in names]
    return mesh, more, bed.origin([*more, *mesh.resources()])


def held(relay):
    """How many clusters the relay holds."""
    return relay.count("resources", f'type="{CLUSTER.removeprefix(PREFIX)}"')


def nothing_was_removed(envoy, but=0):
    """What Envoy counted."""
    equal(envoy.stat("cluster_manager.cluster_removed"), but, "the clusters that Envoy was told to remove")
    equal(envoy.stat("listener_manager.listener_removed"), 0, "the listeners that Envoy was told to remove")


def restart_before(bed, envoy, source, mesh, more, pace):
    """Restarts the relay under traffic, before an origin that answers at this pace; waits until Envoy takes changes."""
    many = len(more) + 1
    until("Envoy has all clusters", lambda: envoy.active() == many, within=30)
    until("requests reach the backend", lambda: envoy.request() == "first", within=20)
    load = bed.load(envoy, "first")
    pace()
    bed.relay.restart()
    until("the relay has all clusters again", lambda: held(bed.relay) == many, within=60)
    later = static_cluster(mesh.naming(CLUSTER, "later"))
    source.update([*more, later, *mesh.resources()])
    until("Envoy takes changes", lambda: envoy.active() == many + 1, within=RETURN)
    nothing_was_removed(envoy)
    check(later["name"] in envoy.clusters(), "the cluster that came is another one")
    equal(len(envoy.clusters()), many + 1, "the clusters that Envoy has")
    load.none_failed()


@scenario(client=VARIANTS, needs_relay=True, alone=True)
def a_slow_link_takes_nothing_away(bed, client):
    """What is still on its way is not gone."""
    mesh, more, source = with_ballast(bed, client, MANY, BALLAST)
    source.pace(piece=PIECE)
    uplink = bed.cable(source.port)
    envoy = bed.envoy(client, bed.front(source, port=uplink.port), mesh.port)
    restart_before(bed, envoy, source, mesh, more, lambda: setattr(uplink, "bits_per_second", SLOW))


@scenario(client=VARIANTS, between=(0.3, 1, 6), needs_relay=True, waits=True)
def an_answer_in_pieces_takes_nothing_away(bed, client, between):
    """However long the pause between two of them."""
    mesh, more, source = with_ballast(bed, client, 12)
    envoy = bed.envoy(client, bed.front(source), mesh.port)
    restart_before(bed, envoy, source, mesh, more, lambda: source.pace(piece=5, between=between))


@scenario(client=CLIENTS, origin=ORIGINS, needs_relay=True, waits=True)
def an_origin_that_answers_late_takes_nothing_away(bed, client, origin):
    """Silence is no answer, though there is a connection."""
    silent(bed, client, origin, lambda source: source.pace(late=SILENCE), lambda source: None)


@scenario(client=CLIENTS, origin=ORIGINS, needs_relay=True, waits=True)
def an_origin_that_says_nothing_takes_nothing_away(bed, client, origin):
    """Until it ends its streams, and answers on the next."""

    def speak(source):
        source.pace()
        source.end_streams()

    silent(bed, client, origin, lambda source: source.pace(silent=True), speak)


def silent(bed, client, origin, before, after):
    """A relay comes back before an origin that is connected and silent for longer than clients wait."""
    setup = serving(bed, client, origin)
    load = bed.load(setup.client, "first", "second")
    before(setup.origin)
    bed.relay.restart()
    throughout("the relay lives", bed.relay.process.alive, SILENCE + 1)
    after(setup.origin)
    setup.move()
    setup.reaches("second", within=RETURN)
    load.none_failed()
    if client in VARIANTS:
        nothing_was_removed(setup.client)


@scenario(client=(DELTA, SOTW), origin=ORIGINS, needs_relay=True, waits=True)
def what_went_while_the_relay_was_away_is_removed(bed, client, origin):
    """Nothing else is: the origin says so of what Envoy said that it holds."""
    mesh, more, source = with_ballast(bed, client, 12)
    envoy = bed.envoy(client, bed.front(source, origin), mesh.port)
    until("Envoy has all clusters", lambda: len(envoy.clusters()) == 12, within=20)
    until("requests reach the backend", lambda: envoy.request() == "first", within=20)
    load = bed.load(envoy, "first")
    bed.relay.kill()
    gone = more.pop(3)
    source.update([*more, *mesh.resources()])
    source.pace(piece=5, between=0.5)
    bed.relay.start()
    until("Envoy has lost it", lambda: gone["name"] not in envoy.clusters(), within=RETURN)
    equal(len(envoy.clusters()), 11, "the clusters that Envoy has")
    nothing_was_removed(envoy, but=1)
    load.none_failed()
