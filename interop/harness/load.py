"""Traffic that has to get through, whatever happens meanwhile."""

import threading
import time

from harness.polling import check

# Between two requests of one client.
PAUSE = 0.03


class Load:
    """Sends requests from a thread of its own until it is stopped, and notes those that fail."""

    def __init__(self, client, backends):
        self.client, self.backends = client, backends
        self.sent, self.failures = 0, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

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

    def stop(self):
        """Sends no more."""
        self.over.set()
        self.thread.join(timeout=10)

    def none_failed(self):
        """Stops, and checks that every request was served."""
        self.stop()
        check(self.sent, "no request was sent")
        check(not self.failures, f"{len(self.failures)} of {self.sent} requests failed: {self.failures[:3]}")
