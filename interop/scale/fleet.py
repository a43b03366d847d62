"""Relays that have their releases in a cluster of etcd, and clients that serve and may move from one to the other."""

import json
import os
import tempfile

import yaml

from harness.bed import AUTHORITY
from harness.certificates import Authority, Files
from harness.envoy import DELTA
from harness.etcd import Etcd
from harness.polling import equal, until
from harness.processes import free_port
from harness.relay import run_once
from mesh import envoy_mesh, grpc_mesh, static_cluster, xdstp

HOLD = "600s"
SCOPES = ("old-style", f"xdstp://{AUTHORITY}")
# The keys of relays, and those of what they serve, where that is in etcd, too.
PREFIX, KEYS = "fleet/", "mesh/"


class Fleet:
    """Relays of the same files, or the same keys, and of the same etcd; and clients at them that take requests all the time:
    Envoys, of old-style names, and one of gRPC at each relay, of an authority's. With `secured` etcd wants certificates and passwords.
    `holds` says how long the stages last, and `ahead` by how many seconds the clock of each relay is."""

    def __init__(self, bed, members=3, relays=2, origin="files", secured=False, holds=(HOLD, HOLD), ahead=(0, 0)):
        self.bed, self.holds, self.ahead = bed, holds, ahead
        self.files = Files(bed.folder, "files", Authority("ours"), "etcd", "client") if secured else None
        self.etcd = bed.started(Etcd(bed.folder, members, self.files))
        self.cables = [[bed.cable(client) for client, _ in self.etcd.ports] for _ in range(relays)]
        # All Envoys listen there: a connection is taken by any of them.
        self.port = free_port()
        self.mesh = envoy_mesh(DELTA, self.port, backend=bed.http_backend("served"))
        self.called = grpc_mesh(bed.grpc_backend("served"), xdstp)
        self.directory = bed.folder / "resources"
        self.directory.mkdir()
        keys = {"etcd": {"endpoints": self.etcd.endpoints, "prefix": KEYS}}
        self.source = keys if origin == "etcd" else {"files": str(self.directory)}
        self.envoys, self.callers, self.leads, self.loads = [], [], {}, []
        self.write(1)
        self.relays = [self.relay(at) for at in range(relays)]

    def write(self, number, bad=False):
        """What all relays are to serve: a listener that Envoy refuses, if it is bad."""
        front, *others = self.mesh.resources()
        if bad:
            # Both are for everything.
            front["filter_chains"] *= 2
        metadata = {"filter_metadata": {"interop": {"revision": number}}}
        self.replace(yaml.safe_dump({"resources": [front, *others, *self.called, static_cluster("revision", metadata=metadata)]}))

    def replace(self, text):
        """The file is replaced whole, and put into etcd where that is the origin."""
        draft = self.bed.folder / "draft"
        draft.write_text(text)
        os.replace(draft, self.directory / "mesh.yaml")
        if "etcd" in self.source:
            endpoints = ",".join(self.etcd.endpoints)
            code, said = run_once(self.bed.tool_binary, "push", "--etcd", endpoints, "--prefix", KEYS, self.directory)
            equal(code, 0, said)

    def relay(self, at):
        """A running relay that releases to canaries first."""
        canaries, all_of_them = self.holds
        stages = [{"match": {"cluster": "canary"}, "hold": canaries}, {"percent": 100, "hold": all_of_them}]
        sockets = tempfile.TemporaryDirectory()
        self.bed.cleanups.append(sockets.cleanup)
        shared = {"endpoints": [f"127.0.0.1:{cable.port}" for cable in self.cables[at]], "prefix": PREFIX}
        if self.files:
            certificate, key = self.files.of("client")
            password = self.bed.folder / "password"
            password.write_text("secret\n")
            shared["endpoints"] = [f"https://{endpoint}" for endpoint in shared["endpoints"]]
            shared["tls"] = {"ca": self.files.ca, "certificate": certificate, "key": key}
            shared["user"] = {"name": "relay", "password_file": str(password)}
        return self.bed.start_relay(
            [{"name": "origin", "authorities": [AUTHORITY], **self.source}],
            name=f"relay-{at}",
            rollout=[{"scope": scope, "settle": "200ms", "stages": stages} for scope in SCOPES],
            state={"path": f"state-{at}", "etcd": shared},
            orders=f"unix:{sockets.name}/orders",
            ahead=self.ahead[at],
        )

    def envoy(self, at, node, cluster="mesh"):
        """An Envoy at a relay, by a cable that can lead to another one."""
        cable = self.bed.cable(self.relays[at].port)
        envoy = self.bed.envoy(DELTA, cable.port, self.port, node=node, cluster=cluster)
        self.envoys.append(envoy)
        self.leads[envoy] = cable
        return envoy

    def caller(self, at):
        """A gRPC client that serves, in the same way."""
        cable = self.bed.cable(self.relays[at].port)
        caller = self.bed.grpc_client(cable.port, authority=AUTHORITY, node=f"grpc-{at}")
        self.callers.append(caller)
        self.leads[caller] = cable
        until("it is called", lambda: caller.request() == "served", within=30)

    def move(self, client, at):
        """Its next stream is at that relay."""
        cable = self.leads[client]
        cable.to_port = self.relays[at].port
        cable.cut()
        cable.mend()

    def order(self, at, *arguments, expect=0, why=("--by", "interop", "--why", "a test")):
        """What comes of an order at that relay, by the tool."""
        relay = self.relays[at]
        asked = ("--admin", f"127.0.0.1:{relay.admin}", *arguments, "--scope", SCOPES[0], *why)
        code, said = run_once(self.bed.tool_binary, "relay", *asked)
        equal(code, expect, f"{' '.join(arguments)}: {said}")
        return said

    def told(self, at):
        """What that relay says of the scope that changes."""
        scopes = json.loads(self.relays[at].page("/api/v1/releases"))["scopes"]
        return next(told for told in scopes if told["scope"] == SCOPES[0])

    def candidate(self, at):
        """The release on its way, as that relay sees it."""
        return self.told(at).get("candidate") or {}

    def instance(self, at):
        """What that relay is called among them."""
        return json.loads(self.relays[at].page("/api/v1/releases"))["instance"]

    def publisher(self):
        """Which of the relays publishes."""
        publisher = self.told(0)["publisher"]
        return [self.instance(at) for at in range(len(self.relays))].index(publisher)

    def agree(self, within=10):
        """Waits until all relays say the same of the releases."""

        def same():
            first, *others = [self.told(at) for at in range(len(self.relays))]
            keys = ("stable", "frozen", "publisher", "refused")
            stages = [(told.get("candidate") or {}).get("stage") for told in (first, *others)]
            return len(set(stages)) == 1 and all(first.get(key) == other.get(key) for other in others for key in keys)

        until("the relays agree", same, within)

    def serves(self):
        """Requests, from now on, by all Envoys that are there, and by gRPC clients at each relay."""
        for at in range(len(self.relays)):
            self.caller(at)
        self.loads = [self.bed.load(client, "served") for client in (self.envoys[0], *self.callers)]

    def nothing_was_taken(self):
        """No Envoy lost its listener or a cluster, and no request failed."""
        for envoy in self.envoys:
            for stat in ("listener_manager.listener_removed", "cluster_manager.cluster_removed"):
                equal(envoy.stat(stat), 0, f"{stat} of {envoy.name}")
        for load in self.loads:
            load.none_failed()


def have(number, envoys):
    """They all have this revision, and a listener."""
    until(f"all have revision {number}", lambda: all(revision(envoy) == number for envoy in envoys), within=30)
    for envoy in envoys:
        until("it listens", lambda envoy=envoy: envoy.stat("listener_manager.total_listeners_active") == 1)


def revision(envoy):
    """That of what it has; none while it has none."""
    clusters = (entry["cluster"] for entry in envoy.dump("dynamic_active_clusters"))
    found = [cluster["metadata"] for cluster in clusters if cluster["name"] == "revision"]
    return found[0]["filter_metadata"]["interop"]["revision"] if found else None
