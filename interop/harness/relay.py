"""Drives the relay under test."""

import json
import os
import signal
import subprocess

from harness.http import get
from harness.polling import equal, until
from harness.processes import Process, free_port


class Relay:
    """The relay's binary with one configuration."""

    def __init__(self, binary, folder, configuration, arguments=None, listen=None, admin=None, name="relay", environment=None):
        self.port, self.admin = listen or free_port(), admin or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.binary, self.name, self.environment = binary, name, environment or {}
        self.file = folder / f"{name}.yaml"
        self.log = folder / f"{name}.log"
        self.arguments = ["--config", self.file] if arguments is None else arguments
        self.configuration = None
        if configuration is not None:
            ports = {"listen": self.address, "admin": f"127.0.0.1:{self.admin}"}
            self.configuration = ports | configuration
            self.file.write_text(json.dumps(self.configuration, indent=1))
        self.process = None

    def start(self):
        """Starts and waits until it says that it is healthy."""
        environment = {"XDS_RELAY_LOG": "info,xds_relay=debug,xdstp_client=debug", "RUST_BACKTRACE": "1"} | os.environ | self.environment
        self.process = Process(self.name, [self.binary, *self.arguments], self.log, environment)
        until("the relay is healthy", self.healthy)

    def healthy(self):
        """Whether its admin page says so."""
        return get(self.admin, "/healthz").status == 200

    def page(self, path):
        """The body of an admin page."""
        response = get(self.admin, path)
        if response.status != 200:
            raise RuntimeError(f"{path}: status {response.status}: {response.body[:200]}")
        return response.body

    def configure(self, hang_up=True, result="ok", **changes):
        """Has it read another configuration, by SIGHUP or because it finds that its file is another; the fields that are
        named are other ones, and none of what it says of this needs a restart."""
        before = self.reloads(result)
        document = self.configuration | changes
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps(document, indent=1))
        draft.replace(self.file)
        if hang_up:
            self.process.child.send_signal(signal.SIGHUP)
        until("the configuration is read again", lambda: self.reloads(result) > before)
        if result == "ok":
            self.configuration = document
        equal(self.count("config_needs_restart"), 0, "the fields that need a restart")

    def reloads(self, result):
        """How often another configuration was read, with this result."""
        return self.count("config_reloads_total", f'result="{result}"')

    def count(self, name, labels=""):
        """The sum of a number that it tells, over all labels that begin so."""
        beginning = f"xds_relay_{name}" + ("{" + labels if labels else "")
        told = (line.rpartition(" ") for line in self.page("/metrics").splitlines() if line.startswith(beginning))
        return sum(float(value) for sample, _, value in told if labels or sample.partition("{")[0] == f"xds_relay_{name}")

    def clients(self):
        """The clients that it has, by node: what it calls each stream."""
        return {client["node"]: client["id"] for client in json.loads(self.page("/api/v1/clients"))["clients"]}

    def audited(self):
        """The lines of its log that say what was denied."""
        return [line for line in self.log.read_text().splitlines() if " audit: " in line]

    def restart(self):
        """Dies without a word, and comes back at the same address knowing nothing."""
        self.kill()
        self.start()

    def terminate(self):
        """Asks it to leave."""
        self.process.child.send_signal(signal.SIGTERM)

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()


def run_once(binary, *arguments):
    """A run that is expected to end by itself: exit status and all output."""
    done = subprocess.run(
        [str(part) for part in (binary, *arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=20,
        check=False,
        text=True,
    )
    return done.returncode, done.stdout
