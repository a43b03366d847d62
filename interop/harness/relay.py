"""Drives the relay under test."""

import json
import os
import signal
import subprocess

from harness.http import get
from harness.polling import until
from harness.processes import Process, free_port


class Relay:
    """The relay's binary with one configuration."""

    def __init__(self, binary, folder, configuration, arguments=None, listen=None, admin=None, name="relay"):
        self.port, self.admin = listen or free_port(), admin or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.binary, self.name = binary, name
        self.file = folder / f"{name}.yaml"
        self.log = folder / f"{name}.log"
        self.arguments = ["--config", self.file] if arguments is None else arguments
        if configuration is not None:
            ports = {"listen": self.address, "admin": f"127.0.0.1:{self.admin}"}
            self.file.write_text(json.dumps(ports | configuration, indent=1))
        self.process = None

    def start(self):
        """Starts and waits until it says that it is healthy."""
        environment = {"XDS_RELAY_LOG": "info,xds_relay=debug,xdstp_client=debug", "RUST_BACKTRACE": "1"} | os.environ
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
