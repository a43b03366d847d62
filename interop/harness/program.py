"""Drives programs that watch, the tool `xds` and the example of the client library, and the example of a control plane."""

import json
import os
import signal

from harness.processes import Process, free_port


class Tool:
    """`xds watch`, which prints an object a line for each event."""

    def __init__(self, binary, folder, name, servers, protocol, type_url, names):
        self.name, self.folder, self.binary = name, folder, binary
        self.file, self.output = write(servers, folder, name), folder / f"{name}.events.log"
        options = ["--output", "json", "--protocol", protocol, "--bootstrap", self.file]
        self.arguments = ["watch", *options, type_url, *names]
        self.process = None

    def start(self):
        """Starts it; whom it asks need not be there."""
        self.process = Process(self.name, [self.binary, *self.arguments], self.output)

    def events(self, event=None):
        """What it said so far, or what of it is of one kind; words for people stand beside it."""
        lines = [line for line in self.output.read_text().splitlines(keepends=True) if line.startswith("{")]
        said = [json.loads(line) for line in lines if line.endswith("\n")]
        return [line for line in said if event in (None, line["event"])]

    def versions(self):
        """Name to version of what there is."""
        held = {}
        for line in self.events():
            if line["event"] == "put":
                held[line["name"]] = line["version"]
            elif line["event"] == "removed":
                held.pop(line["name"], None)
        return held

    def servers(self):
        """Name to the server that said so last."""
        return {line["name"]: line["server"] for line in self.events("put")}

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()


class Example(Tool):
    """The example `watch` of the client library: a line for each event, content in hexadecimal digits. It speaks delta."""

    def __init__(self, binary, folder, name, servers, _protocol, type_url, names):
        super().__init__(binary, folder, name, servers, "delta", type_url, names)
        self.arguments = [type_url, *names]

    def start(self):
        """The same, with the bootstrap in the environment."""
        environment = os.environ | {"GRPC_XDS_BOOTSTRAP": str(self.file)}
        self.process = Process(self.name, [self.binary, *self.arguments], self.output, environment)

    def events(self, event=None):
        """The same."""
        said = [line.split() for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        keys = ("event", "name", "version", "content")
        lines = [dict(zip(keys, words, strict=False)) for words in said if words]
        return [line for line in lines if event in (None, line["event"])]

    def bodies(self):
        """Name to the bytes of what came last of it."""
        return {line["name"]: bytes.fromhex(line["content"]) for line in self.events("put")}


class ControlPlane:
    """An example of a control plane: one cluster, `cart`, for everybody, or those of the node's cluster."""

    def __init__(self, binary, folder):
        self.binary, self.port, self.log = binary, free_port(), folder / "plane.log"
        self.process = None

    def start(self):
        """Starts it; clients may come before it listens."""
        self.process = Process("plane", [self.binary, f"127.0.0.1:{self.port}"], self.log)

    def interrupt(self):
        """Asks it to leave, as from a keyboard."""
        self.process.child.send_signal(signal.SIGINT)

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()


def write(servers, folder, name):
    """A bootstrap: the ports of the servers of the top level, in order, and by authority."""

    def listed(ports):
        return [{"server_uri": f"127.0.0.1:{port}", "channel_creds": [{"type": "insecure"}]} for port in ports]

    authorities = {authority: {"xds_servers": listed(ports)} for authority, ports in servers.items() if authority}
    document = {"xds_servers": listed(servers[""]), "authorities": authorities, "node": {"id": name, "cluster": "mesh"}}
    file = folder / f"{name}.bootstrap.json"
    file.write_text(json.dumps(document, indent=1))
    return file
