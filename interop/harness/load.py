"""Traffic that has to get through, whatever happens meanwhile: there is some before a test goes on, and after its end."""

import threading
import time

from harness.polling import check, until

# Between two requests of one client.
PAUSE = 0.03
# Requests before a test goes on: then there is traffic.
AT_FIRST = 5


class Load:
    """Sends requests from a thread of its own until it is stopped, and notes those that fail."""

    def __init__(self, client, backends):
        self.client, self.backends = client, backends
        self.sent, self.failures = 0, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.sends(AT_FIRST)

    def run(self):
        """One request after the other."""
        while not self.over.wait(PAUSE):
            started = time.monotonic()
            try:
                answer = self.client.request()
            except Exception as error:
                answer = repr(error)
            self.sent += 1
            if answer not in self.backends:
                self.failures.append((round(started, 2), answer))

    def sends(self, more, within=10):
        """Waits until so many more requests were served or have failed."""
        enough = self.sent + more
        until(f"{more} more requests are sent", lambda: self.sent >= enough, within)

    def stop(self):
        """Sends no more."""
        self.over.set()
        self.thread.join(timeout=10)

    def none_failed(self):
        """Sends a request that begins now, stops, and checks that every one was served."""
        # The first may have begun before.
        self.sends(2)
        self.stop()
        check(not self.failures, f"{len(self.failures)} of {self.sent} requests failed: {self.failures[:3]}")
