"""An origin has two servers: the second is asked for what the first does not answer for, and the first counts again once it does."""

import json

from harness.bed import AUTHORITY
from harness.envoy import DELTA, GLOBS, SOTW, VARIANTS, nothing_was_removed
from harness.polling import equal, throughout, until
from harness.registry import ORIGINS, scenario
from setups import GRPC, GRPC_JS, GRPC_JS_XDSTP, GRPC_XDSTP, another, serving

# How long the relay may take to find out that who was away is there again: it backs off.
RETURN = 40.0


def two_servers(bed, protocol, servers):
    """What puts a relay before an origin that has a second server with the same resources: `servers` then holds both."""

    def front(first):
        second = bed.origin(json.loads(first.file.read_text())["resources"], name="second")
        servers.extend([first, second])
        source = {"name": "origin", "servers": [f"127.0.0.1:{server.port}" for server in servers]}
        return bed.start_relay([source | {"protocol": protocol, "authorities": [AUTHORITY]}]).port

    return front


def first_is_dead(bed, client, origin):
    """A setup whose first server is dead, with a client that came after that, and both servers; the second has another backend."""
    servers = []
    setup = serving(bed, client, origin, front=two_servers(bed, origin, servers))
    setup.client.kill()
    setup.origin.kill()
    servers[1].update(setup.resources_for(setup.second))
    # Where there are groups it is of one of its own, so that the relay has nothing for it.
    setup.client = another(bed, client, setup.xds_port, setup.mesh and setup.mesh.port)
    return setup, servers


@scenario(client=(DELTA, SOTW, GRPC, GRPC_JS), origin=ORIGINS, needs_relay=True, waits=True)
def a_client_that_comes_while_the_first_server_is_dead_is_served_by_the_second(bed, client, origin):
    """The first takes over when it is back: no request fails, nothing is removed."""
    setup, servers = first_is_dead(bed, client, origin)
    setup.reaches("second", within=RETURN)
    load = bed.load(setup.client, "first", "second")
    setup.origin.start()
    setup.reaches("first", within=RETURN)
    until("the first server counts again", lambda: in_use(bed.relay) == {servers[0].address}, within=RETURN)
    load.none_failed()
    if client in VARIANTS:
        nothing_was_removed(setup.client)


@scenario(client=(GLOBS, GRPC_XDSTP, GRPC_JS_XDSTP), origin=ORIGINS, needs_relay=True, waits=True)
def while_all_that_is_wanted_is_known_nobody_turns_to_the_second_server(bed, client, origin):
    """The first is dead, and who comes is served what it had said."""
    setup, servers = first_is_dead(bed, client, origin)
    setup.reaches("first", within=RETURN)
    throughout("requests reach the first backend", lambda: setup.client.request() == "first", 5.0)
    equal(servers[1].events("request"), [], "what the second server was asked")


def in_use(relay):
    """The servers that feed anything."""
    lines = [line for line in relay.page("/metrics").splitlines() if line.startswith("xds_relay_origin_in_use{")]
    return {line.split('server="')[1].split('"')[0] for line in lines if not line.endswith(" 0")}
