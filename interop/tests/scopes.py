"""Where more than one thing covers a name, and where much changes at once."""

from ads.catalogue import pack
from ads.types import CLUSTER, FULL_STATE
from harness.polling import check, equal, throughout, until
from harness.registry import scenario
from mesh import static_cluster, xdstp

# More than a type keeps tombstones of.
MANY = 2500


@scenario(interest=("wildcard", "glob", "both"), needs_relay=True, waits=True)
def many_removals_at_once_end_no_stream(bed, interest):
    """Who was up to date before a change is told all of it, however large it is."""
    name = (lambda name: name) if interest == "wildcard" else (lambda name: xdstp(CLUSTER, name))
    stays = static_cluster(name("stays"))
    gone = [static_cluster(name(f"gone-{number}")) for number in range(MANY)]
    source = bed.origin([stays, *gone], options=["--wildcard-covers-all"])
    port = bed.front(source)
    wanted = {"wildcard": ["*"], "glob": [name("*")], "both": ["*", name("*")]}[interest]
    clients = [bed.delta(port, node=f"raw-{number}") for number in range(3)]
    for client in clients:
        client.subscribe(CLUSTER, *wanted)
    for client in clients:
        until("it has all", lambda client=client: len(client.names(CLUSTER)) == MANY + 1, within=20)
    source.update([stays])
    for client in clients:
        until("it has what stays", lambda client=client: client.names(CLUSTER) == {stays["name"]}, within=20)
        equal(client.error, None, "the end of its stream")
        equal(len(client.removals), MANY, "how many were said to be gone")
        equal(set(client.removals.values()), {1}, "how often each")


# The node that the relay is for `xdstp:` names, and the client's: the origin has something else for each.
RELAY = "the-relay"


@scenario(client=("delta", "sotw", "sotw_wrapped"), needs_relay=True)
def a_name_beside_a_wildcard_that_covers_it_is_told_once(bed, client):
    """From the more specific of the two; when that one drops it, and the wildcard still has it, from the wildcard."""
    name = xdstp(CLUSTER, "name")
    by_name, by_wildcard = (static_cluster(name, connect_timeout=f"{seconds}s") for seconds in (1, 2))
    other = static_cluster("other")
    source = bed.origin([other, by_wildcard], views={RELAY: [by_name]}, options=["--wildcard-covers-all"])
    port = bed.front(source, node={"id": RELAY})
    stream = (
        bed.delta(port)
        if client == "delta"
        else bed.sotw(port, full_state=FULL_STATE, wrapped=client == "sotw_wrapped")
    )
    stream.subscribe(CLUSTER, "*", name)
    holds(stream, {"other": other, name: by_name})
    source.update([by_name], node=RELAY)  # nothing changes
    source.update([static_cluster("other", connect_timeout="9s"), by_wildcard])
    other = static_cluster("other", connect_timeout="9s")
    holds(stream, {"other": other, name: by_name})

    source.update([], node=RELAY)
    holds(stream, {"other": other, name: by_wildcard})
    source.update([by_name], node=RELAY)
    holds(stream, {"other": other, name: by_name})
    source.update([other])
    holds(stream, {"other": other, name: by_name})
    source.update([], node=RELAY)
    holds(stream, {"other": other})
    for response in stream.responses:
        told = names_of(response)
        equal(len(told), len(set(told)), "the names in a response")
    check(stream.error is None, f"the stream has ended: {stream.error}")


def holds(stream, expected):
    """Waits until it has exactly this, and it stays so."""
    bodies = {name: pack(body).value for name, body in expected.items()}
    has = lambda: {name: stream.body(CLUSTER, name) for name in stream.names(CLUSTER)}  # noqa: E731
    until(f"it has {expected}", lambda: has() == bodies)
    throughout("it stays so", lambda: has() == bodies, 0.5)


def names_of(response):
    """All names that a response tells something of; a bare one has its name inside."""
    if hasattr(response, "removed_resources"):
        return [item.name for item in response.resources] + list(response.removed_resources)
    return [bytes(entry.value) for entry in response.resources]
