"""Relays behind a service are replaced one after the other: nobody who is served by them notices."""

import time

from ads.types import CLUSTER
from harness.bed import upstream
from harness.envoy import VARIANTS, nothing_was_removed
from harness.polling import check, equal, until
from harness.registry import scenario
from harness.service import Service
from mesh import xdstp
from setups import WITH_NODE, serving

REPLICAS = 2
DELAY, DRAIN = 1.5, 3.0
RETURN = 40.0
# Streams beside those of the client under test, each of a node of its own, and each a stream again as soon as it is ended.
STREAMS = 20


@scenario(client=WITH_NODE, needs_relay=True, waits=True)
def relays_are_restarted_one_after_the_other(bed, client):
    """No request fails, nothing is removed, each relay ends in time, and who holds everything is sent nothing again."""
    relays = []

    def front(origin):
        settings = {"drain_delay": f"{DELAY}s", "drain": f"{DRAIN}s", "share_by": ["cluster"]}
        for number in range(REPLICAS):
            relays.append(bed.start_relay([upstream(origin)], name=f"relay-{number + 1}", **settings))
        return bed.stopped(Service(relays)).port

    setup = serving(bed, client, "delta", front=front)
    load = bed.load(setup.client, "first", "second")
    everything = xdstp(CLUSTER, "*") if "xdstp" in client else "*"
    crowd = [Returning(bed, setup.xds_port, f"crowd-{number}", everything) for number in range(STREAMS)]
    until("all have theirs", lambda: all(member.has_what_it_asked_for() for member in crowd))
    resent = 0
    for relay in relays:
        restart(relay, crowd)
        resent += sum(member.resent() for member in crowd)
    equal(resent, 0, "the resources that were sent again to who held them")
    for member in crowd:
        equal(member.removals(), {}, "what was said to be gone")
        check(member.returns >= 1, f"{member.node} was never sent elsewhere")
    setup.move()
    setup.reaches("second", within=RETURN)
    load.none_failed()
    if client in VARIANTS:
        nothing_was_removed(setup.client)


def restart(relay, crowd):
    """Ends it as a rollout does, and has it back; meanwhile whose stream is ended comes back."""
    asked = time.monotonic()
    relay.terminate()

    def ended():
        for member in crowd:
            member.comes_back()
        return not relay.process.alive()

    until("it has ended", ended, within=DELAY + DRAIN + 5)
    took = time.monotonic() - asked
    equal(relay.process.child.returncode, 0, "its exit status")
    check(DELAY <= took <= DELAY + DRAIN + 1.5, f"it took {took:.1f} s")
    for member in crowd:
        member.comes_back()
    until("all are served", lambda: all(member.is_served() for member in crowd), within=RETURN)
    relay.start()


class Returning:
    """A client that opens another stream when its own has ended, and says what it holds."""

    def __init__(self, bed, port, node, asks):
        self.bed, self.port, self.node, self.asks = bed, port, node, asks
        self.streams, self.held = [], {}
        self.open()

    @property
    def returns(self):
        """How often it came back."""
        return len(self.streams) - 1

    def open(self):
        """Asks for everything, with the versions that it has."""
        self.streams.append(self.bed.delta(self.port, node=self.node))
        self.streams[-1].subscribe(CLUSTER, self.asks, initial=self.held)

    def has_what_it_asked_for(self):
        """Whether it was sent something."""
        self.held.update(self.streams[0].versions(CLUSTER))
        return bool(self.held)

    def comes_back(self):
        """Opens another stream if its own is over."""
        if self.streams[-1].error is not None:
            self.open()

    def is_served(self):
        """Whether its stream is open, and was answered: a response, although there is nothing to send."""
        self.comes_back()
        return bool(self.streams[-1].responses)

    def resent(self):
        """How many resources it was sent that it held."""
        return sum(len(response.resources) for stream in self.streams[1:] for response in stream.responses)

    def removals(self):
        """What it was told is gone."""
        return {name: times for stream in self.streams for name, times in stream.removals.items()}
