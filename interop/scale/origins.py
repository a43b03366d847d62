"""A cluster of etcd as the origin, some members of which die while clients send requests."""

import json

import yaml

from ads.types import CLUSTER
from harness.bed import AUTHORITY
from harness.envoy import DELTA, nothing_was_removed
from harness.etcd import Etcd
from harness.polling import equal, until
from harness.processes import free_port
from harness.registry import scenario
from harness.relay import run_once
from mesh import envoy_mesh, grpc_mesh, xdstp

KEYS = "mesh/"


@scenario(needs_relay=True, needs_programs=True, waits=True)
def an_origin_in_etcd_loses_one_leader_after_the_other_under_traffic(bed):
    """What is put before another member leads, or as soon as one does, reaches Envoy and gRPC; no request fails, and nothing
    is said to be gone."""
    etcd = bed.started(Etcd(bed.folder, 3))
    port, tags = free_port(), ("first", "second")
    proxied = {tag: bed.http_backend(tag) for tag in tags}
    called = {tag: bed.grpc_backend(tag) for tag in tags}
    mesh = envoy_mesh(DELTA, port, backend=None)
    file = bed.folder / "mesh.yaml"

    def push(tag):
        mesh.backends["backend"] = proxied[tag]
        file.write_text(yaml.safe_dump({"resources": [*mesh.resources(), *grpc_mesh(called[tag], xdstp)]}))
        return run_once(bed.tool_binary, "push", "--etcd", ",".join(etcd.endpoints), "--prefix", KEYS, file)

    equal(push("first")[0], 0, "what became of what was put")
    source = {"name": "kv", "etcd": {"endpoints": etcd.endpoints, "prefix": KEYS}, "authorities": [AUTHORITY]}
    relay = bed.start_relay([source])
    envoy, caller = bed.envoy(DELTA, relay.port, port), bed.grpc_client(relay.port, authority=AUTHORITY)
    clients = (envoy, caller)

    def reach(tag):
        for client in clients:
            until(f"requests reach the {tag} backend", lambda client=client: client.request() == tag, within=30)

    reach("first")
    watcher = bed.delta(relay.port, node="watcher")
    watcher.subscribe(CLUSTER, "*", xdstp(CLUSTER, "*"))
    until("the watcher has all clusters", lambda: len(watcher.names(CLUSTER)) == 2)
    loads = [bed.load(client, *tags) for client in clients]
    for tag in ("second", "first"):
        dead = etcd.kill_leader()
        until("what is put is taken", lambda tag=tag: push(tag)[0] == 0, within=30)
        reach(tag)
        etcd.start_member(dead)
        until("all members are there", lambda: "unhealthy" not in etcd.control("endpoint", "health"), within=30)
    for load in loads:
        load.none_failed()
    nothing_was_removed(envoy)
    equal(watcher.removals, {}, "what the watcher was told is gone")
    equal(relay.count("etcd_origin_held_removals"), 0, "what was gone from etcd for a while")
    equal(len(json.loads(relay.page("/api/v1/clients"))["clients"]), 3, "the streams that there are")
