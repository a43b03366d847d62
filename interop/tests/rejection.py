"""What a client rejects is between the client and the relay."""

import json

from ads.types import CLUSTER, ENDPOINTS
from harness.envoy import DELTA, GLOBS, SOTW
from harness.polling import check, equal, throughout, until
from harness.registry import scenario
from mesh import cluster
from setups import envoy_serving


@scenario(client=(DELTA, SOTW, GLOBS), needs_relay=True)
def a_rejected_cluster_stays_between_envoy_and_the_relay(bed, client):
    """It is counted and not sent again, the origin is told nothing, and the next good state is used."""
    setup = envoy_serving(bed, client, "delta")
    good = setup.mesh.resources()
    bad = cluster(setup.mesh.naming(CLUSTER, "bad"), setup.mesh.naming(ENDPOINTS, "bad"))
    del bad["eds_cluster_config"]  # an EDS cluster has to have it
    setup.origin.update([*good, bad])
    until("the relay knows of a rejection", lambda: rejections(bed.relay) == 1)
    throughout("it is not sent again", lambda: rejections(bed.relay) == 1, 1.5)
    message = [kind["last_nack"] for kind in kinds(bed.relay) if kind["nacked"]][0]["message"]
    check(bad["name"] in message, f"the relay keeps what Envoy said: {message}")
    equal([request for request in setup.origin.events("request") if "error" in request], [], "what the origin heard")
    setup.reaches("first")
    setup.move()
    setup.reaches("second")


def kinds(relay):
    """What clients are subscribed to, by type, as the relay says."""
    return [kind for client in json.loads(relay.page("/config_dump"))["clients"] for kind in client["types"]]


def rejections(relay):
    """How many responses clients have rejected."""
    return sum(kind["nacked"] for kind in kinds(relay))
