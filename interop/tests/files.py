"""Files as the origin."""

import os
import re

import yaml

from harness.envoy import VARIANTS
from harness.polling import equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh


@scenario(client=VARIANTS, needs_relay=True)
def a_client_has_what_the_files_say(bed, client):
    """An edited file reaches traffic; a bad one is reported with file, line and field, and changes nothing."""
    first, second, port = bed.http_backend("first"), bed.http_backend("second"), free_port()
    mesh = envoy_mesh(client, port, backend=first)
    directory = bed.folder / "resources"
    directory.mkdir()

    def write(resources):
        draft = bed.folder / "draft"
        draft.write_text(yaml.safe_dump({"resources": resources}))
        os.replace(draft, directory / "mesh.yaml")

    write(mesh.resources())
    relay = bed.start_relay([{"name": "files", "files": str(directory), "authorities": ["authority"]}])
    envoy = bed.envoy(client, relay.port, port)
    until("requests reach the first backend", lambda: envoy.request() == "first", within=20)
    mesh.backends["backend"] = second
    write(mesh.resources())
    until("requests reach the second backend", lambda: envoy.request() == "second")

    bad = mesh.resources()
    bad[2]["lb_policy"] = "NO_SUCH_POLICY"
    write(bad)
    line = r"mesh\.yaml:\d+:\d+: resources\[2\]\.lb_policy: "
    until("the log names file, line and field", lambda: re.search(line, relay.log.read_text()))
    throughout("requests reach the second backend", lambda: envoy.request() == "second", 0.5)
    equal(relay.page("/healthz"), "ok\n", "the health page")
    mesh.backends["backend"] = first
    write(mesh.resources())
    until("requests reach the first backend again", lambda: envoy.request() == "first")
    equal(envoy.stat("cluster_manager.cds.update_rejected"), 0, "the clusters that Envoy rejected")
