"""Programs that watch, by the client library, whoever serves them: the tool `xds`, and the example of the library."""

import time

from ads.types import CLUSTER
from harness.bed import AUTHORITY
from harness.polling import check, equal, throughout, until
from harness.program import write
from harness.registry import scenario
from harness.relay import run_once
from mesh import static_cluster, xdstp

PROGRAMS = ("tool", "example")
PROTOCOLS = ("delta", "sotw")
# Some time in which nothing happens.
QUIET = 1.0


def versions_sent(origin):
    """What an origin has said over delta, name to newest version."""
    return {name: version for said in origin.events("response") for name, version in said.get("resources", {}).items()}


@scenario(program=PROGRAMS, needs_programs=True)
def a_program_falls_back_to_its_second_server_and_comes_back(bed, program):
    """What the first says counts from when it says it. While it is away again nothing is taken away, and nobody else asked."""
    first = bed.origin([static_cluster("web", alt_stat_name="first")], name="first")
    second = bed.origin([static_cluster("web", alt_stat_name="second")], name="second")
    first.kill()
    watch = bed.watching(program, {"": [first.port, second.port]}, CLUSTER, "web")
    until("it has what the second server says", lambda: watch.versions() == versions_sent(second) != {})
    first.start()
    until("it has what the first server says", lambda: watch.versions() == versions_sent(first) != {}, within=60)
    until("the second is left", lambda: not second.streams())
    first.kill()
    throughout("nobody else is asked for what is there", lambda: not second.streams(), QUIET)
    equal(watch.versions(), versions_sent(first), "what it has")
    first.write([static_cluster("web", alt_stat_name="first again")])
    first.start()
    until("it has what changed", lambda: len(watch.events("put")) == 3, within=60)
    equal(watch.versions(), versions_sent(first), "what it has in the end")
    equal(watch.events("removed"), [], "what was taken away")


@scenario(program=PROGRAMS, needs_programs=True)
def an_authority_is_asked_of_its_own_server(bed, program):
    """A name, an old-style one and a glob, whose member comes and goes; and an authority that the bootstrap has not."""
    name, member = xdstp(CLUSTER, "web"), xdstp(CLUSTER, "a", directory="shop")
    later, glob = xdstp(CLUSTER, "b", directory="shop"), xdstp(CLUSTER, "*", directory="shop")
    top = bed.origin([static_cluster("web"), static_cluster(name, alt_stat_name="not its own")], name="top")
    not_asked_for = static_cluster("web", alt_stat_name="not its own")
    own = bed.origin([static_cluster(name), static_cluster(member), not_asked_for], name="own")
    servers = {"": [top.port], AUTHORITY: [own.port]}
    unknown = xdstp(CLUSTER, "web", authority="unknown")
    watch = bed.watching(program, servers, CLUSTER, "web", name, glob, unknown)
    until("it has all of them", lambda: watch.versions().keys() == {"web", name, member})
    equal(top.subscriptions("Cluster"), ["web"], "what the server of the rest is asked for")
    equal(own.subscriptions("Cluster"), sorted([name, glob]), "what the server of the authority is asked for")
    own.update([static_cluster(name), static_cluster(later)])
    until("one came and one went", lambda: watch.versions().keys() == {"web", name, later})
    # Of what no server is there for nothing is heard but that.
    own.kill()
    top.update([static_cluster("web", alt_stat_name="changed")])
    until("the other goes on", lambda: watch.versions()["web"] == versions_sent(top)["web"])
    equal(watch.versions().keys(), {"web", name, later}, "what it has")


@scenario(protocol=PROTOCOLS, names=("each", "wildcard"), needs_programs=True)
def what_changed_comes_once_from_a_server_of_snapshots(bed, protocol, names):
    """As go-control-plane has them. Over state of the world a response is sent when the version is another, and has all that
    is asked for; over delta what was sent is known by its digest."""
    clusters = {name: static_cluster(name) for name in ("a", "b")}
    origin = bed.origin(list(clusters.values()), options=["--snapshots"])
    asked = ["*"] if names == "wildcard" else list(clusters)
    watch = bed.watching("tool", {"": [origin.port]}, CLUSTER, *asked, protocol=protocol)
    until("it has both", lambda: watch.versions().keys() == {"a", "b"})
    until("all is acknowledged", origin.is_answered)
    clusters["b"] = static_cluster("b", alt_stat_name="changed")
    origin.update(list(clusters.values()))
    until("the changed one comes", lambda: [put["name"] for put in watch.events("put")][2:] == ["b"])
    until("all is acknowledged", origin.is_answered)
    # Its restart says nothing new, though over state of the world it sends what this stream was not sent yet.
    responses = len(origin.events("response"))
    origin.kill()
    origin.start()
    wanted = {"Cluster": sorted(asked)}
    until("it is back", lambda: [stream["types"] for stream in origin.streams()] == [wanted], within=40)
    throughout("nothing is news", lambda: len(watch.events("put")) == 3, QUIET)
    equal(len(origin.events("response")) - responses, 0 if (protocol, names) == ("delta", "each") else 1, "responses")
    clusters["a"] = static_cluster("a", alt_stat_name="changed")
    origin.update(list(clusters.values()))
    until("the other one comes", lambda: [put["name"] for put in watch.events("put")][3:] == ["a"])
    until("all is acknowledged", origin.is_answered)
    equal([request for request in origin.events("request") if "error" in request], [], "what was refused")


@scenario(protocol=PROTOCOLS, needs_programs=True, waits=True)
def a_server_of_snapshots_that_says_nothing_of_a_name_is_told_apart_from_one_that_is_away(bed, protocol):
    """It never speaks of what it does not have: after 15 s that is said, and what comes later counts."""
    origin = bed.origin([static_cluster("there")], options=["--snapshots"])
    watch = bed.watching("tool", {"": [origin.port]}, CLUSTER, "there", "not there", protocol=protocol)
    until("it has the one", lambda: watch.versions().keys() == {"there"})
    started = time.monotonic()
    error = until("it is said of the other", lambda: watch.events("error"), within=25)[0]
    equal(error["name"], "not there", "of which")
    check(error["kind"] in ("timeout", "absent"), f"what is said: {error}")
    check(time.monotonic() - started > 10, "it was not waited for")
    origin.update([static_cluster("there"), static_cluster("not there")])
    until("it comes", lambda: watch.versions().keys() == {"there", "not there"})


@scenario(protocol=PROTOCOLS, needs_programs=True, waits=True)
def what_there_is_is_had_once_from_who_is_there(bed, protocol):
    """`xds get` by a bootstrap: it ends with 0, with 1 if a name is not there, with 3 if nobody is."""
    name, glob = xdstp(CLUSTER, "web"), xdstp(CLUSTER, "*")
    first, second = (bed.origin([static_cluster("web")], name=name) for name in ("first", "second"))
    own = bed.origin([static_cluster(name)], name="own")
    file = write({"": [first.port, second.port], AUTHORITY: [own.port]}, bed.folder, "get")
    first.kill()

    def get(*names):
        return run_once(bed.tool_binary, "get", "--bootstrap", file, "--protocol", protocol, CLUSTER, *names)

    status, said = get("web", name, *([glob] if protocol == "delta" else []))
    equal(status, 0, f"the status, and what was said: {said}")
    check(all(line in said for line in ("web", name)), f"what was said: {said}")
    own.update([])
    equal(get("web", name)[0], 1, "the status where a name is not there")
    own.kill()
    equal(get("web", "--timeout", "3", name)[0], 3, "the status where a server is away")
