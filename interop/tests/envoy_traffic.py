"""Envoy serves with the configuration that it was sent, and with what it becomes."""

import time

from ads.types import CLUSTER
from harness.bed import upstream
from harness.envoy import DELTA, GLOBS, VARIANTS
from harness.polling import check, equal, throughout, until
from harness.registry import ORIGINS, scenario
from mesh import envoy_mesh

# Envoy waits 15 s for what it is not told; far from that, and near to what "at once" means.
PROMPTLY = 1.0


def serving(bed, client, origin, options=()):
    """An Envoy that serves, with its mesh and the origin."""
    envoy, mesh, source = prepared(bed, client, options)
    start(envoy, bed.front(source, origin), bed, client)
    until("Envoy proxies a request", lambda: envoy_of(bed).request() == "first", within=20)
    return envoy_of(bed), mesh, source
