"""Programs that are control planes: what the crate's example needs its few lines for."""

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
