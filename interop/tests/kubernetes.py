"""Kubernetes as the origin, and no control plane: an API server that the test scripts."""

import json

from ads.types import CLUSTER, ENDPOINTS
from harness.envoy import VARIANTS
from harness.kubernetes import Kubernetes
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import scenario
from mesh import envoy_mesh


def name_of(resource):
    """A name that an object can have."""
    name = resource.get("cluster_name") or resource.get("name")
    kind = resource.get("@type", "wrapped").rsplit(".", 1)[-1]
    return f"{kind}-{name.rsplit('/', 1)[-1]}".lower()


def apply(kubernetes, resources):
    """Clusters are in one config map, and all else is an object each."""
    clusters = [each for each in resources if each.get("@type") == CLUSTER]
    kubernetes.apply("configmaps", "clusters", data={"clusters.json": json.dumps({"resources": clusters})})
    for each in resources:
        if each not in clusters:
            kubernetes.apply("xdsresources", name_of(each), spec=each)


@scenario(client=VARIANTS, needs_relay=True)
def a_client_has_what_objects_of_kubernetes_say(bed, client):
    """Through each of two relays. A bad value changes nothing, and the API server's end does not either, for who comes then, too."""
    first, second, port = bed.http_backend("first"), bed.http_backend("second"), free_port()
    kubernetes, mesh = Kubernetes(bed), envoy_mesh(client, port, backend=first)
    one = bed.start_relay([kubernetes.origin()], name="one")
    other = bed.start_relay([kubernetes.origin()], name="other")
    apply(kubernetes, mesh.resources())
    envoy = bed.envoy(client, one.port, port)
    until("requests reach the first backend", lambda: envoy.request() == "first", within=20)

    mesh.backends["backend"] = second
    endpoints = next(resource for resource in mesh.resources() if resource.get("@type") == ENDPOINTS)
    kubernetes.apply("xdsresources", name_of(endpoints), spec=endpoints)
    until("requests reach the second backend", lambda: envoy.request() == "second")
    kubernetes.apply("xdsresources", name_of(endpoints), spec={**endpoints, "endpoints": "none"})
    key = f"xdsresource/mesh/{name_of(endpoints)}/spec: refused, and its last good value counts, with "
    for relay in (one, other):
        until("the log names the object", lambda relay=relay: key in relay.log.read_text())
    throughout("requests reach the second backend", lambda: envoy.request() == "second", 0.5)

    kubernetes.stop()
    kubernetes.replace_token("second")
    one.kill()
    envoy.kill()
    envoy = bed.envoy(client, other.port, port)
    until("who comes while the API server is away is served", lambda: envoy.request() == "second", within=20)
    mesh.backends["backend"] = first
    apply(kubernetes, mesh.resources())
    kubernetes.start()
    until("requests reach the first backend again", lambda: envoy.request() == "first", within=40)
    equal(envoy.stat("cluster_manager.cds.update_rejected"), 0, "the clusters that Envoy rejected")
    check(any("continue=" in request for request in kubernetes.requests), "a list came in pages")
