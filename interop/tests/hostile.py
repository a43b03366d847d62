"""A hostile neighbour: whatever one client does, the others are told of every change and lose nothing."""

import threading

import grpc

from ads.types import CLUSTER
from harness.envoy import DELTA, GLOBS
from harness.polling import check, equal, until
from harness.raw import DeltaClient
from harness.registry import scenario
from harness.unfinished import UnfinishedRequest
from mesh import static_cluster, xdstp
from setups import envoy_serving

GOOD = (DELTA, GLOBS)
BALLAST = 1 << 19


class Good:
    """An Envoy with traffic, and beside it a client that asks for the same clusters and notes what it is told."""

    def __init__(self, bed, client, **limits):
        # Old-style names are one group's: the stranger may say that he is of it.
        self.setup = envoy_serving(bed, client, "delta", share_by=["cluster"], limits=limits)
        self.port, self.relay, self.envoy = self.setup.xds_port, bed.relay, self.setup.client
        self.watcher = bed.delta(self.port, node="watcher", cluster="mesh")
        self.watcher.subscribe(CLUSTER, xdstp(CLUSTER, "*") if client == GLOBS else "*")
        self.name = self.setup.mesh.naming(CLUSTER, "backend")
        until("the watcher has the cluster", lambda: self.watcher.names(CLUSTER) == {self.name}, within=5)
        self.load = bed.load(self.envoy, "first", "second")

    def changes(self, revision, more=()):
        """Both are told of a changed cluster, and of what there is more."""
        before = self.watcher.arrivals[self.name]
        self.setup.mesh.revision = revision
        self.setup.origin.update([*self.setup.mesh.resources(), *more])
        until("the watcher has the change", lambda: self.watcher.arrivals[self.name] > before, within=5)
        until("Envoy has the change", lambda: self.envoy.cluster_revision() == revision, within=5)

    def goes_on(self, more=(), unseen=0):
        """Both are told of what changes, no request fails, and neither loses anything. Of names that nobody has seen not
        more are told as gone than are remembered (rule 100)."""
        self.setup.mesh.backends["backend"] = self.setup.second
        self.changes("last", more)
        self.setup.reaches("second", within=5)
        self.load.none_failed()
        gone = sorted(self.watcher.removals)
        check(all("unknown-" in name for name in gone), f"the watcher was told that these are gone: {gone}")
        check(len(gone) <= unseen, f"the watcher was told of {len(gone)} names that it never had")
        check(self.watcher.error is None, f"the watcher's stream ended: {self.watcher.error}")
        for stat in ("cluster_manager.cluster_removed", "listener_manager.listener_removed"):
            equal(self.envoy.stat(stat), 0, stat)

    def counted(self, limit):
        """How often the relay says that it ended something because of a limit."""
        start = f'xds_relay_downstream_refused_total{{limit="{limit}"}} '
        lines = self.relay.page("/metrics").splitlines()
        return int(next(line.removeprefix(start) for line in lines if line.startswith(start)))

    def refuses(self, stranger, words, limit):
        """The stranger's stream ends, he is told of the limit, and it is counted."""
        until(f"limits.{limit} ends the stream", lambda: stranger.error, within=5)
        told = (stranger.error.code(), stranger.error.details())
        equal(told, (grpc.StatusCode.RESOURCE_EXHAUSTED, f"{words} (limits.{limit} of the relay)"), "what he is told")
        check(self.counted(limit) > 0, f"limits.{limit} is not counted")


@scenario(client=GOOD, needs_relay=True)
def who_names_many_authorities_is_not_noticed(bed, client):
    """As many as one stream may, then one more, then with another stream as many as all may."""
    good = Good(bed, client, authorities_per_stream=100, authorities=150)

    def stranger(numbers):
        stranger = bed.delta(good.port, node="hostile", cluster="hostile")
        stranger.subscribe(CLUSTER, *(xdstp(CLUSTER, "x", authority=f"hostile-{number}") for number in numbers))
        return stranger

    greedy = stranger(range(100))
    until("he is told of all", lambda: len(greedy.removals) == 100)
    greedy.subscribe(CLUSTER, xdstp(CLUSTER, "x", authority="hostile-100"))
    good.refuses(greedy, "more than 100 authorities on one stream", "authorities_per_stream")
    good.refuses(stranger(range(100, 200)), "more than 150 authorities", "authorities")
    good.goes_on()


