"""What relays and etcd cost each other. Times of processors are those of processes; other times are of a clock, on loopback."""

import base64
import json
import os
import time
import urllib.request
from pathlib import Path

from google.protobuf import any_pb2

from ads.types import CLUSTER
from harness.etcd import Etcd
from harness.polling import check, until
from harness.registry import scenario

RELAYS = 28
# For so long it is looked what etcd works, with so many releases and without, in seconds; by so many turns.
WINDOW = 30
RELEASES = 12
TURNS = 2
PUTS = 300
# So many resources of 1 KiB, and as many of them in a file.
MANY = 100_000
IN_A_FILE = 10_000


def cluster(name, revision, padding=0):
    """A resource; with padding it is so many bytes larger."""
    padded = {"alt_stat_name": "x" * padding} if padding else {}
    timeout = {"connect_timeout": f"{revision}s"}
    return {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, **timeout, **padded}


def replace(directory, resources):
    """The files of a directory are replaced, each of them whole: one has so many resources as a file may."""
    directory.mkdir(exist_ok=True)
    for at, begin in enumerate(range(0, len(resources), IN_A_FILE)):
        draft = directory.parent / "draft"
        draft.write_text(json.dumps({"resources": resources[begin : begin + IN_A_FILE]}))
        os.replace(draft, directory / f"{at:03}.json")


def relay(bed, etcd, at, directory):
    """A running relay that releases what is in a directory to everybody at once."""
    return bed.start_relay(
        [{"name": "files", "files": str(directory)}],
        name=f"relay-{at}",
        rollout=[{"scope": "old-style", "settle": "200ms", "stages": [{"percent": 100, "hold": "0s"}]}],
        state={"path": f"state-{at}", "etcd": {"endpoints": etcd.endpoints, "prefix": "fleet/"}},
    )


def seconds(process):
    """How long processors have worked for it."""
    tasks = Path(f"/proc/{process.child.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def percentile(of, part):
    """That of some figures below which this part of them is."""
    return sorted(of)[min(len(of) - 1, int(len(of) * part))]


@scenario(needs_relay=True, alone=True, members=(1, 3))
def a_release_of_one_change_costs_etcd(bed, members):
    """Relays that all follow, and one change after another: what etcd works for each, beside what it does anyway."""
    etcd = bed.started(Etcd(bed.folder, members))
    directory = bed.folder / "resources"
    resources = [cluster(f"c-{number}", 1) for number in range(100)]
    replace(directory, resources)
    relays = [relay(bed, etcd, at, directory) for at in range(RELAYS)]
    clients = [bed.delta(each.port, node=f"n-{at}") for at, each in enumerate(relays)]
    for client in clients:
        client.subscribe(CLUSTER, "*")
    until("all are served", lambda: all(len(client.names(CLUSTER)) == 100 for client in clients), within=60)

    def works():
        return sum(seconds(process) for process in etcd.processes)

    def window(releases):
        """What etcd works in some seconds, from the beginning of which there is one release after another, or none."""
        before, until_then = works(), time.monotonic() + WINDOW
        for release in releases:
            name = f"c-{release % 100}"
            resources[release % 100] = cluster(name, release + 2)
            count = clients[0].arrivals[name] + 1
            replace(directory, resources)
            until("all have it", lambda: all(client.arrivals[name] == count for client in clients), within=30)
        left = until_then - time.monotonic()
        check(left > 0, f"{RELEASES} releases take longer than {WINDOW} s")
        time.sleep(left)
        return works() - before

    # By turns, for what else goes on here is not the same all the time.
    both = [(window(range(turn * RELEASES, (turn + 1) * RELEASES)), window(())) for turn in range(TURNS)]
    with_releases, idle = (sum(some) / TURNS for some in zip(*both))
    cost = (with_releases - idle) / RELEASES
    print(f"       {members} members, {RELAYS} relays: {1000 * cost:.2f} ms of etcd for each release, {100 * idle / WINDOW:.2f} % of a core idle")


@scenario(needs_relay=True, alone=True)
def what_is_put_reaches_clients(bed):
    """From the moment that a value is put into etcd until a client of a relay has it; nothing else is going on."""
    etcd = bed.started(Etcd(bed.folder, 1))
    origin = {"name": "kv", "etcd": {"endpoints": etcd.endpoints, "prefix": "mesh/"}}
    client = bed.delta(bed.start_relay([origin]).port)
    client.subscribe(CLUSTER, "web")
    alone, both = [], []
    for number in range(PUTS):
        message = any_pb2.Any(type_url="type.googleapis.com/envoy.config.cluster.v3.Cluster")
        # The field `name` of a Cluster, and its `alt_stat_name`.
        message.value = b"\x0a\x03web" + b"\xe2\x01\x04" + f"{number:04}".encode()
        before = client.arrivals.get("web", 0)
        began = time.perf_counter()
        put(etcd, "mesh/res/envoy.config.cluster.v3.Cluster/web", message.SerializeToString())
        alone.append(time.perf_counter() - began)
        while client.arrivals.get("web", 0) == before:
            check(time.perf_counter() - began < 10, "it does not come")
            # Who waits without a pause keeps the thread from running that hears it.
            time.sleep(0.0002)
        both.append(time.perf_counter() - began)
        time.sleep(0.02)
    for what, of in (("the put alone", alone), ("until a client has it", both)):
        p50, p99 = (1000 * percentile(of, part) for part in (0.5, 0.99))
        print(f"       {what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


@scenario(needs_relay=True, alone=True, resources=(100, MANY))
def a_relay_that_starts_reads_all_of_a_release(bed, resources):
    """From the moment that a relay is started until a client has all that is released, from etcd, or from the copy when etcd is away."""
    etcd = bed.started(Etcd(bed.folder, 1))
    directory, nothing = bed.folder / "resources", bed.folder / "nothing"
    # 1 KiB each.
    replace(directory, [cluster(f"c-{number:06}", 1, padding=1000) for number in range(resources)])
    nothing.mkdir()
    publisher = relay(bed, etcd, 0, directory)
    first = bed.delta(publisher.port)
    first.subscribe(CLUSTER, "*")
    until("it is released", lambda: len(first.names(CLUSTER)) == resources, within=300)
    for where in ("etcd, nothing kept here", "etcd, with a copy", "the copy, etcd away"):
        if where.startswith("the copy"):
            etcd.stop_all()
        began = time.monotonic()
        # It has no files, and publishes nothing; it goes by what others released.
        other = relay(bed, etcd, 1, nothing)
        healthy = time.monotonic()
        client = bed.delta(other.port)
        client.subscribe(CLUSTER, "*")
        until("a client is served", lambda: client.names(CLUSTER), within=60)
        served = time.monotonic()
        until("a client has all", lambda: len(client.names(CLUSTER)) == resources, within=60)
        all_there = time.monotonic()
        print(
            f"       {resources} from {where}: healthy {healthy - began:.2f} s, first {served - began:.2f} s, "
            f"all {all_there - began:.2f} s after the start; {seconds(other.process):.2f} s of a core, "
            f"{other.process.resident_bytes() >> 20} MiB"
        )
        client.stop()
        # What is served is copied within seconds.
        time.sleep(5 if resources < MANY else 20)
        other.kill()
    etcd.go_on()


def put(etcd, key, value):
    """Through etcd's own gateway for JSON."""
    encoded = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}
    request = urllib.request.Request(f"http://{etcd.endpoints[0]}/v3/kv/put", json.dumps(encoded).encode())
    urllib.request.urlopen(request, timeout=10).read()
