"""A balancer before the origin: it takes every connection, and with nobody behind it ends every stream."""

from ads.types import CLUSTER
from harness.polling import equal, throughout, until
from harness.registry import ORIGINS, scenario
from mesh import static_cluster, xdstp
from setups import CLIENTS, serving

RETURN = 40.0


@scenario(client=CLIENTS, origin=ORIGINS, needs_relay=True, waits=True)
def what_nobody_wants_for_the_moment_is_kept_while_the_balancer_has_no_origin(bed, client, origin):
    """A client that was away for longer than `linger` is served when it comes back: a connection is not an answer."""
    setup = serving(bed, client, origin, linger="500ms")
    setup.origin.pace(refuse=True)
    setup.origin.end_streams()
    setup.client.kill()
    until("the relay has been refused", lambda: refused(setup.origin) >= 2, within=RETURN)
    throughout("the relay lives", bed.relay.process.alive, 2)
    setup.client.start()
    setup.reaches("first", within=20)
    setup.prepare_move()
    setup.origin.pace()
    setup.move()
    setup.reaches("second", within=RETURN)


def refused(origin):
    """How many streams it ended at once."""
    return len(origin.events("close")) - 1


@scenario(origin=ORIGINS, needs_relay=True, waits=True)
def what_nobody_wants_is_given_up_when_there_is_an_origin(bed, origin):
    """It lingers, and no longer: what the relay kept, it drops once the origin answers again."""
    name, stays = xdstp(CLUSTER, "name"), xdstp(CLUSTER, "stays")
    source = bed.origin([static_cluster(name), static_cluster(stays)])
    port = bed.front(source, origin, linger="500ms")
    client, other = bed.delta(port), bed.delta(port, node="other")
    client.subscribe(CLUSTER, name)
    other.subscribe(CLUSTER, stays)
    until("they have theirs", lambda: client.names(CLUSTER) == {name} and other.names(CLUSTER) == {stays})
    source.pace(refuse=True)
    source.end_streams()
    until("the relay has been refused", lambda: refused(source) >= 1, within=RETURN)
    client.stop()
    throughout("the relay lives", bed.relay.process.alive, 2)
    back = bed.delta(port)
    back.subscribe(CLUSTER, name)
    until("who comes back has it", lambda: back.names(CLUSTER) == {name})
    back.stop()
    source.pace()
    until("the name is unsubscribed", lambda: source.subscriptions("Cluster") == [stays], within=RETURN)
    equal(other.removals, {}, "what was said to be gone")
    equal(other.error, None, "the end of the other's stream")
