"""Who shares what: one upstream stream for all who may share, and none for who may not."""

from ads.types import CLUSTER, ENDPOINTS
from harness.bed import AUTHORITY, upstream
from harness.envoy import DELTA, GLOBS, SOTW
from harness.polling import check, equal, throughout, until
from harness.processes import free_port
from harness.registry import ORIGINS, scenario
from mesh import EnvoyMesh, endpoints, static_cluster, xdstp


@scenario(client=(DELTA, SOTW), origin=ORIGINS)
def two_nodes_get_what_the_origin_has_for_each(bed, client, origin):
    """An origin that answers by node, and two Envoys: neither is ever shown anything of the other's."""
    tags = {"left": "first", "right": "second"}
    meshes = {
        node: EnvoyMesh(
            free_port(),
            {"backend": bed.http_backend(tag)},
            lambda _type, name, node=node: f"{name}-of-{node}",
        )
        for node, tag in tags.items()
    }
    source = bed.origin([], views={node: mesh.resources() for node, mesh in meshes.items()})
    port = bed.front(source, origin)
    envoys = {node: bed.envoy(client, port, meshes[node].port, node=node) for node in tags}
    streams = {node: bed.delta(port, node=node) for node in tags}
    for node, tag in tags.items():
        streams[node].subscribe(CLUSTER)
        until(f"{node} reaches its backend", lambda node=node, tag=tag: envoys[node].request() == tag, within=20)
        equal(envoys[node].clusters(), {f"backend-of-{node}"}, f"the clusters of {node}")

    # A change for one is nothing to the other.
    meshes["left"].backends["more"] = meshes["left"].backends["backend"]
    source.update(meshes["left"].resources(), node="left")
    until("left has its new cluster", lambda: "more-of-left" in envoys["left"].clusters())
    until("so has its stream", lambda: "more-of-left" in streams["left"].names(CLUSTER))
    equal(envoys["right"].clusters(), {"backend-of-right"}, "the clusters of right")
    equal(set(streams["right"].arrivals), {"backend-of-right"}, "what right was ever sent")
    equal(set(streams["left"].arrivals), {"backend-of-left", "more-of-left"}, "what left was ever sent")


@scenario(origin=ORIGINS, needs_relay=True)
def nodes_of_one_group_share_a_stream(bed, origin):
    """With `share_by: [cluster]` three nodes of two clusters are two streams upstream, each with its own answer."""
    of_cluster = {"red": ["red-1", "red-2"], "blue": ["blue-1"]}
    views = {node: [static_cluster(f"of-{cluster}")] for cluster, nodes in of_cluster.items() for node in nodes}
    source = bed.origin([], views=views)
    port = bed.front(source, origin, share_by=["cluster"])
    clients = {
        node: (cluster, bed.delta(port, node=node, cluster=cluster))
        for cluster, nodes in of_cluster.items()
        for node in nodes
    }
    for node, (cluster, client) in clients.items():
        client.subscribe(CLUSTER)
        until(f"{node} has its cluster", lambda c=client, k=cluster: c.names(CLUSTER) == {f"of-{k}"})
    equal(sorted(stream["cluster"] for stream in source.streams()), ["blue", "red"], "the clusters of the streams")
    for node, (cluster, client) in clients.items():
        equal(client.arrivals, {f"of-{cluster}": 1}, f"what {node} was ever sent")


@scenario(origin=ORIGINS, needs_relay=True)
def every_node_is_a_group_of_its_own_unless_configured(bed, origin):
    """Nodes that agree in everything but their id are two streams upstream for old-style names."""
    source = bed.origin([], views={"one": [static_cluster("of-one")], "two": [static_cluster("of-two")]})
    port = bed.front(source, origin)
    for node in ("one", "two"):
        client = bed.delta(port, node=node)
        client.subscribe(CLUSTER)
        until(f"{node} has its cluster", lambda c=client, n=node: c.names(CLUSTER) == {f"of-{n}"})
    equal(sorted(stream["node"] for stream in source.streams()), ["one", "two"], "the nodes of the streams")


