"""Drives a cluster of etcd."""

import json
import shutil
import signal
import subprocess

from harness.polling import until
from harness.processes import Process, free_port


class Etcd:
    """So many members on loopback, each with a directory of its own. With files of certificates, clients have to show one
    (`etcd` and `client` in them), and to say a password."""

    def __init__(self, folder, members=3, files=None):
        self.folder, self.token, self.files = folder, "first", files
        self.scheme = "https" if files else "http"
        self.who = self.shown("client") if files else []
        self.ports = [(free_port(), free_port()) for _ in range(members)]
        self.processes = [None] * members
        self.initial = ",".join(f"m{at}=http://127.0.0.1:{peer}" for at, (_, peer) in enumerate(self.ports))

    @property
    def endpoints(self):
        """Where its members are."""
        return [f"127.0.0.1:{client}" for client, _ in self.ports]

    def shown(self, name):
        """By which files somebody speaks TLS."""
        certificate, key = self.files.of(name)
        return ["--cert", certificate, "--key", key, "--cacert", self.files.ca]

    def start(self):
        """Starts all members, and waits until they have a leader."""
        for at in range(len(self.ports)):
            self.start_member(at)
        until("etcd has a leader", self.leader, within=30)
        if self.files:
            self.ask_for_passwords()

    def ask_for_passwords(self):
        """`relay` may do all with all keys, and says its password."""
        for command in (
            *(("user", "add", "root:boss"), ("user", "grant-role", "root", "root")),
            *(("role", "add", "relays"), ("role", "grant-permission", "relays", "--prefix=true", "readwrite", "fleet/")),
            *(("user", "add", "relay:secret"), ("user", "grant-role", "relay", "relays"), ("auth", "enable")),
        ):
            self.control(*command)
        self.who += ["--user", "root:boss"]

    def start_member(self, at):
        """Starts one, with what it knew."""
        client, peer = (f"{scheme}://127.0.0.1:{port}" for scheme, port in zip((self.scheme, "http"), self.ports[at]))
        command = ["etcd", "--name", f"m{at}", "--data-dir", self.folder / f"etcd-{at}-{self.token}"]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        command += ["--initial-cluster", self.initial, "--initial-cluster-token", self.token]
        if self.files:
            certificate, key = self.files.of("etcd")
            command += ["--cert-file", certificate, "--key-file", key, "--trusted-ca-file", self.files.ca]
            command += ["--client-cert-auth"]
        self.processes[at] = Process(f"etcd-{at}", command, self.folder / f"etcd-{at}.log")

    def control(self, *arguments, at=None):
        """What etcdctl says, of one member or of all."""
        endpoints = self.endpoints if at is None else [self.endpoints[at]]
        command = ["etcdctl", "--endpoints", ",".join(f"{self.scheme}://{endpoint}" for endpoint in endpoints)]
        command += ["--command-timeout=3s", *self.who, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False, env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"})
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode()[-300:]}")
        return done.stdout.decode()

    def leader(self):
        """Which member leads."""
        for at in range(len(self.ports)):
            try:
                [told] = json.loads(self.control("endpoint", "status", "--write-out=json", at=at))
            except RuntimeError:
                continue
            status = told["Status"]
            if status.get("leader") and status["leader"] == status["header"]["member_id"]:
                return f"m{at}"
        return None

    def kill_leader(self):
        """Ends whoever leads, as a crash would, and says who that was."""
        at = int(until("somebody leads", self.leader)[1:])
        self.processes[at].kill()
        return at

    def stop_all(self):
        """No member answers, and none is gone."""
        self.signal(signal.SIGSTOP)

    def go_on(self):
        """They answer again."""
        self.signal(signal.SIGCONT)

    def signal(self, what):
        """To all members."""
        for process in self.processes:
            process.child.send_signal(what)

    def save(self, file):
        """What is there, in a file."""
        self.control("snapshot", "save", file, at=0)

    def restore(self, file):
        """The cluster is another one that has what was saved."""
        for process in self.processes:
            process.kill()
        self.token += "-again"
        for at in range(len(self.ports)):
            peer = f"http://127.0.0.1:{self.ports[at][1]}"
            directory = self.folder / f"etcd-{at}-{self.token}"
            shutil.rmtree(directory, ignore_errors=True)
            self.control(
                *("snapshot", "restore", file, "--name", f"m{at}", "--data-dir", directory),
                *("--initial-cluster", self.initial, "--initial-cluster-token", self.token),
                *("--initial-advertise-peer-urls", peer),
            )
        self.start()

    def compact(self):
        """What was is forgotten, and what is is not."""
        told = json.loads(self.control("endpoint", "status", "--write-out=json"))
        self.control("compact", max(each["Status"]["header"]["revision"] for each in told), "--physical")

    def kill(self):
        """Ends them all."""
        for process in self.processes:
            if process is not None:
                process.kill()