@scenario(client=GOOD, needs_relay=True)
def who_says_that_he_is_many_groups_is_not_noticed(bed, client):
    """Each is a stream to the origin."""
    good = Good(bed, client, groups=20)
    strangers = [bed.delta(good.port, node="hostile", cluster=f"hostile-{number}") for number in range(25)]
    for stranger in strangers:
        stranger.subscribe(CLUSTER, "x")
    groups = 20 - (client == DELTA)
    ended = until("some are ended", lambda: enough([of for of in strangers if of.error], len(strangers) - groups))
    for stranger in ended:
        good.refuses(stranger, "more than 20 node groups", "groups")
    equal(good.counted("groups"), len(ended), "the groups that are refused")
    good.goes_on()


@scenario(client=GOOD, needs_relay=True)
def who_asks_for_what_there_is_not_is_not_noticed(bed, client):
    """Names that the good clients' glob or wildcard covers: they are gone for him, and few of them for whom may hold them."""
    good = Good(bed, client, names_per_stream=2500)
    naming = good.setup.mesh.naming
    stranger = bed.delta(good.port, node="hostile", cluster="mesh")
    stranger.subscribe(CLUSTER, *(naming(CLUSTER, f"unknown-{number}") for number in range(2000)))
    until("he is told of all", lambda: len(stranger.removals) == 2000)
    good.changes("while they are wanted")
    stranger.subscribe(CLUSTER, *(naming(CLUSTER, f"unknown-{number}") for number in range(2000, 3000)))
    good.refuses(stranger, "more than 2500 names on one stream", "names_per_stream")
    good.goes_on(unseen=1000)


@scenario(client=GOOD, needs_relay=True)
def who_does_not_end_his_requests_is_not_noticed(bed, client):
    """Of all that is unfinished so much is kept; the largest goes first. What he is told the relay's own tests read."""
    good = Good(bed, client, unfinished_request_bytes="64 KiB")
    for _ in range(2):
        bed.stopped(UnfinishedRequest(good.port, 20_000))
    large = bed.stopped(UnfinishedRequest(good.port, 50_000))
    large.wait_for_end()
    equal(good.counted("unfinished_request_bytes"), 1, "the requests that are refused")
    good.goes_on()
    equal(good.counted("unfinished_request_bytes"), 1, "the requests that are refused in the end")


@scenario(client=GOOD, needs_relay=True)
def who_never_reads_is_not_noticed(bed, client):
    """No limit ends it: nothing is queued for him."""
    good = Good(bed, client)
    strangers = [bed.delta(good.port, node=f"hostile-{number}", cluster="mesh", reads=False) for number in range(5)]
    for stranger in strangers:
        stranger.subscribe(CLUSTER, xdstp(CLUSTER, "*") if client == GLOBS else "*")
    name = good.setup.mesh.naming(CLUSTER, "large")

    def large(revision):
        metadata = {"filter_metadata": {"interop": {"revision": revision, "ballast": "x" * BALLAST}}}
        return [static_cluster(name, metadata=metadata)]

    for revision in map(str, range(10)):
        good.changes(revision, large(revision))
    good.goes_on(large("last"))


@scenario(client=GOOD, needs_relay=True)
def who_reconnects_all_the_time_is_not_noticed(bed, client):
    """Before anything is known of him, and long after he was told that it is too often."""
    good = Good(bed, client, new_streams_per_second=5)
    strangers = [bed.stopped(Reconnecting(good.port)) for _ in range(4)]
    refused = until("one is refused", lambda: next((of.refused for of in strangers if of.refused), None))
    good.refuses(refused, "more than 5 new streams a second", "new_streams_per_second")
    before = good.counted("new_streams_per_second")
    good.goes_on()
    until("they went on all the time", lambda: good.counted("new_streams_per_second") > before, within=5)


class Reconnecting:
    """Opens a connection and a stream, asks, and begins again."""

    def __init__(self, port):
        self.address, self.refused = f"127.0.0.1:{port}", None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """One after the other."""
        while not self.over.is_set():
            client = DeltaClient(self.address, "hostile", cluster="mesh")
            client.subscribe(CLUSTER, "*")
            while not (client.error or client.responses or self.over.wait(0.005)):
                pass
            if client.error:
                self.refused = client
            client.stop()

    def stop(self):
        """Ends it."""
        self.over.set()
        self.thread.join(timeout=10)


def enough(found, count):
    """These, once there are so many."""
    return found if len(found) >= count else None
