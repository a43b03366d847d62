"""What relays and etcd cost each other. Times of processors are those of processes; other times are of a clock, on loopback."""

import base64
import contextlib
import json
import os
import queue
import threading
import time
import urllib.request
from pathlib import Path

import grpc
from google.protobuf import any_pb2

from ads.types import CLUSTER
from harness.etcd import Etcd
from harness.polling import check, until
from harness.registry import scenario

RELAYS = 28
# For so long it is looked what etcd works, with so many releases and without, in seconds; by so many turns.
WINDOW = 60
RELEASES = 28
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


def field(number, value):
    """A field of bytes, as Protobuf encodes it."""
    length = len(value)
    encoded = b""
    while length >= 128:
        encoded, length = encoded + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + encoded + bytes([length]) + value


def percentile(of, part):
    """That of some figures below which this part of them is."""
    return sorted(of)[min(len(of) - 1, int(len(of) * part))]


@scenario(needs_relay=True, alone=True, members=(1, 3))
def a_release_of_one_change_costs_etcd(bed, members):
    """Relays that all follow, and one change after another: what etcd works for each, beside what it does anyway. And what it works
    for the least that tells as many of as much: a put of as many bytes, and a watch of its key by each."""
    etcd = bed.started(Etcd(bed.folder, members))
    directory = bed.folder / "resources"
    resources = [cluster(f"c-{number}", 1) for number in range(100)]
    replace(directory, resources)
    relays = [relay(bed, etcd, at, directory) for at in range(RELAYS)]
    clients = [bed.delta(each.port, node=f"n-{at}") for at, each in enumerate(relays)]
    for client in clients:
        client.subscribe(CLUSTER, "*")
    until("all are served", lambda: all(len(client.names(CLUSTER)) == 100 for client in clients), within=60)

    def release(number):
        name = f"c-{number % 100}"
        resources[number % 100] = cluster(name, number + 2)
        count = clients[0].arrivals[name] + 1
        replace(directory, resources)
        until("all have it", lambda: all(client.arrivals[name] == count for client in clients), within=30)

    cost, idle = works_for(etcd, release)
    print(f"       {members} members, {RELAYS} relays: {1000 * cost:.2f} ms of etcd for each release, {100 * idle:.2f} % of a core idle")
    written = newest(etcd)
    for client in clients:
        client.stop()
    for each in relays:
        each.kill()
    watching = [Watching(etcd.endpoints[at % members]) for at in range(RELAYS)]
    until("all watch", lambda: all(each.told for each in watching))

    def tell(number):
        told = [each.told for each in watching]
        watching[0].put(number.to_bytes(4, "big") * (written // 4))
        until("all are told", lambda: all(each.told > before for each, before in zip(watching, told)))

    cost, idle = works_for(etcd, tell)
    print(f"       a put of the {written} bytes of a release, {RELAYS} watches: {1000 * cost:.2f} ms, {100 * idle:.2f} % of a core idle")


def works_for(etcd, happens):
    """How long etcd works for each of what happens one after the other, in seconds, and for nothing, of a second."""

    def works():
        return sum(seconds(process) for process in etcd.processes)

    def window(numbers):
        before, until_then = works(), time.monotonic() + WINDOW
        for number in numbers:
            happens(number)
        left = until_then - time.monotonic()
        check(left > 0, f"{RELEASES} of them take longer than {WINDOW} s")
        time.sleep(left)
        return works() - before

    # By turns, for what else goes on here is not the same all the time.
    both = [(window(range(turn * RELEASES, (turn + 1) * RELEASES)), window(())) for turn in range(TURNS)]
    with_all, idle = (sum(some) / TURNS for some in zip(*both))
    return (with_all - idle) / RELEASES, idle / WINDOW


def newest(etcd):
    """How many bytes the last transaction has written."""
    kvs = json.loads(etcd.control("get", "--prefix", "fleet/", "--write-out=json"))["kvs"]
    last = max(kv["mod_revision"] for kv in kvs)
    return sum(len(base64.b64decode(kv.get("value", ""))) for kv in kvs if kv["mod_revision"] == last)


class Watching:
    """A client of etcd that is nothing but its messages, encoded by hand."""

    KEY = field(1, b"floor")

    def __init__(self, endpoint):
        self.channel = grpc.insecure_channel(endpoint, options=[("grpc.use_local_subchannel_pool", 1)])
        self.told, self.requests = 0, queue.SimpleQueue()
        self.requests.put(field(1, self.KEY))
        self.call = self.channel.stream_stream("/etcdserverpb.Watch/Watch")(iter(self.requests.get, None))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Counts what it is told."""
        with contextlib.suppress(grpc.RpcError):
            for _ in self.call:
                self.told += 1

    def put(self, value):
        """Writes what all watch."""
        self.channel.unary_unary("/etcdserverpb.KV/Put")(self.KEY + field(2, value))


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
