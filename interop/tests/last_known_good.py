"""A relay that keeps what its origins said dies without a word, and is started again while its origin is dead."""

import datetime
import re
import time

from ads.types import CLUSTER
from harness.bed import upstream
from harness.envoy import VARIANTS, nothing_was_removed
from harness.etcd import Etcd
from harness.polling import check, throughout, until
from harness.registry import ORIGINS, scenario
from mesh import static_cluster
from setups import GRPC, GRPC_JS, WITH_NODE, another, serving

# How long a client, and the relay, may take to find out that who was away is there again: they back off.
RETURN = 40.0
# For longer than a relay waits before it writes.
WRITES_BEHIND = 2.5
# How long it may take from when what was kept is read until a client that comes then has the last of it.
SERVED = 1.0
MANY = 1000


@scenario(client=WITH_NODE, origin=ORIGINS, needs_relay=True, waits=True)
def a_relay_that_was_killed_serves_on_what_it_knew_while_its_origin_is_dead(bed, client, origin):
    """No request of who is served fails; nothing is said to be gone; what the origin has after its return is used."""
    setup = serving(bed, client, origin, state={"path": "state"}, share_by=["cluster"])
    all_is_kept(bed.relay)
    load = bed.load(setup.client, "first", "second")
    setup.origin.kill()
    bed.relay.restart()
    until("what is served is said to be of before", lambda: counted(bed.relay, "stale_resources") > 0, within=RETURN)
    throughout("requests reach the first backend", lambda: setup.client.request() == "first", 3.0)
    setup.prepare_move()
    setup.origin.start()
    setup.reaches("second", within=RETURN)
    load.none_failed()
    if client in VARIANTS:
        nothing_was_removed(setup.client)


@scenario(client=(*VARIANTS, GRPC, GRPC_JS), needs_relay=True, waits=True)
def a_client_that_was_never_there_is_served_what_a_killed_relay_knew(bed, client):
    """The origin is dead all the time. It is of the group of one that was there before."""
    setup = serving(bed, client, "delta", state={"path": "state"}, share_by=["cluster"])
    all_is_kept(bed.relay)
    setup.client.kill()
    setup.origin.kill()
    bed.relay.restart()
    other = another(bed, client, setup.xds_port, setup.mesh and setup.mesh.port)
    until("requests of the other node reach the first backend", lambda: other.request() == "first", within=20)


@scenario(client=ORIGINS, needs_relay=True, alone=True)
def a_new_client_has_all_within_a_second_of_the_load(bed, client):
    """From the relay's own word that it read what it kept to the last resource at a node that was never there, printed and held."""
    names = {f"cluster-{number}" for number in range(MANY)}
    source = bed.origin([static_cluster(name) for name in sorted(names)])
    port = bed.front(source, state={"path": "state"}, share_by=["cluster"])
    node = {"delta": bed.delta, "sotw": bed.sotw}[client]
    held = {} if client == "delta" else {"full_state": (CLUSTER,)}

    def comes(name):
        one = node(port, node=name, **held)
        one.subscribe(CLUSTER, "*")
        until("it has all clusters", lambda: one.names(CLUSTER) == names, within=20)
        return one

    comes("first").stop()
    all_is_kept(bed.relay)
    source.kill()
    bed.relay.restart()
    took = comes("other").came - loaded(bed.relay)
    print(f"a new client over {client} has {MANY} clusters {took:.3f} s after what was kept is read")
    check(took < SERVED, f"it took {took:.3f} s")


@scenario(client=(*VARIANTS, GRPC), origin=ORIGINS, needs_relay=True, waits=True)
def a_relay_that_never_was_serves_a_new_client_what_another_knew(bed, client, origin):
    """They have an etcd in common. The other relay, all of its disk and the origin are gone; the new one begins with nothing."""
    etcd = bed.started(Etcd(bed.folder, 1))
    shared = {"last_known_good": "shared", "etcd": {"endpoints": etcd.endpoints, "prefix": "fleet/"}}
    setup = serving(bed, client, origin, state={"path": "state", **shared}, share_by=["cluster"])
    old = bed.relay
    until("what it knows is written for others", lambda: "v1/known/" in etcd.control("get", "--prefix", "--keys-only", "fleet/"), within=90)
    setup.client.kill()
    setup.origin.kill()
    old.kill()
    state = {"path": "another-state", **shared}
    new = bed.start_relay([upstream(setup.origin, origin)], name="new", state=state, share_by=["cluster"])
    other = another(bed, client, new.port, setup.mesh and setup.mesh.port)
    until("requests of the other node reach the first backend", lambda: other.request() == "first", within=20)
    setup.prepare_move()
    setup.origin.start()
    until("what changed meanwhile reaches it", lambda: other.request() == "second", within=RETURN)


def all_is_kept(relay):
    """It writes behind: nothing more is to be written once nothing was for longer than it waits."""
    last, since = None, time.monotonic()

    def rests():
        nonlocal last, since
        written, now = counted(relay, "state_keys_written_total"), time.monotonic()
        if written != last:
            last, since = written, now
        return written > 0 and now - since > WRITES_BEHIND

    until("what it knows is written", rests, within=20)


def loaded(relay):
    """When it had read what was kept, as its log says."""
    lines = [line for line in relay.log.read_text().splitlines() if "what was known before was read" in line]
    moment = re.search(r"\d{4}-\d\d-\d\dT[\d:.]+", lines[-1]).group()
    return datetime.datetime.fromisoformat(moment).replace(tzinfo=datetime.UTC).timestamp()


def counted(relay, name):
    """The sum of a number that it tells, over all its labels."""
    lines = [line for line in relay.page("/metrics").splitlines() if line.startswith(f"xds_relay_{name}")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)
