"""A client that begins requests and does not end them: HTTP/2 by hand, because no library lets one do that."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS = 1, 4
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
# What HTTP/2 lets anybody send before it is told that there is room for more.
LARGEST_FRAME = 16384


class UnfinishedRequest:
    """One stream on a connection of its own, with so many bytes of a message that is said to be far longer."""

    def __init__(self, port, length):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        headers = {":method": "POST", ":scheme": "http", ":path": METHOD, ":authority": f"127.0.0.1:{port}"}
        headers |= {"content-type": "application/grpc", "te": "trailers"}
        block = b"".join(b"\0" + text(name) + text(value) for name, value in headers.items())
        message = struct.pack(">BI", 0, 100 * length) + b"\0" * (length - 5)
        pieces = [message[at : at + LARGEST_FRAME] for at in range(0, length, LARGEST_FRAME)]
        frames = [frame(SETTINGS, 0, 0, b""), frame(HEADERS, END_HEADERS, 1, block)]
        self.socket.sendall(PREFACE + b"".join([*frames, *(frame(DATA, 0, 1, piece) for piece in pieces)]))
        self.received = self.socket.makefile("rb")

    def wait_for_end(self):
        """Reads until the stream is over; the time for each frame is bounded."""
        while True:
            head = self.received.read(9)
            if len(head) < 9:
                return
            length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], head[5:]
            self.received.read(length)
            if stream == b"\0\0\0\1" and (kind == RESET or kind in (DATA, HEADERS) and flags & END_STREAM):
                return

    def stop(self):
        """Closes the connection."""
        self.socket.close()


def frame(kind, flags, stream, payload):
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def text(string):
    """A string of HPACK, as it is."""
    encoded = string.encode()
    return bytes([len(encoded)]) + encoded
