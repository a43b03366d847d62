"""The tests, by name, and the cases each is run for."""

import itertools
from dataclasses import dataclass, field

# Origins of the matrix; without a relay the client's own protocol is the only one there is.
ORIGINS = ("delta", "sotw")
# Clients that need a Node. They take long to start, so each is run for one kind of origin.
NODE_CLIENTS = ("grpc_js_plain", "grpc_js_xdstp")

SCENARIOS = []


@dataclass(frozen=True)
class Scenario:
    """A test function with its cases. `alone` keeps other tests away while it runs: it measures time, or it needs
    fixed ports. `waits` says that it mostly waits, so that many of its kind may go beside the others. `needs_browser`
    leaves it out where there is none, and so does `needs_node`, which is told. `needs_programs` has the tool and the example of the client library there,
    `needs_plane` the example of a control plane, `needs_clocks` a relay whose clock can be wrong."""

    function: object
    cases: dict = field(default_factory=dict)
    needs_relay: bool = False
    alone: bool = False
    waits: bool = False
    needs_browser: bool = False
    needs_programs: bool = False
    needs_plane: bool = False
    needs_node: bool = False
    needs_clocks: bool = False


@dataclass(frozen=True)
class Case:
    """One run of a test."""

    name: str
    scenario: Scenario
    arguments: dict

    def run(self, bed):
        """Runs it to its end or to the first thing that is not as it should be."""
        self.scenario.function(bed, **self.arguments)

    def lacks(self, browser, node):
        """What it needs and is not there."""
        if self.scenario.needs_browser and not browser:
            return "a browser, which --browser names"
        if (self.scenario.needs_node or self.arguments.get("client") in NODE_CLIENTS) and not node:
            return "a Node with gRPC: node and npm"
        return None


def scenario(
    needs_relay=False,
    alone=False,
    waits=False,
    needs_browser=False,
    needs_programs=False,
    needs_plane=False,
    needs_node=False,
    needs_clocks=False,
    **cases,
):
    """Registers a test; it is run for every combination of the given values of its arguments."""

    def register(function):
        needs = (needs_browser, needs_programs, needs_plane, needs_node, needs_clocks)
        SCENARIOS.append(Scenario(function, cases, needs_relay, alone, waits, *needs))
        return function

    return register


def cases(direct):
    """All cases there are, with a relay or directly."""
    for entry in SCENARIOS:
        if direct and entry.needs_relay:
            continue
        axes = dict(entry.cases)
        if direct and "origin" in axes:
            axes["origin"] = ("direct",)
        for values in itertools.product(*axes.values()):
            arguments = dict(zip(axes, values, strict=True))
            by_node = arguments.get("client") in NODE_CLIENTS
            if by_node and arguments.get("origin", ORIGINS[0]) not in (ORIGINS[0], "direct"):
                continue
            labels = [f"{value}_origin" if axis == "origin" else str(value) for axis, value in arguments.items()]
            yield Case("/".join([entry.function.__name__, *labels]), entry, arguments)
