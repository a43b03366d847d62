"""Clients serve with the configuration that they were sent, and with what it becomes."""

import time

from ads.types import CLUSTER
from harness.envoy import DELTA, GLOBS, VARIANTS
from harness.polling import check, equal, until
from harness.registry import ORIGINS, scenario
from mesh import plain, xdstp
from setups import WITH_NODE, envoy_serving, grpc_serving, serving

# Envoy waits 15 s for what it is not told of. This is far from that.
PROMPTLY = 1.0


@scenario(client=VARIANTS, origin=ORIGINS)
def envoy_proxies_a_request(bed, client, origin):
    """Listener, route, cluster and endpoints arrive, none is rejected, and a request gets through."""
    envoy = envoy_serving(bed, client, origin).client
    until("Envoy is live", envoy.live)
    for stat in ("listener_manager.lds.update_rejected", "cluster_manager.cds.update_rejected"):
        equal(envoy.stat(stat), 0, stat)


@scenario(names=("plain", "xdstp"), source=("ads", "self"), origin=ORIGINS)
def grpc_reaches_its_backend(bed, names, source, origin):
    """With old-style names and with a federated bootstrap; references may say "where this came from" for "ADS"."""
    grpc_serving(bed, origin, {"plain": plain, "xdstp": xdstp}[names], source)


@scenario(client=WITH_NODE, origin=ORIGINS)
def an_endpoint_change_reaches_traffic(bed, client, origin):
    """Only the ClusterLoadAssignment changes."""
    setup = serving(bed, client, origin)
    setup.move()
    setup.reaches("second")


@scenario(client=(DELTA, GLOBS), origin=ORIGINS, alone=True)
def a_changed_cluster_is_in_use_within_a_second(bed, client, origin):
    """Envoy keeps a changed cluster warming for 15 s unless it is sent the endpoints again, unasked."""
    check_changed_cluster(bed, client, origin)


@scenario(client=(DELTA, GLOBS), needs_relay=True, alone=True)
def a_changed_cluster_is_in_use_although_the_origin_does_not_resend_endpoints(bed, client):
    """What an origin does not know about Envoy, a relay makes up for."""
    check_changed_cluster(bed, client, "delta", ["--no-resend-endpoints"])


def check_changed_cluster(bed, client, origin, options=()):
    """Changes the cluster's metadata, which each response shows."""
    setup = envoy_serving(bed, client, origin, options)
    equal(setup.client.cluster_revision(), "1", "the revision of the cluster")
    setup.mesh.revision = "2"
    started = time.monotonic()
    setup.origin.update(setup.mesh.resources())
    until("the changed cluster is in use", lambda: setup.client.cluster_revision() == "2", within=20)
    took = time.monotonic() - started
    check(took < PROMPTLY, f"the changed cluster was in use after {took:.1f} s")


@scenario(client=VARIANTS, origin=ORIGINS)
def an_added_and_a_removed_cluster_come_and_go(bed, client, origin):
    """A second cluster gets traffic of its own, and then is no more; the first one serves all along."""
    setup = envoy_serving(bed, client, origin)
    mesh, envoy = setup.mesh, setup.client
    name = mesh.naming(CLUSTER, "extra")
    mesh.backends["extra"] = setup.second
    mesh.routes.insert(0, ("/extra", "extra"))
    setup.origin.update(mesh.resources())
    until("the added cluster gets traffic", lambda: envoy.request("/extra") == "second")
    check(name in envoy.clusters(), "the added cluster is not in Envoy's dump")
    # The cluster that it goes to is not known until the route is: make before break is for an origin to do.
    mesh.routes.pop(0)
    setup.origin.update(mesh.resources())
    until("the route is gone", lambda: envoy.request("/extra") == "first")
    del mesh.backends["extra"]
    setup.origin.update(mesh.resources())
    until("the removed cluster is gone", lambda: name not in envoy.clusters())
    equal(envoy.request(), "first", "the backend that serves")


@scenario(alone=True)
def envoy_is_live_promptly_on_empty_globs(bed):
    """An empty collection is answered with its own name as removed; without that Envoy waits 15 s, twice."""
    xds_port = bed.front(bed.origin([]))
    envoy = bed.envoy(GLOBS, xds_port)
    started = time.monotonic()
    until("Envoy is live", envoy.live, within=40)
    took = time.monotonic() - started
    check(took < PROMPTLY, f"Envoy was live after {took:.1f} s")
    for stat in ("listener_manager.lds.init_fetch_timeout", "cluster_manager.cds.init_fetch_timeout"):
        equal(envoy.stat(stat), 0, stat)
