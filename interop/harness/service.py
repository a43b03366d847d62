"""What stands before replicas: new connections go to those that are ready, and open ones stay where they are."""

import threading

from harness.cable import Cable
from harness.http import get

# How long it takes to notice that a replica is ready, or is not any more.
PROBE = 0.25


class Service(Cable):
    """A port that leads to one relay after the other."""

    def __init__(self, relays):
        self.relays, self.ready, self.turn = relays, list(relays), 0
        self.over = threading.Event()
        super().__init__(None)
        threading.Thread(target=self.probe, daemon=True).start()

    def probe(self):
        """Looks at all of them again and again."""
        while not self.over.wait(PROBE):
            self.ready = [relay for relay in self.relays if is_ready(relay)]

    def leads_to(self):
        """The next that was ready when it was looked at."""
        ready = self.ready
        if not ready:
            raise ConnectionRefusedError("no relay is ready")
        self.turn += 1
        return ready[self.turn % len(ready)].port

    def stop(self):
        """Closes the port."""
        self.over.set()
        super().stop()


def is_ready(relay):
    """Whether it says so."""
    try:
        return get(relay.admin, "/readyz", timeout=1).status == 200
    except OSError:
        return False
