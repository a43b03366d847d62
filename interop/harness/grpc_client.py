"""Drives a real gRPC client, in a process of its own because its bootstrap is read once per process."""

import json
import os
import sys
from pathlib import Path

from harness.processes import LineProcess

ROOT = Path(__file__).parent.parent
C_CORE = [sys.executable, ROOT / "grpc_caller.py"]
NODE = ["node", ROOT / "grpc_js" / "caller.js"]


class GrpcClient:
    """A channel to an `xds:` target, of gRPC's C core or of gRPC for Node."""

    def __init__(self, folder, name, xds_ports, node, cluster, authority, target, tls=None, program=C_CORE):
        self.name, self.folder, self.target = name, folder, target
        self.bootstrap = bootstrap(xds_ports, node, cluster, authority, tls)
        self.program, self.process = program, None

    def start(self):
        """Starts it; nothing is asked for before the first call."""
        environment = os.environ | {"GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(self.bootstrap)}
        log = self.folder / f"{self.name}.log"
        self.process = LineProcess(self.name, [*self.program, self.target], log, environment=environment)

    def request(self):
        """One call through it: the backend's tag."""
        return self.process.ask(do="call")

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()


def bootstrap(xds_ports, node, cluster, authority, tls=None):
    """A bootstrap with these servers, the first of which is to be used if it can be; with an authority, every target
    becomes an `xdstp:` name of it; with `tls` they are spoken to so, with these files (gRFC A65)."""
    credentials = {"type": "tls", "config": tls} if tls else {"type": "insecure"}
    servers = [
        {
            "server_uri": f"127.0.0.1:{port}",
            "channel_creds": [credentials],
            "server_features": ["xds_v3"],
        }
        for port in xds_ports
    ]
    # gRPC for Node wants a locality.
    document = {"xds_servers": servers, "node": {"id": node, "cluster": cluster, "locality": {}}}
    if authority:
        template = f"xdstp://{authority}/envoy.config.listener.v3.Listener/%s"
        document["authorities"] = {authority: {"xds_servers": servers}}
        document["client_default_listener_resource_name_template"] = template
    return document
