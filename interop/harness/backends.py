"""Where traffic ends: servers that say which one they are. They are not under test, so they live in this process."""

import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

WHO = "/interop.Backend/Who"


class HttpBackend:
    """Answers every GET with its tag."""

    def __init__(self, tag, port=0):
        class Handler(BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"

            def do_GET(self):
                """The tag, whatever the path."""
                body = tag.encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format, *args):
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        """Closes the port."""
        self.server.shutdown()
        self.server.server_close()


class GrpcBackend:
    """Answers one unary method with its tag; bytes in and out, no schema."""

    def __init__(self, tag, port=0):
        self.server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
        service, method = WHO.strip("/").split("/")
        handler = grpc.unary_unary_rpc_method_handler(lambda request, context: tag.encode())
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def stop(self):
        """Closes the port."""
        self.server.stop(0)
