"""Relays that are each other's origin: the stream that closes the loop is dropped, and clients do not notice."""

from ads.types import CLUSTER
from harness.bed import AUTHORITY, upstream
from harness.envoy import DELTA, SOTW
from harness.polling import check, equal, until
from harness.registry import ORIGINS, scenario
from mesh import xdstp
from setups import GRPC, serving

OTHER = "other"


@scenario(client=(DELTA, SOTW, GRPC), origin=ORIGINS, needs_relay=True, waits=True)
def two_relays_that_are_each_others_origin_end_the_loop(bed, client, origin):
    """The first asks the second for the names of one authority; all else comes to the second from the first."""
    relays = []

    def front(source):
        back = bed.cable(None)
        second = upstream(source, origin, authorities=[OTHER], port=back.port) | {"name": "second"}
        relays.append(bed.start_relay([upstream(source, origin), second], name="first"))
        first = upstream(relays[0], origin, authorities=[AUTHORITY, OTHER])
        relays.append(bed.start_relay([first], name="second"))
        back.to_port = relays[1].port
        return relays[1].port

    setup = serving(bed, client, origin, front=front)
    load = bed.load(setup.client, "first", "second")
    stream = bed.delta(relays[0].port)
    stream.subscribe(CLUSTER, xdstp(CLUSTER, "unknown", authority=OTHER))
    until("the stream has ended", lambda: stream.error)
    equal(stream.error.code().name, "UNAVAILABLE", "its status")
    check("a loop of relays: " in stream.error.details(), f"its words: {stream.error.details()}")
    equal(stream.responses, [], "the responses before its end")
    check("a loop of relays: " in relays[0].page("/config_dump"), "the first relay's page does not say so")
    check("xds_relay_downstream_loops_total 0" not in relays[1].page("/metrics"), "the second relay refused nothing")
    setup.move()
    setup.reaches("second")
    load.none_failed()
