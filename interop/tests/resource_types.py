"""Every resource type over both variants of the protocol: what Envoy holds when one is added, changed and removed."""

import kinds
from ads.types import CLUSTER, FULL_STATE
from harness.envoy import DELTA, SOTW
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import ORIGINS, scenario
from kinds import ONE, TWO
from mesh import static_cluster

# What a removal does to Envoy 1.40. Over delta it has no ears for some; over state of the world a response of some is
# all there is, so that absence is removal, and of the others none can be said.
REMOVED_OVER = {
    "lds": (kinds.Listeners, {"delta", "sotw"}),
    "cds": (kinds.Clusters, {"delta", "sotw"}),
    "srds": (kinds.ScopedRoutes, {"delta", "sotw"}),
    "rds": (kinds.Routes, set()),
    "eds": (kinds.Endpoints, set()),
    "sds": (kinds.Secrets, set()),
    "rtds": (kinds.Runtime, {"delta"}),
    "ecds": (kinds.Extensions, {"delta"}),
}
DELTA_ONLY = {"vhds": kinds.VirtualHosts, "leds": kinds.LocalityEndpoints}
VARIANT = {DELTA: "delta", SOTW: "sotw"}

# How long a client, and the relay, may take to find out that the other is there again: they back off.
RETURN = 40.0

REFUSAL = "no state of the world of {}: it comes over delta only"


@scenario(type=tuple(REMOVED_OVER), client=(DELTA, SOTW), origin=ORIGINS)
def a_resource_is_added_changed_and_removed(bed, type, client, origin):
    """Whatever happens to one, the other stays as it is."""
    kind, over = REMOVED_OVER[type]
    hops = {VARIANT[client], VARIANT[client] if origin == "direct" else origin}
    add_change_remove(bed, kind(), client, origin, removed=hops <= over)


@scenario(type=tuple(DELTA_ONLY), client=(DELTA,))
def a_resource_of_a_delta_only_type_is_added_changed_and_removed(bed, type, client):
    """These have no state of the world."""
    add_change_remove(bed, of_delta_only(type), client, "delta", removed=True)


def add_change_remove(bed, kind, client, origin, removed):
    """`removed` is whether the removal gets through: else Envoy goes on using what it has."""
    one, two, changed = kind.resource(ONE, "1"), kind.resource(TWO, "1"), kind.resource(ONE, "2")
    around = kind.around()
    source = bed.origin([*around, one])
    envoy = bed.envoy(client, bed.front(source, origin), more=kind.bootstrap)
    holds(kind, envoy, "the first has come", {ONE: "1"}, within=20)
    source.update([*around, one, two])
    holds(kind, envoy, "the second has come, and the first is there", {ONE: "1", TWO: "1"})
    source.update([*around, changed, two])
    holds(kind, envoy, "the first has changed", {ONE: "2", TWO: "1"})
    source.update([*around, two, static_cluster("later")])
    until("what came after the removal is there", lambda: "later" in envoy.clusters())
    left = {TWO: "1"} if removed else {ONE: "2", TWO: "1"}
    holds(kind, envoy, "the first is gone" if removed else "the first is kept", left)
    throughout("that is how it stays", lambda: kind.held(envoy) == left, 0.3)


@scenario(type=tuple(REMOVED_OVER), client=(DELTA, SOTW), origin=ORIGINS, needs_relay=True, waits=True)
def a_cold_relay_takes_no_type_away(bed, type, client, origin):
    """One that comes back knowing nothing, before an origin that sends one after the other."""
    check_cold_relay(bed, REMOVED_OVER[type][0](), client, origin)


@scenario(type=tuple(DELTA_ONLY), client=(DELTA,), needs_relay=True, waits=True)
def a_cold_relay_takes_no_delta_only_type_away(bed, type, client):
    """Nor these."""
    check_cold_relay(bed, of_delta_only(type), client, "delta")


