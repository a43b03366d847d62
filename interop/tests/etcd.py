"""Etcd as the origin, and no control plane."""

import json
import os
import subprocess

import yaml

from ads.types import ENDPOINTS, PREFIX
from harness.envoy import VARIANTS, nothing_was_removed
from harness.http import get
from harness.polling import check, equal, throughout, until
from harness.processes import Process, free_port
from harness.registry import scenario
from harness.relay import run_once
from mesh import envoy_mesh
from tests.last_known_good import all_is_kept, counted

KEYS = "mesh/"


class Etcd:
    """A member on loopback, whose data survive its end."""

    def __init__(self, bed):
        self.bed, self.port, self.peer, self.process = bed, free_port(), free_port(), None
        self.endpoint = f"http://127.0.0.1:{self.port}"
        bed.cleanups.append(self.kill)
        self.start()

    def start(self):
        """Starts it, the first time or again."""
        peer, data = f"http://127.0.0.1:{self.peer}", self.bed.folder / "etcd"
        command = ["etcd", "--name", "m", "--data-dir", data, "--log-level", "error", "--logger", "zap"]
        command += ["--listen-client-urls", self.endpoint, "--advertise-client-urls", self.endpoint]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"m={peer}"]
        self.process = Process("etcd", command, self.bed.folder / "etcd.log")
        until("etcd answers", lambda: self.control("get", "none").returncode == 0, within=30)

    def kill(self):
        """Ends it on the spot."""
        self.process.kill()

    def control(self, *arguments):
        """What etcd's own tool does."""
        command = ["etcdctl", "--endpoints", self.endpoint, "--dial-timeout", "1s", "--command-timeout", "2s", *arguments]
        return subprocess.run(command, env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=False)

    def put(self, type_url, name, value):
        """What a person does."""
        done = self.control("put", f"{KEYS}res/{type_url.removeprefix(PREFIX)}/{name}", value)
        equal(done.returncode, 0, done.stderr)

    def push(self, resources):
        """What CI does: what came of it, in words."""
        file = self.bed.folder / "pushed.yaml"
        file.write_text(yaml.safe_dump({"resources": resources}))
        code, said = run_once(self.bed.tool_binary, "push", "--etcd", self.endpoint, "--prefix", KEYS, file)
        equal(code, 0, said)
        return said

    def origin(self):
        """As relays are told of it."""
        return {"name": "kv", "etcd": {"endpoints": [self.endpoint], "prefix": KEYS}, "authorities": ["authority"]}


@scenario(client=VARIANTS, needs_relay=True, needs_programs=True, waits=True)
def a_client_has_what_people_and_ci_put(bed, client):
    """Through each of two relays. A bad value changes nothing, and etcd's end does not either, for who comes then, too."""
    first, second, port = bed.http_backend("first"), bed.http_backend("second"), free_port()
    etcd, mesh = Etcd(bed), envoy_mesh(client, port, backend=first)
    one = bed.start_relay([etcd.origin()], name="one")
    other = bed.start_relay([etcd.origin()], name="other")
    etcd.push(mesh.resources())
    envoy = bed.envoy(client, one.port, port)
    until("requests reach the first backend", lambda: envoy.request() == "first", within=20)
    check("unchanged" in etcd.push(mesh.resources()), "what is there is not put again")

    mesh.backends["backend"] = second
    endpoints = next(resource for resource in mesh.resources() if resource["@type"] == ENDPOINTS)
    etcd.put(ENDPOINTS, endpoints["cluster_name"], json.dumps(endpoints))
    until("requests reach the second backend", lambda: envoy.request() == "second")
    etcd.put(ENDPOINTS, endpoints["cluster_name"], json.dumps({**endpoints, "endpoints": "none"}))
    for relay in (one, other):
        until("the log names the key", lambda relay=relay: f"{endpoints['cluster_name']}: refused" in relay.log.read_text())
    throughout("requests reach the second backend", lambda: envoy.request() == "second", 0.5)

    etcd.kill()
    one.kill()
    envoy.kill()
    envoy = bed.envoy(client, other.port, port)
    until("who comes while etcd is away is served", lambda: envoy.request() == "second", within=20)
    etcd.start()
    mesh.backends["backend"] = first
    etcd.push(mesh.resources())
    until("requests reach the first backend again", lambda: envoy.request() == "first", within=20)
    equal(envoy.stat("cluster_manager.cds.update_rejected"), 0, "the clusters that Envoy rejected")


@scenario(client=VARIANTS, needs_relay=True, needs_programs=True, waits=True)
def a_relay_that_was_killed_serves_what_a_dead_etcd_had(bed, client):
    """To an Envoy that is new, and to one that was there. A value that was bad before does not harm
    either; and what is put once etcd is back is used, and nothing said to be gone."""
    first, second, port = bed.http_backend("first"), bed.http_backend("second"), free_port()
    etcd, mesh = Etcd(bed), envoy_mesh(client, port, backend=first)
    relay = bed.start_relay([etcd.origin()], state={"path": "state"}, ready_when="last_known_good")
    etcd.push(mesh.resources())
    old = bed.envoy(client, relay.port, port)
    until("requests reach the first backend", lambda: old.request() == "first", within=20)
    endpoints = next(resource for resource in mesh.resources() if resource["@type"] == ENDPOINTS)
    etcd.put(ENDPOINTS, endpoints["cluster_name"], json.dumps({**endpoints, "endpoints": "none"}))
    until("the log names the key", lambda: f"{endpoints['cluster_name']}: refused" in relay.log.read_text())
    all_is_kept(relay)

    etcd.kill()
    relay.restart()
    until("it is ready with what it knew", lambda: get(relay.admin, "/readyz").status == 200, within=20)
    until("it is asked by who was there", lambda: counted(relay, "stale_resources") > 0, within=20)
    throughout("requests reach the first backend", lambda: old.request() == "first", 2.0)
    nothing_was_removed(old)
    old.kill()
    new = bed.envoy(client, relay.port, port, node="new")
    until("who is new is served", lambda: new.request() == "first", within=20)

    etcd.start()
    mesh.backends["backend"] = second
    etcd.push(mesh.resources())
    until("what is put then is used", lambda: new.request() == "second", within=20)
    until("nothing is of before", lambda: counted(relay, "stale_resources") == 0, within=20)
    nothing_was_removed(new)
