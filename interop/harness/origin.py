"""Drives the origin, which is a process of its own."""

import json
import sys
from pathlib import Path

from harness.processes import LineProcess, free_port

PROGRAM = Path(__file__).parent.parent / "origin.py"


class Origin:
    """An origin that can die and come back at the same address with the files it then finds."""

    def __init__(self, folder, name, options, nodes):
        self.folder, self.name = folder, name
        self.views = {node: folder / f"{name}.{node}.resources.yaml" for node in nodes}
        self.options = [*options, *(f"--view={node}={path}" for node, path in self.views.items())]
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.file = folder / f"{name}.resources.yaml"
        self.trace = folder / f"{name}.trace.jsonl"
        self.process = None

    def start(self):
        """Starts, or starts again."""
        command = [sys.executable, PROGRAM, "--listen", self.address, "--trace", self.trace, *self.options, self.file]
        self.process = LineProcess(self.name, command, self.folder / f"{self.name}.log")

    def kill(self):
        """Dies without a word to its clients."""
        if self.process is not None:
            self.process.kill()

    def write(self, resources, tombstones=(), node=None):
        """What it will have, for one node or for all that have no view of their own, when it next reads its files."""
        file = self.views[node] if node else self.file
        file.write_text(json.dumps({"resources": resources, "tombstones": list(tombstones)}, indent=1))

    def update(self, resources, tombstones=(), node=None):
        """What it has from now on."""
        self.write(resources, tombstones, node)
        self.process.ask(do="reload")

    def end_streams(self):
        """Ends every stream with an error; the address stays."""
        self.process.ask(do="end_streams")

    def pace(self, **how):
        """How it answers from now on; see the program."""
        self.process.ask(do="pace", **how)

    def streams(self):
        """The open streams that have said who they are."""
        return [stream for stream in self.process.ask(do="streams") if stream["node"] is not None]

    def subscriptions(self, type_name):
        """All names that are subscribed to of a type, over all open streams."""
        return sorted(name for stream in self.streams() for name in stream["types"].get(type_name, []))

    def is_answered(self):
        """Whether every response that it sent is acknowledged or rejected."""
        answered = {(line["stream"], line.get("nonce")) for line in self.events("request")}
        return all((line["stream"], line["nonce"]) in answered for line in self.events("response"))

    def events(self, event, **fields):
        """The lines of its trace that have these fields."""
        with open(self.trace, encoding="utf-8") as lines:
            trace = [json.loads(line) for line in lines if line.endswith("\n")]
        wanted = {"event": event, **fields}
        return [line for line in trace if wanted.items() <= line.items()]
