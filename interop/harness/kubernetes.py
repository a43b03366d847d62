"""An API server of Kubernetes, as far as its objects are listed and watched: over TLS, for who has its token. It is not under test, so it lives
in this process."""

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from harness.certificates import Authority, Files

KINDS = {"configmaps": ("/api/v1", "ConfigMap"), "xdsresources": ("/apis/xds-relay.io/v1alpha1", "XdsResource")}
LABELS = {"xds-relay.io/resources": "true"}


class Kubernetes:
    """Objects in the namespace `mesh`."""

    def __init__(self, bed):
        self.files = Files(bed.folder, "kubernetes", Authority("cluster"), "api")
        self.token = bed.folder / "kubernetes-token"
        self.objects, self.events, self.forgotten = {}, [], 0
        self.requests = []
        self.changed, self.server, self.port = threading.Condition(), None, 0
        self.replace_token("first")
        self.start()
        bed.cleanups.append(self.stop)

    def start(self):
        """Answers, at the same port as before. What was done meanwhile it does not know: it is to be listed."""
        self.forgotten = len(self.events)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.files.of("api"))
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), handler(self))
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        """Closes the port and all connections."""
        if self.server is None:
            return
        server, self.server = self.server, None
        server.shutdown()
        server.server_close()
        with self.changed:
            self.changed.notify_all()

    def replace_token(self, token):
        """Who has another one is not let in any more."""
        new = self.token.with_suffix(".new")
        new.write_text(token)
        new.replace(self.token)

    def apply(self, plural, name, **content):
        """What `kubectl apply` does with an object that has the label."""
        with self.changed:
            what = "MODIFIED" if (plural, name) in self.objects else "ADDED"
            metadata = {"name": name, "namespace": "mesh", "labels": LABELS, "creationTimestamp": "2026-01-01T00:00:00Z"}
            metadata["resourceVersion"] = self.version(len(self.events) + 1)
            self.objects[plural, name] = {"metadata": metadata, **content}
            self.tell(plural, what, self.objects[plural, name])

    def delete(self, plural, name):
        """What `kubectl delete` does."""
        with self.changed:
            gone = self.objects.pop((plural, name))
            gone["metadata"]["resourceVersion"] = self.version(len(self.events) + 1)
            self.tell(plural, "DELETED", gone)

    def tell(self, plural, what, thing):
        """Whoever watches."""
        _, kind = KINDS[plural]
        self.events.append((plural, json.dumps({"type": what, "object": {"kind": kind, **thing}})))
        self.changed.notify_all()

    @staticmethod
    def version(events):
        """No number to who asks."""
        return f"v{events}"

    def origin(self, **more):
        """As relays are told of it."""
        at = {"server": f"https://127.0.0.1:{self.port}", "tls": {"ca": self.files.ca}, "token_file": str(self.token)}
        kubernetes = {**at, "namespaces": ["mesh"], "kinds": list(map(worded, KINDS)), **more}
        return {"name": "kube", "kubernetes": kubernetes, "authorities": ["authority"]}


def worded(plural):
    """A kind, as relays are told of it."""
    return {"configmaps": "config_maps", "xdsresources": "xds_resources"}[plural]


def handler(cluster):
    """Who answers requests to a cluster."""

    class Handler(BaseHTTPRequestHandler):
        """One connection."""

        protocol_version = "HTTP/1.1"

        def do_GET(self):
            """Lists or watches."""
            address = urlsplit(self.path)
            query = {key: value[0] for key, value in parse_qs(address.query).items()}
            cluster.requests.append(self.path)
            if self.headers["authorization"] != f"Bearer {cluster.token.read_text()}":
                return self.refuse(401, "Unauthorized")
            for plural, (api, kind) in KINDS.items():
                if address.path == f"{api}/namespaces/mesh/{plural}":
                    return self.watch(plural, kind, query) if "watch" in query else self.list(plural, kind, query)
            return self.refuse(404, "NotFound")

        def list(self, plural, kind, query):
            """A page of all objects; what it goes on with is which one comes next, as none changes meanwhile."""
            with cluster.changed:
                at = cluster.version(len(cluster.events))
                every = [value for (of, _), value in sorted(cluster.objects.items(), key=lambda each: each[0]) if of == plural]
            start = int(query.get("continue", 0))
            stop = start + min(int(query["limit"]), 2)
            metadata = {"resourceVersion": at, "continue": str(stop) if stop < len(every) else ""}
            self.answer(200, {"kind": f"{kind}List", "metadata": metadata, "items": every[start:stop]})

        def watch(self, plural, kind, query):
            """What was done since, and is done."""
            server, end = cluster.server, time.monotonic() + int(query["timeoutSeconds"])
            at = int(query["resourceVersion"].removeprefix("v"))
            if at < cluster.forgotten:
                return self.refuse(410, "Expired")
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while cluster.server is server and time.monotonic() < end:
                with cluster.changed:
                    if at == len(cluster.events) and not cluster.changed.wait(timeout=1):
                        bookmark = {"kind": kind, "metadata": {"resourceVersion": cluster.version(at)}}
                        self.chunk(json.dumps({"type": "BOOKMARK", "object": bookmark}) + "\n")
                        continue
                    lines = [line + "\n" for of, line in cluster.events[at:] if of == plural]
                    at = len(cluster.events)
                self.chunk("".join(lines))
            self.close_connection = True

        def chunk(self, text):
            """A part of an answer, if there is anything in it."""
            if text:
                self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())

        def refuse(self, status, reason):
            """As Kubernetes says it."""
            self.answer(status, {"kind": "Status", "code": status, "reason": reason, "message": reason})

        def answer(self, status, content):
            """All of it."""
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            """Nobody reads it."""

    return Handler
