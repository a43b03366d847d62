"""Drives gRPC for Node, which is a process of its own."""

import base64
import shutil
from pathlib import Path

from envoy.service.discovery.v3 import discovery_pb2

from harness.processes import LineProcess

FOLDER = Path(__file__).parent.parent / "grpc_js"


def is_there():
    """Whether there is a Node, with what it needs."""
    return shutil.which("node") is not None and (FOLDER / "node_modules").is_dir()


class GrpcJs:
    """Clients and a server by TLS; messages are bytes to them."""

    def __init__(self, folder):
        self.log, self.process = folder / "grpc-js.log", None

    def start(self):
        """Starts it; nothing is dialed before it is asked."""
        self.process = LineProcess("grpc-js", ["node", FOLDER / "ads.js"], self.log)

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()

    def opens(self, port, type_url, trusts, shows=None, name="client"):
        """A stream that asks for all of a type, by files of certificates."""
        request = discovery_pb2.DeltaDiscoveryRequest(type_url=type_url, resource_names_subscribe=["*"])
        request.node.id = "grpc-js"
        certificate, key = shows.of(name) if shows else (None, None)
        files = {"ca": trusts.ca, "certificate": certificate, "key": key}
        stream = self.process.ask(do="open", address=f"localhost:{port}", request=encoded(request), **files)
        return lambda: self.process.ask(do="told", stream=stream)

    def serves(self, files, response, name="origin"):
        """The port of a server that answers each stream so, of who shows a certificate."""
        certificate, key = files.of(name)
        return self.process.ask(do="serve", ca=files.ca, certificate=certificate, key=key, response=encoded(response))

    def asked(self):
        """How many streams were opened there."""
        return self.process.ask(do="asked")


def encoded(message):
    """A message in a line."""
    return base64.b64encode(message.SerializeToString()).decode()
