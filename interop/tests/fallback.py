"""A relay that knows nothing stands in nobody's way: whoever has another server goes there."""

from ads.types import CLUSTER, ENDPOINTS
from harness.bed import AUTHORITY
from harness.polling import check, equal, throughout, until
from harness.registry import scenario
from mesh import endpoints, grpc_mesh, plain, static_cluster, xdstp

NAMING = {"plain": plain, "xdstp": xdstp}

# Until a client takes silence for an answer; falling back takes far less.
PROMPTLY = 8.0


def cold(bed, **relay):
    """A relay that knows nothing, and its origin, which is dead."""
    source = bed.origin(grpc_mesh(bed.grpc_backend("first"), relay.pop("naming", plain)))
    source.kill()
    return source, bed.front(source, **relay)


@scenario(names=("plain", "xdstp"), needs_relay=True, waits=True)
def grpc_falls_back_past_a_relay_that_knows_nothing(bed, names):
    """It goes to its second server, and comes back when the relay has something to say."""
    naming = NAMING[names]
    source, port = cold(bed, naming=naming)
    second = bed.origin(grpc_mesh(bed.grpc_backend("second"), naming), name="second")
    client = bed.grpc_client(port, authority=AUTHORITY if names == "xdstp" else None, fallback=second.port)
    until("requests reach what the second server says", lambda: client.request() == "second", within=PROMPTLY)
    source.start()
    until("requests reach what the relay says", lambda: client.request() == "first", within=60)


@scenario(protocol=("delta", "sotw"), names=("plain", "xdstp", "wildcard"), needs_relay=True, waits=True)
def a_stream_of_which_nothing_is_known_ends_before_any_response(bed, protocol, names):
    """UNAVAILABLE, with words, while the origin cannot be reached."""
    _, port = cold(bed)
    stream = bed.delta(port) if protocol == "delta" else bed.sotw(port)
    if names == "wildcard":
        stream.subscribe(CLUSTER)
    else:
        stream.subscribe(ENDPOINTS, NAMING[names](ENDPOINTS, "unknown"))
    until("the stream has ended", lambda: stream.error, within=PROMPTLY)
    equal(stream.error.code().name, "UNAVAILABLE", "its status")
    check("origin" in stream.error.details(), f"its words: {stream.error.details()}")
    equal(stream.responses, [], "the responses before its end")


@scenario(needs_relay=True, waits=True)
def a_stream_waits_for_the_origin_if_configured(bed):
    """With `unknown: wait` it is kept, and served when the origin is there."""
    source, port = cold(bed, unknown="wait")
    stream = bed.delta(port)
    stream.subscribe(CLUSTER, "backend")
    throughout("the stream is kept", lambda: stream.error is None, PROMPTLY)
    source.start()
    until("it is served", lambda: stream.names(CLUSTER) == {"backend"}, within=40)
    equal(stream.removals, {}, "what the client was told is gone")


@scenario(needs_relay=True, waits=True)
def a_stream_of_which_something_is_known_is_kept(bed):
    """What the relay holds is served, and the rest of what the client asks for may yet come."""
    source = bed.origin([static_cluster("known"), endpoints("later", 1)])
    port = bed.front(source)
    first = bed.delta(port)
    first.subscribe(CLUSTER, "known")
    until("the relay knows it", lambda: first.names(CLUSTER) == {"known"})
    source.kill()
    second = bed.delta(port)
    second.subscribe(CLUSTER, "known")
    second.subscribe(ENDPOINTS, "later")
    until("the second has it too", lambda: second.names(CLUSTER) == {"known"})
    throughout("both streams are kept", lambda: first.error is None and second.error is None, PROMPTLY)
    source.start()
    until("the rest has come", lambda: second.names(ENDPOINTS) == {"later"}, within=40)
