"""A soak: Envoy and gRPC serve requests, and clients of our own listen, while resources come and go, the origin dies and comes
back, the relay's configuration and certificates are replaced, and clients leave and return. No request may fail, nothing be said
to be gone that is there, and the relay's memory has to stay what it is."""

import argparse
import json
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

import grpc

from ads.types import CLUSTER
from harness import grpc_js
from harness.bed import Bed, upstream
from harness.certificates import Authority, Files
from harness.envoy import DELTA
from harness.grpc_client import NODE
from harness.polling import Unmet, check, equal, until
from harness.processes import free_port, kill_all
from mesh import envoy_mesh, grpc_mesh, plain
from suite import HERE, built
from tests.rollout import Returning

FOLDER = HERE / "logs" / "soak"
CROWD = 20
STABLE, CHURN = 20, 40
# How often it is looked whether everybody has what there is.
QUIET_EVERY = 60.0
# What the relay takes at first is not looked at.
WARM_UP = 120.0
# How much more may be in use in the last quarter than in the first.
GROWTH, SLACK = 1.15, 2 << 20


def main():
    """The process's exit status."""
    parser = argparse.ArgumentParser(prog="soak", description="The relay and real clients while all around them moves.")
    parser.add_argument("--minutes", type=float, default=20, help="how long")
    parser.add_argument("--seed", type=int, default=1, help="which course it takes")
    parser.add_argument("--relay", type=Path, help="the relay's binary (default: the workspace's build, release first)")
    options = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    bed = Bed(FOLDER, built(options.relay, "xds-relay"))
    try:
        world = World(bed, random.Random(options.seed))
        world.run(options.minutes * 60)
        print(world.report())
    except Unmet as unmet:
        print(f"not held: {unmet}")
        return 1
    finally:
        bed.close()
        kill_all()
    return 0


class Member(Returning):
    """One of the crowd, by TLS."""

    def __init__(self, bed, port, node, credentials):
        self.credentials = credentials
        super().__init__(bed, port, node, "*")

    def open(self):
        """Asks for everything, with the versions that it has."""
        held = self.streams[-1].versions(CLUSTER) if self.streams else {}
        stream = self.bed.delta(self.port, node=self.node, credentials=self.credentials)
        # What it has is kept as it is: what it is not told of stays.
        stream.state[CLUSTER] = dict(self.streams[-1].state.get(CLUSTER, {})) if self.streams else {}
        self.streams.append(stream)
        stream.subscribe(CLUSTER, "*", initial=held)

    def leave(self):
        """Goes, and comes back."""
        self.streams[-1].stop()
        self.open()

    def names(self):
        """What it has."""
        return self.streams[-1].names(CLUSTER)


