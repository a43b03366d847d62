"""Processes of a test, and free ports for them."""

import collections
import contextlib
import itertools
import json
import queue
import random
import socket
import subprocess
import threading

# Below the range from which kernels take the ports of outgoing connections, so that the port of a process that died
# is still free when the test starts it again.
PORTS = itertools.cycle(random.sample(range(20000, 32000), 12000))


def free_port():
    """A port nobody listens on. Each is given out once before any is given out again."""
    while True:
        port = next(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


RUNNING = set()


def kill_all():
    """Leaves nothing behind, however the suite ends."""
    for process in list(RUNNING):
        process.kill()


class Process:
    """A child with its output in a log file."""

    speaks = False

    def __init__(self, name, command, log, environment=None, pass_fds=()):
        self.name, self.log = name, log
        with open(log, "ab") as output:
            self.child = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self.speaks else output,
                stderr=output,
                env=environment,
                pass_fds=pass_fds,
            )
        RUNNING.add(self)

    def alive(self):
        """Whether it still runs."""
        return self.child.poll() is None

    def kill(self):
        """Ends it as a crash would: without a goodbye."""
        RUNNING.discard(self)
        self.child.kill()
        self.child.wait()
        with contextlib.suppress(BrokenPipeError):  # it may have died with a command unread
            self.child.stdin.close()

    def resident_bytes(self):
        """Its resident memory."""
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024


class LineProcess(Process):
    """A child that answers each line of JSON with one line of JSON."""

    speaks = True

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.answers = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        # Importing gRPC is work, and the machine may be busy.
        self.answer(within=60)

    def read(self):
        """Passes on lines, so that waiting for one can be bounded."""
        collections.deque(map(self.answers.put, self.child.stdout), maxlen=0)
        self.answers.put(b'{"error": "it ended"}')

    def answer(self, within):
        """The next line of its output."""
        try:
            answer = json.loads(self.answers.get(timeout=within))
        except queue.Empty:
            raise RuntimeError(f"{self.name} does not answer") from None
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer.get("result")

    def ask(self, within=10, **command):
        """Sends a command and waits for its result."""
        self.child.stdin.write(json.dumps(command).encode() + b"\n")
        self.child.stdin.flush()
        return self.answer(within)
