"""Dynamic parameters (TP2) through two relays: of a name, each client has the variant that is for it."""

import grpc

from ads.dialects import DRAFT, FINAL, locator_of_range
from ads.types import CLUSTER
from harness.bed import AUTHORITY
from harness.polling import equal, until
from harness.registry import scenario

CART = f"xdstp://{AUTHORITY}/{CLUSTER.partition('/')[2]}/cart"
PROD, TEST = {"env": "prod", "zone": "a"}, {"env": "test", "zone": "a"}
DIALECTS = (FINAL, DRAFT)


def chain(bed, origin, clients, origins):
    """Two relays: what clients speak, and what is spoken from there on."""
    of = {"authorities": [AUTHORITY], "dynamic_parameters": origins}
    first = {"name": "origin", "server": f"127.0.0.1:{origin.port}", **of}
    far = bed.start_relay([first], name="far", dynamic_parameters=origins)
    return bed.start_relay([{"name": "far", "server": far.address, **of}], name="near", dynamic_parameters=clients)


def contents(prod, test):
    """What the origin has for whom."""
    both = ((PROD, prod), (TEST, test))
    return {frozenset(parameters.items()): content for parameters, content in both if content is not None}


@scenario(clients=DIALECTS, origins=DIALECTS, needs_relay=True)
def each_client_has_the_variant_that_is_for_it(bed, clients, origins):
    """The origin is asked once for each of them, in its own words; who has one hears of its changes, and that it is gone."""
    origin = bed.variants_origin(origins, CLUSTER, contents("prod 1", "test 1"))
    relay = chain(bed, origin, clients, origins)
    first, other, tester = (bed.variants_client(relay.port, clients, CLUSTER, node) for node in ("a", "b", "c"))
    first.subscribe(CART, PROD)
    tester.subscribe(CART, TEST)
    until("each has its own", lambda: first.told == [(CART, "prod 1")] and tester.told == [(CART, "test 1")])
    other.subscribe(CART, PROD)
    until("so has who comes later", lambda: other.told == [(CART, "prod 1")])
    equal(sorted(origin.asked, key=repr), [(CART, PROD), (CART, TEST)], "what the origin was asked for")
    equal(origin.plain, [], "what it was asked for without parameters")

    origin.change(contents("prod 2", "test 1"))
    until("those who have it hear of its change", lambda: first.told[1:] == other.told[1:] == [(CART, "prod 2")])
    origin.change(contents("prod 2", None))
    until("who has the other hears that it is gone", lambda: tester.told[1:] == [(CART, None)])
    origin.change(contents("prod 3", "test 2"))
    until("and that it is back", lambda: tester.told[2:] == [(CART, "test 2")])
    until("the others hear of theirs", lambda: first.told[2:] == other.told[2:] == [(CART, "prod 3")])
    equal([client.astray for client in (first, other, tester)], [[]] * 3, "what is for somebody else")
    equal([client.error for client in (first, other, tester)], [None] * 3, "what streams ended with")


@scenario(needs_relay=True)
def what_the_origin_has_no_words_for_is_refused_with_the_constraint(bed):
    """A range, where the origin speaks the final form."""
    origin = bed.variants_origin(FINAL, CLUSTER, {})
    client = bed.variants_client(chain(bed, origin, DRAFT, FINAL).port, DRAFT, CLUSTER, "a")
    client.subscribe_by(locator_of_range(CART, "shard", 5))
    error = until("the stream ends", lambda: client.error)
    equal(error.code(), grpc.StatusCode.INVALID_ARGUMENT, "the status")
    equal("shard" in error.details(), True, f"the constraint in {error.details()!r}")
    equal(origin.asked, [], "what the origin was asked for")