def check_cold_relay(bed, kind, client, origin):
    """Envoy holds both all the time, and then takes a change."""
    one, two, changed = kind.resource(ONE, "1"), kind.resource(TWO, "1"), kind.resource(ONE, "2")
    around = kind.around()
    source = bed.origin([*around, one, two])
    envoy = bed.envoy(client, bed.front(source, origin), more=kind.bootstrap)
    before = {ONE: "1", TWO: "1"}
    holds(kind, envoy, "both have come", before, within=20)
    source.pace(piece=1, between=0.4)
    bed.relay.restart()
    seen = []

    def look():
        held = kind.held(envoy)
        if held not in seen:
            seen.append(held)
        return held

    throughout("Envoy has both", lambda: look() == before, 2)
    until("Envoy is connected", lambda: look() and envoy.stat("control_plane.connected_state") == 1, within=RETURN)
    source.update([*around, changed, two])
    after = {ONE: "2", TWO: "1"}
    until("the first has changed", lambda: look() == after, within=RETURN)
    throughout("that is how it stays", lambda: look() == after, 1)
    equal(seen, [before, after], "what Envoy held, one after the other")


def holds(kind, envoy, what, expected, within=10):
    """Waits until Envoy says that it holds this."""
    until(f"{what}: {expected}", lambda: kind.held(envoy) == expected or Differs(kind.held(envoy)), within)


class Differs(dict):
    """What is held instead: not true, but shown."""

    def __bool__(self):
        return False


def of_delta_only(type):
    """The kind: one of them is seen by requests."""
    return kinds.VirtualHosts(free_port()) if type == "vhds" else DELTA_ONLY[type]()


@scenario(type=tuple(DELTA_ONLY), client=("delta", "sotw"), needs_relay=True)
def a_delta_only_type_is_refused_where_there_is_only_state_of_the_world(bed, type, client):
    """By the relay, in words, whichever of the two hops it is: what is asked for cannot be removed there. Nothing of
    it is asked of the origin, and the other types of the stream are none the worse for it."""
    kind = of_delta_only(type)
    source = bed.origin([kind.resource(ONE, "1"), static_cluster("cluster")], options=["--wrap"])
    origin = "delta" if client == "sotw" else "sotw"
    port = bed.front(source, origin)
    stream = bed.delta(port) if client == "delta" else bed.sotw(port, full_state=FULL_STATE, wrapped=True)
    name = kind.names[ONE]
    stream.subscribe(kind.type_url, name)
    stream.subscribe(CLUSTER)
    until("the clusters are there", lambda: stream.names(CLUSTER) == {"cluster"})
    if (type, client) == ("vhds", "delta"):
        # Told in the words that Envoy has for it: the name stands for nothing (rule 106). The reason is in the log.
        until("it is refused", lambda: stream.body(kind.type_url, name) == b"")
    else:
        words = until("it is refused", lambda: stream.errors.get((kind.type_url, name)))
        check(REFUSAL.format(kind.type_url) in words, f"the words: {words}")
        equal(stream.names(kind.type_url), set(), "what came of it")
    equal(source.subscriptions(kind.type_url.rpartition(".")[2]), [], "what the origin was asked for")
    source.update([static_cluster("cluster"), static_cluster("later")])
    until("the stream goes on", lambda: stream.names(CLUSTER) == {"cluster", "later"})
    if client == "delta":
        check(REFUSAL.format(kind.type_url) in bed.relay.log.read_text(), "the relay's log does not say why")


@scenario(client=(SOTW,), needs_relay=True)
def envoy_lives_on_when_a_delta_only_type_is_refused(bed, client):
    """Asked over state of the world, it has been seen to crash on a response with locality endpoints."""
    kind = kinds.LocalityEndpoints()
    source = bed.origin([*kind.around(), kind.resource(ONE, "1")])
    envoy = bed.envoy(client, bed.front(source))
    until("it has its assignment", lambda: source.subscriptions("ClusterLoadAssignment") == ["backend"], within=20)
    source.update([*kind.around(), static_cluster("later")])
    until("Envoy takes other changes", lambda: "later" in envoy.clusters())
    throughout("Envoy lives", envoy.process.alive, 0.5)
    equal(kind.held(envoy), {}, "the endpoints it has")


@scenario(needs_relay=True)
def a_virtual_host_that_does_not_exist_is_said_so_at_once(bed):
    """Envoy lets the request wait for ever if the name is only said to be removed."""
    kind = kinds.VirtualHosts(free_port())
    source = bed.origin([*kind.around(), kind.resource(ONE, "1")])
    envoy = bed.envoy(DELTA, bed.front(source))
    holds(kind, envoy, "the first host is there", {ONE: "1"}, within=20)
    equal(kind.answers("nobody"), 404, "the status of a request to a host that does not exist")
    equal(kind.answers(ONE), 200, "the status of one to a host that does")
