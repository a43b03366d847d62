"""A connection that can be cut while both ends live, and whose bandwidth can be limited."""

import selectors
import socket
import threading
import time

# What is forwarded at a time: small beside a second of any limit used here, so that it flows and does not jump.
CHUNK, LIMITED_CHUNK = 65536, 4096


class Cable:
    """Forwards a loopback port to another one, to which it comes from the address `source`. `bits_per_second` limits what each
    connection carries, both ways together, and may be set at any time."""

    def __init__(self, to_port, source="127.0.0.1"):
        self.to_port, self.source = to_port, source
        self.bits_per_second = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.whole = True
        self.ends, self.guard = set(), threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def leads_to(self):
        """The port that the next connection goes to."""
        return self.to_port

    def accept(self):
        """Takes connections until the listener is closed; a cut cable drops them at once."""
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            with self.guard:
                if not self.whole:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self.leads_to()), source_address=(self.source, 0))
                except OSError:
                    near.close()  # as nobody listens there, nobody does here
                    continue
                self.ends |= {near, far}
            threading.Thread(target=self.forward, args=(near, far), daemon=True).start()

    def forward(self, near, far):
        """Moves bytes both ways until one end is closed."""
        other = {near: far, far: near}
        with selectors.DefaultSelector() as selector:
            for end in other:
                selector.register(end, selectors.EVENT_READ)
            try:
                while True:
                    for key, _ in selector.select():
                        data = key.fileobj.recv(LIMITED_CHUNK if self.bits_per_second else CHUNK)
                        if not data:
                            return
                        other[key.fileobj].sendall(data)
                        if limit := self.bits_per_second:
                            time.sleep(8 * len(data) / limit)
            except OSError:
                return
            finally:
                self.drop((near, far))

    def drop(self, ends):
        """Closes connections for both sides; those who forward them notice."""
        with self.guard:
            for end in ends:
                self.ends.discard(end)
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the peer was first

    def cut(self):
        """Breaks what is open and refuses what comes."""
        with self.guard:
            self.whole = False
            ends = set(self.ends)
        self.drop(ends)

    def mend(self):
        """Connections get through again."""
        with self.guard:
            self.whole = True

    def stop(self):
        """Closes the port."""
        self.listener.close()
        self.cut()
