"""The example of a relay in the proposal for structured resource names (TP1), with its names and versions."""

import base64

from envoy.config.listener.v3 import listener_pb2

from harness.bed import upstream
from harness.polling import equal, until
from harness.registry import scenario
from mesh import wrapped

# The proposal's own spelling, which is no type of Envoy's: a relay has to pass on what it has never heard of.
TYPE = "type.googleapis.com/envoy.config.listeners.v3.Listener"
COLLECTION = "xdstp://some-authority/envoy.config.listeners.v3.Listener/"
FOO, BAR, BAZ = COLLECTION + "a-listeners/foo", COLLECTION + "a-listeners/bar", COLLECTION + "b-listeners/baz"
A_LISTENERS, B_LISTENERS = COLLECTION + "a-listeners/*", COLLECTION + "b-listeners/*"


def resource(name, version, stat_prefix=""):
    """One of the example's listeners."""
    payload = listener_pb2.Listener(name=name, stat_prefix=stat_prefix).SerializeToString()
    return wrapped(name, version, {"@type": TYPE, "value": base64.b64encode(payload).decode()})


@scenario(client_b=("delta", "sotw"), needs_relay=True)
def the_relay_example_of_tp1(bed, client_b):
    """A wants one collection over delta and B the other one: one upstream stream has both, each client has its own."""
    origin = bed.origin([resource(FOO, "1"), resource(BAR, "42"), resource(BAZ, "13")])
    relay = bed.start_relay([upstream(origin, authorities=["some-authority"])])
    a = bed.delta(relay.port, node="a")
    b = bed.delta(relay.port, node="b") if client_b == "delta" else bed.sotw(relay.port, node="b", wrapped=True)
    a.subscribe(TYPE, A_LISTENERS)
    b.subscribe(TYPE, B_LISTENERS)
    until("A has foo and bar", lambda: a.versions(TYPE) == {FOO: "1", BAR: "42"})
    until("B has baz", lambda: b.versions(TYPE) == {BAZ: "13"})
    streams = origin.streams()
    equal([stream["method"] for stream in streams], ["delta"], "the streams that the origin sees")
    equal(streams[0]["types"], {"Listener": [A_LISTENERS, B_LISTENERS]}, "what they are subscribed to")

    changed = resource(BAZ, "14", stat_prefix="changed")
    origin.update([resource(FOO, "1"), resource(BAR, "42"), changed])
    until("B has the changed baz", lambda: b.versions(TYPE) == {BAZ: "14"})
    origin.update([resource(FOO, "2", stat_prefix="changed"), resource(BAR, "42"), changed])
    until("A has the changed foo", lambda: a.versions(TYPE) == {FOO: "2", BAR: "42"})
    equal(a.arrivals, {FOO: 2, BAR: 1}, "what A was ever sent, and how often")
    equal(b.arrivals, {BAZ: 2}, "what B was ever sent, and how often")