class World:
    """All that runs, and what is done to it."""

    def __init__(self, bed, chance):
        self.bed, self.chance = bed, chance
        self.authority = Authority("ours")
        self.files = Files(bed.folder, "files", self.authority, "relay")
        theirs = Files(bed.folder, "theirs", self.authority, "client")
        port, self.backend, grpc_backend = free_port(), bed.http_backend("http"), bed.grpc_backend("grpc")
        self.mesh = envoy_mesh(DELTA, port, backend=self.backend)
        self.churn = set()
        views = {node: grpc_mesh(grpc_backend, plain) for node in ("grpc", "grpc-js")}
        self.origin = bed.origin(self.resources(), views=views)
        certificate, key = self.files.of("relay")
        self.settings = {"tls": {"certificate": certificate, "key": key, "client_ca": self.files.ca}, "log": "info"}
        self.relay = bed.start_relay([upstream(self.origin)], **self.settings)
        tls = (theirs.ca, *theirs.of("client"))
        envoy = bed.envoy(DELTA, self.relay.port, port, tls=tls)
        until("Envoy serves", lambda: envoy.request() == "http", within=30)
        names = ("ca_certificate_file", "certificate_file", "private_key_file")
        client = bed.grpc_client(self.relay.port, tls=dict(zip(names, tls)))
        until("gRPC serves", lambda: client.request() == "grpc", within=30)
        ca, shown, private = (Path(file).read_bytes() for file in tls)
        credentials = grpc.ssl_channel_credentials(ca, private, shown)
        self.crowd = [Member(bed, self.relay.port, f"crowd-{number}", credentials) for number in range(CROWD)]
        self.loads = [bed.load(envoy, "http"), bed.load(client, "grpc")]
        if grpc_js.is_there():
            self.loads.append(bed.load(self.behind_another_relay(tls), "grpc"))
        self.done, self.memory = {}, []

    def behind_another_relay(self, tls):
        """gRPC for Node, which serves: it has no certificate to show, and comes by a relay that has one."""
        shown = dict(zip(("ca", "certificate", "key"), tls))
        near = self.bed.start_relay([upstream(self.relay, authorities=()) | {"tls": shown}], name="near")
        client = self.bed.grpc_client(near.port, node="grpc-js", program=NODE)
        until("gRPC for Node serves", lambda: client.request() == "grpc", within=30)
        return client

    def resources(self):
        """What there is now."""
        stable = {f"stable-{number}": self.backend for number in range(STABLE)}
        self.mesh.backends = {"backend": self.backend} | stable | {name: self.backend for name in sorted(self.churn)}
        return self.mesh.resources()

    def clusters(self):
        """The names of the clusters that there are."""
        return set(self.mesh.backends)

    def run(self, seconds):
        """Does one thing after the other, and looks at everybody now and then."""
        begun = time.monotonic()
        end, quiet = begun + seconds, begun + QUIET_EVERY
        things = [self.change, self.change, self.change, self.flap, self.reload, self.rotate, self.leave]
        while time.monotonic() < end:
            thing = self.chance.choice(things)
            thing()
            self.done[thing.__name__] = self.done.get(thing.__name__, 0) + 1
            self.settle(self.chance.uniform(0.2, 1.5))
            self.none_is_gone()
            if time.monotonic() - begun > WARM_UP:
                self.memory.append(self.relay.process.resident_bytes())
            if time.monotonic() > quiet:
                self.all_have_what_there_is()
                quiet = time.monotonic() + QUIET_EVERY
        self.all_have_what_there_is()
        for load in self.loads:
            load.none_failed()
        self.memory_is_flat()

    def settle(self, seconds):
        """Lets time pass; whose stream is over comes back."""
        until_then = time.monotonic() + seconds
        while time.monotonic() < until_then:
            for member in self.crowd:
                member.comes_back()
            time.sleep(0.05)

    def change(self):
        """Clusters come and go, and some are others."""
        for _ in range(self.chance.randint(1, 5)):
            self.churn ^= {f"churn-{self.chance.randrange(CHURN)}"}
        self.mesh.revision = str(self.chance.random())
        self.origin.update(self.resources())

    def flap(self):
        """The origin dies, may find other files, and comes back."""
        self.origin.kill()
        if self.chance.random() < 0.5:
            self.churn ^= {f"churn-{self.chance.randrange(CHURN)}"}
        self.origin.write(self.resources())
        self.settle(self.chance.uniform(0, 3))
        self.origin.start()

    def reload(self):
        """The relay's configuration is another one, that counts at once."""
        self.settings["log"] = self.chance.choice(["info", "warn", "info,xds_relay=debug"])
        self.settings["limits"] = {"names": self.chance.randint(100_000, 200_000)}
        ports = {"listen": self.relay.address, "admin": f"127.0.0.1:{self.relay.admin}"}
        configuration = {"origins": [upstream(self.origin)], "default_origin": self.origin.name, **self.settings}
        new = self.relay.file.with_suffix(".new")
        new.write_text(json.dumps(ports | configuration))
        new.replace(self.relay.file)

    def rotate(self):
        """The relay has another certificate."""
        self.files.replace(self.authority, "relay")

    def leave(self):
        """A client goes, and comes back with what it has."""
        self.chance.choice(self.crowd).leave()

    def none_is_gone(self):
        """Nothing was said to be gone that was there all the time, and no request has failed."""
        stays = {"backend"} | {f"stable-{number}" for number in range(STABLE)}
        for member in self.crowd:
            equal(stays & set(member.removals()), set(), f"what {member.node} was told is gone, and is there")
        for load in self.loads:
            check(not load.failures, f"{len(load.failures)} of {load.sent} requests failed: {load.failures[:3]}")

    def all_have_what_there_is(self):
        """Everybody has what the origin has."""

        def have():
            self.settle(0.1)
            return all(member.names() == self.clusters() for member in self.crowd)

        until("everybody has what there is", have, within=45)

    def memory_is_flat(self):
        """The relay has no more in use at the end than it had at first."""
        quarter = len(self.memory) // 4
        if quarter < 10:
            return
        first, last = (statistics.median(part) for part in (self.memory[:quarter], self.memory[-quarter:]))
        check(last <= first * GROWTH + SLACK, f"{first / 2**20:.1f} MiB at first, {last / 2**20:.1f} MiB in the end")

    def report(self):
        """What was done, in a line."""
        requests = sum(load.sent for load in self.loads)
        first, last = (self.memory[0], self.memory[-1]) if self.memory else (0, 0)
        returns = sum(member.returns for member in self.crowd)
        done = ", ".join(f"{name} {times}" for name, times in sorted(self.done.items()))
        return (
            f"held: {requests} requests of {len(self.loads)}, {returns} returns of {CROWD} clients; {done}; "
            f"the relay's memory {first / 2**20:.1f} to {last / 2**20:.1f} MiB"
        )


if __name__ == "__main__":
    sys.exit(main())
