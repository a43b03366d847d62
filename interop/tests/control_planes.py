"""Programs that are control planes: what the crate's example needs its few lines for."""

from ads.types import CLUSTER
from harness.envoy import DELTA, SOTW
from harness.polling import equal, until
from harness.registry import scenario


@scenario(client=(DELTA, SOTW), needs_plane=True)
def a_control_plane_of_a_few_lines_is_enough_for_envoy(bed, client):
    """It is served, and when the control plane is asked to leave its stream is ended and the process with it."""
    plane = bed.control_plane()
    envoy = bed.envoy(client, plane.port)
    until("Envoy has the cluster", lambda: envoy.clusters() == {"cart"}, within=20)
    equal(envoy.stat("cluster_manager.cds.update_rejected"), 0, "rejected updates")
    plane.interrupt()
    until("the control plane is over", lambda: not plane.process.alive())
    equal(plane.process.child.returncode, 0, "its exit status")


@scenario(client=(DELTA, SOTW), needs_plane=True)
def a_control_plane_of_groups_gives_each_envoy_what_is_its_group_s(bed, client):
    """Two groups have a name in common, with another content; who names no group is refused."""
    plane = bed.control_plane("node_groups")
    edge, mesh = (bed.envoy(client, plane.port, cluster=cluster) for cluster in ("edge", "mesh"))
    until("one has the clusters of its group", lambda: edge.clusters() == {"cart", "shop"}, within=20)
    until("so has the other", lambda: mesh.clusters() == {"cart", "till"}, within=20)
    for envoy in (edge, mesh):
        equal(envoy.stat("cluster_manager.cds.update_rejected"), 0, "rejected updates")
    nobody = bed.delta(plane.port, cluster="")
    nobody.subscribe(CLUSTER, "*")
    until("who names no group is told so", lambda: "name your cluster" in str(nobody.error))
