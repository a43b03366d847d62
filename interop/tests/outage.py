"""The origin dies, and comes back with other things than it had."""

from ads.types import CLUSTER
from harness.envoy import DELTA, GLOBS, VARIANTS
from harness.polling import equal, throughout, until
from harness.registry import ORIGINS, scenario
from mesh import static_cluster, xdstp
from setups import CLIENTS, GRPC, WITH_NODE, another, envoy_serving, serving

# How long a client, and the relay, may take to find out that the origin is there again: they back off.
RETURN = 40.0


@scenario(client=CLIENTS, origin=ORIGINS, waits=True)
def traffic_survives_the_origins_death(bed, client, origin):
    """Nothing is lost while it is dead; what it has after its return is used."""
    setup = serving(bed, client, origin)
    setup.origin.kill()
    throughout("requests reach the first backend", lambda: setup.client.request() == "first", 2.0)
    setup.prepare_move()
    setup.origin.start()
    setup.reaches("second", within=RETURN)


@scenario(client=WITH_NODE, origin=ORIGINS, needs_relay=True)
def a_client_started_while_the_origin_is_dead_serves(bed, client, origin):
    """The same node as a client before it gets what that one had."""
    setup = serving(bed, client, origin)
    setup.client.kill()
    setup.origin.kill()
    setup.client.start()
    setup.reaches("first", within=20)


@scenario(client=(*VARIANTS, GRPC), needs_relay=True)
def a_node_of_the_same_group_started_while_the_origin_is_dead_serves(bed, client):
    """With `share_by: [cluster]`, a node that was never seen gets what its cluster has."""
    setup = serving(bed, client, "delta", share_by=["cluster"])
    setup.client.kill()
    setup.origin.kill()
    other = another(bed, client, setup.xds_port, setup.mesh and setup.mesh.port)
    until("requests of the other node reach the first backend", lambda: other.request() == "first", within=20)


@scenario(interest=("wildcard", "glob", "names"), origin=ORIGINS, needs_relay=True, waits=True)
def changes_made_while_the_origin_was_dead_arrive_exactly_once(bed, interest, origin):
    """One resource changes, one goes, one is new and one stays: each is told once, what stays is not told again."""
    name = (lambda name: name) if interest != "glob" else (lambda name: xdstp(CLUSTER, name))
    changed, removed, stays, added, last = map(name, ("changed", "removed", "stays", "added", "last"))
    source = bed.origin([static_cluster(changed), static_cluster(removed), static_cluster(stays)])
    client = bed.delta(bed.front(source, origin))
    wanted = {"wildcard": ["*"], "glob": [name("*")], "names": [changed, removed, stays, added, last]}
    client.subscribe(CLUSTER, *wanted[interest])
    until("the client has all", lambda: client.names(CLUSTER) == {changed, removed, stays})

    source.kill()
    after = [static_cluster(changed, connect_timeout="2s"), static_cluster(stays), static_cluster(added)]
    source.write(after)
    source.start()
    until("the client has what came", lambda: client.names(CLUSTER) == {changed, stays, added}, within=RETURN)
    # What was sent too often would be there before what is sent now.
    source.update([*after, static_cluster(last)])
    until("the client has the last one", lambda: last in client.names(CLUSTER))
    equal(client.arrivals, {changed: 2, removed: 1, stays: 1, added: 1, last: 1}, "how often each resource came")
    told = {name: client.removals.get(name, 0) for name in (changed, removed, stays)}
    equal(told, {changed: 0, removed: 1, stays: 0}, "how often each was said to be gone")


@scenario(needs_relay=True)
def a_resumed_upstream_stream_resends_nothing(bed):
    """The relay tells the origin all that it has, members of globs included, so that nothing has to come again."""
    names = [xdstp(CLUSTER, "one"), xdstp(CLUSTER, "two")]
    source = bed.origin([static_cluster(name) for name in names])
    client = bed.delta(bed.front(source))
    client.subscribe(CLUSTER, xdstp(CLUSTER, "*"))
    until("the client has all", lambda: client.names(CLUSTER) == set(names))
    source.end_streams()
    until("the relay is back", lambda: len(source.events("response")) > 1, within=RETURN)
    first, *resumed = source.events("response")
    equal([response.get("resources") for response in resumed], [None] * len(resumed), "what the origin sent again")
    source.update([static_cluster(name) for name in [*names, xdstp(CLUSTER, "three")]])
    until("the client has the new one", lambda: len(client.names(CLUSTER)) == 3)
    equal(set(client.arrivals.values()), {1}, "how often each resource came")
    equal(sorted(first["resources"]), names, "what the origin sent at first")


@scenario(client=WITH_NODE)
def a_client_that_was_cut_off_catches_up(bed, client):
    """What changed while the client could not hear of it reaches traffic when it is back."""
    setup = serving(bed, client, "delta")
    setup.cable.cut()
    setup.move()
    throughout("requests reach the first backend", lambda: setup.client.request() == "first", 1.0)
    setup.cable.mend()
    setup.reaches("second", within=RETURN)


@scenario(client=(DELTA, GLOBS), waits=True)
def envoy_forgets_a_cluster_that_went_while_it_was_cut_off(bed, client):
    """Envoy says which old-style resources it has, but not which members of a glob: those that have gone lately are
    named to everyone who subscribes to it on a new stream."""
    setup = envoy_serving(bed, client, "delta")
    gone = setup.mesh.naming(CLUSTER, "gone")
    setup.origin.update([*setup.mesh.resources(), static_cluster(gone)])
    until("Envoy has the cluster", lambda: gone in setup.client.clusters())
    # Another client keeps the relay interested, and shows when it knows.
    watcher = bed.delta(setup.xds_port, node="envoy")
    watcher.subscribe(CLUSTER, "*" if client == DELTA else xdstp(CLUSTER, "*"))
    until("the watcher has the cluster", lambda: gone in watcher.names(CLUSTER))
    setup.cable.cut()
    setup.origin.update(setup.mesh.resources(), tombstones=[gone] if client == GLOBS else [])
    until("the watcher has lost the cluster", lambda: gone not in watcher.names(CLUSTER))
    setup.cable.mend()
    until("Envoy has lost the cluster", lambda: gone not in setup.client.clusters(), within=RETURN)
    equal(setup.client.request(), "first", "the backend that serves")
