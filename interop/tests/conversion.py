"""Every combination of protocols towards the origin and towards the client, seen by clients of our own."""

from ads.catalogue import pack
from ads.types import CLUSTER, ENDPOINTS, FULL_STATE, LISTENER, LISTENER_COLLECTION
from harness.polling import equal, until
from harness.registry import scenario
from mesh import endpoints, static_cluster, wrapped, xdstp

# An origin that speaks state of the world sends resources bare, or in their wrapper to those who can read it.
UPSTREAM = ("delta", "sotw", "sotw_wrapped")


def client_of(bed, port, downstream):
    """A client that speaks this protocol; one of ours, so nothing is hidden by what a real one tolerates."""
    if downstream == "delta":
        return bed.delta(port)
    return bed.sotw(port, full_state=FULL_STATE, wrapped=downstream == "sotw_wrapped")


@scenario(
    interest=("wildcard", "names", "glob"),
    client=("delta", "sotw", "sotw_wrapped"),
    origin=UPSTREAM,
)
def clusters_come_change_and_go(bed, interest, client, origin):
    """A type of which a state-of-the-world response is the whole state: what it lacks is gone."""
    name = (lambda name: xdstp(CLUSTER, name)) if interest == "glob" else (lambda name: name)
    one, two = name("one"), name("two")
    source = bed.origin([static_cluster(one)], options=["--wrap"] if origin == "sotw_wrapped" else [])
    stream = client_of(bed, bed.front(source, origin), client)
    stream.subscribe(CLUSTER, *{"wildcard": [], "names": [one, two], "glob": [name("*")]}[interest])
    until("the first is there", lambda: stream.names(CLUSTER) == {one})
    before = stream.versions(CLUSTER)

    source.update([static_cluster(one), static_cluster(two)])
    until("the second has come", lambda: stream.names(CLUSTER) == {one, two})
    changed = static_cluster(one, connect_timeout="2s")
    source.update([changed, static_cluster(two)])
    until("the first has changed", lambda: stream.body(CLUSTER, one) == pack(changed).value)
    until("and has another version", lambda: stream.versions(CLUSTER)[one] != before[one])
    source.update([changed])
    until("the second has gone", lambda: stream.names(CLUSTER) == {one})
    equal(stream.body(CLUSTER, one), pack(changed).value, "the first")


@scenario(client=("delta", "sotw", "sotw_wrapped"), origin=UPSTREAM)
def endpoints_come_and_change(bed, client, origin):
    """A type of which a response holds only what is new: what it lacks has not changed, and is not sent again."""
    one, two = xdstp(ENDPOINTS, "one"), xdstp(ENDPOINTS, "two")
    source = bed.origin([endpoints(one, 1)], options=["--wrap"] if origin == "sotw_wrapped" else [])
    stream = client_of(bed, bed.front(source, origin), client)
    stream.subscribe(ENDPOINTS, one, two)
    until("the first is there", lambda: stream.names(ENDPOINTS) == {one})
    source.update([endpoints(one, 1), endpoints(two, 1)])
    until("the second has come", lambda: stream.names(ENDPOINTS) == {one, two})
    source.update([endpoints(one, 2), endpoints(two, 1)])
    until("the first has changed", lambda: stream.body(ENDPOINTS, one) == pack(endpoints(one, 2)).value)
    equal(stream.arrivals, {one: 2, two: 1}, "how often each came")


@scenario()
def endpoints_that_go_are_told_of_where_that_can_be_said(bed):
    """Only the incremental protocol has words for it: from the origin to the client, once."""
    name = xdstp(ENDPOINTS, "one")
    source = bed.origin([endpoints(name, 1)])
    stream = bed.delta(bed.front(source))
    stream.subscribe(ENDPOINTS, name)
    until("it is there", lambda: stream.names(ENDPOINTS) == {name})
    source.update([])
    until("it has gone", lambda: stream.removals == {name: 1})
    source.update([endpoints(name, 1)])
    until("it is back", lambda: stream.names(ENDPOINTS) == {name})
    equal(stream.arrivals, {name: 2}, "how often it came")
    equal(stream.removals, {name: 1}, "how often it was said to be gone")


@scenario(client=("delta", "sotw_wrapped"), origin=("delta", "sotw_wrapped"))
def a_list_collection_is_a_resource_like_any_other(bed, client, origin):
    """It has no name inside, so only the wrapper can carry it over state of the world; its bytes are left alone."""
    name = xdstp(LISTENER_COLLECTION, "list")
    entry = {"name": "inside", "version": "3", "resource": {"@type": LISTENER, "name": "inside"}}
    body = {"@type": LISTENER_COLLECTION, "entries": [{"inline_entry": entry}]}
    source = bed.origin([wrapped(name, "7", body)], options=["--wrap"])
    stream = client_of(bed, bed.front(source, origin), client)
    stream.subscribe(LISTENER_COLLECTION, name)
    until("the collection is there", lambda: stream.names(LISTENER_COLLECTION) == {name})
    equal(stream.body(LISTENER_COLLECTION, name), pack(body).value, "the collection")