@scenario(origin=ORIGINS, needs_relay=True)
def a_name_is_unsubscribed_when_its_last_subscriber_has_left(bed, origin):
    """The first subscriber subscribes upstream, the second costs the origin nothing, and `linger` after the last one
    has left the origin is rid of the name."""
    name, stays = xdstp(ENDPOINTS, "shared"), xdstp(ENDPOINTS, "stays")
    source = bed.origin([endpoints(name, 1), endpoints(stays, 1)])
    port = bed.front(source, origin, linger="1s")
    first, second, other = (bed.delta(port, node=node) for node in ("first", "second", "other"))
    other.subscribe(ENDPOINTS, stays)
    first.subscribe(ENDPOINTS, name)
    until("the first has it", lambda: name in first.names(ENDPOINTS))
    until("the other has its own", lambda: stays in other.names(ENDPOINTS))
    until("the relay has acknowledged both", source.is_answered)
    requests = len(source.events("request"))
    second.subscribe(ENDPOINTS, name)
    until("the second has it", lambda: name in second.names(ENDPOINTS))
    equal(source.subscriptions("ClusterLoadAssignment"), sorted([name, stays]), "what the origin sees")
    first.unsubscribe(ENDPOINTS, name)
    throughout(
        "the name stays subscribed while one wants it",
        lambda: name in source.subscriptions("ClusterLoadAssignment"),
        2.0,
    )
    equal(len(source.events("request")), requests, "the number of requests that the origin saw")
    second.stop()
    until("the name is unsubscribed", lambda: source.subscriptions("ClusterLoadAssignment") == [stays])


@scenario(needs_relay=True)
def who_returns_within_the_linger_time_is_not_noticed(bed):
    """The last subscriber leaves and comes back: no request upstream, and the resource is there at once."""
    name = xdstp(ENDPOINTS, "shared")
    source = bed.origin([endpoints(name, 1)])
    port = bed.front(source, linger="60s")
    first = bed.delta(port, node="first")
    first.subscribe(ENDPOINTS, name)
    until("the first has it", lambda: name in first.names(ENDPOINTS))
    until("the relay has acknowledged it", source.is_answered)
    first.stop()
    second = bed.delta(port, node="second")
    second.subscribe(ENDPOINTS, name)
    until("the second has it", lambda: name in second.names(ENDPOINTS))
    equal(len(source.events("request")), 2, "the number of requests that the origin saw")


@scenario(origin=ORIGINS, needs_relay=True)
def two_authorities_come_from_two_origins(bed, origin):
    """Envoy takes listeners, routes and clusters from one origin and endpoints from another, over one stream."""
    other = "other-authority"
    mesh = EnvoyMesh(free_port(), {"backend": bed.http_backend("first")}, xdstp)
    mesh.endpoints_naming = lambda type_url, name: xdstp(type_url, name, authority=other)
    assignment = mesh.resources()[-1]
    # Each origin also has what is not its business, and leads astray.
    astray = endpoints(assignment["cluster_name"], bed.http_backend("astray"))
    one = bed.origin([*mesh.resources()[:-1], astray], name="one")
    two = bed.origin([assignment, static_cluster(xdstp(CLUSTER, "astray"))], name="two")
    relay = bed.start_relay([upstream(one, origin), upstream(two, origin, authorities=[other])])
    envoy = bed.envoy(GLOBS, relay.port, mesh.port)
    until("Envoy proxies a request", lambda: envoy.request() == "first", within=20)
    equal(envoy.clusters(), {xdstp(CLUSTER, "backend")}, "the clusters of Envoy")
    equal(one.subscriptions("ClusterLoadAssignment"), [], "the endpoints that the first origin was asked for")
    equal(two.subscriptions("ClusterLoadAssignment"), [assignment["cluster_name"]], "and the second")
    equal(two.subscriptions("Cluster"), [], "the clusters that the second origin was asked for")


@scenario(needs_relay=True)
def what_no_origin_lists_comes_from_the_default_origin(bed):
    """Old-style names, and authorities that nobody lists."""
    strange = xdstp(CLUSTER, "strange", authority="nobody-lists-this")
    one = bed.origin([static_cluster(xdstp(CLUSTER, "listed"))], name="one")
    two = bed.origin([static_cluster("old-style"), static_cluster(strange)], name="two")
    relay = bed.start_relay([upstream(one), upstream(two, authorities=[])], default_origin="two")
    client = bed.delta(relay.port)
    wanted = {"old-style", strange, xdstp(CLUSTER, "listed")}
    client.subscribe(CLUSTER, *wanted)
    until("the client has all three", lambda: client.names(CLUSTER) == wanted)
    equal(one.subscriptions("Cluster"), [xdstp(CLUSTER, "listed", AUTHORITY)], "what the first origin was asked for")
