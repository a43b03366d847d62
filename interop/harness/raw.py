"""Clients that speak discovery themselves and remember every response, to see what a real client does not show."""

import queue
import threading
import time

import grpc
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2

from ads.types import WRAPPED_IN_SOTW, WRAPPER

OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
]


class RawClient:
    """One stream. Responses are acknowledged as they come."""

    def __init__(self, address, node, cluster="raw", features=(), reads=True, credentials=None):
        self.node = {"id": node, "cluster": cluster, "client_features": list(features)}
        self.responses, self.error = [], None
        self.state, self.arrivals, self.errors = {}, {}, {}
        # When the last response came, by the clock of the machine.
        self.came = None
        self.outbox = queue.SimpleQueue()
        # Otherwise the path is what calls are for, which HTTP/2 does not allow.
        local = [("grpc.default_authority", "localhost")] if address.startswith("unix") else []
        if credentials is None:
            self.channel = grpc.insecure_channel(address, options=OPTIONS + local)
        else:
            self.channel = grpc.secure_channel(address, credentials, options=OPTIONS + local)
        stub = ads_pb2_grpc.AggregatedDiscoveryServiceStub(self.channel)
        self.call = self.method(stub)(iter(self.outbox.get, None), wait_for_ready=True)
        if reads:
            self.start_reading()

    def start_reading(self):
        """From now on takes in what comes."""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Takes in responses until the stream ends."""
        try:
            for response in self.call:
                self.receive(response)
        except grpc.RpcError as error:
            self.error = error

    def receive(self, response):
        """Learns from a response, then acknowledges it."""
        self.came = time.time()
        self.learn(response)
        for failed in response.resource_errors:
            self.errors[response.type_url, failed.resource_name.name] = failed.error_detail.message
        self.responses.append(response)
        self.acknowledge(response)

    def send(self, message):
        """Sends a request; the node is said once."""
        if self.node is not None:
            message.node.CopyFrom(message.node.__class__(**self.node))
            self.node = None
        self.outbox.put(message)

    def names(self, type_url):
        """The names it has of a type."""
        return set(self.state.get(type_url, {}))

    def versions(self, type_url):
        """Name to version of what it has of a type."""
        return {name: version for name, (version, _) in self.state.get(type_url, {}).items()}

    def body(self, type_url, name):
        """The payload of a resource it has."""
        return self.state[type_url][name][1]

    def store(self, type_url, name, version, body):
        """Takes in one resource, and counts how often it came."""
        self.state.setdefault(type_url, {})[name] = (version, body)
        self.arrivals[name] = self.arrivals.get(name, 0) + 1

    def stop(self):
        """Closes the stream and the connection."""
        self.call.cancel()
        self.outbox.put(None)
        self.channel.close()


class DeltaClient(RawClient):
    """Incremental. `removals` counts how often a name was said to be gone."""

    def __init__(self, *arguments, **keywords):
        self.removals = {}
        super().__init__(*arguments, **keywords)

    def method(self, stub):
        """The method it calls."""
        return stub.DeltaAggregatedResources

    def subscribe(self, type_url, *names, unsubscribe=(), initial=None):
        """Asks for more, or less."""
        self.send(
            discovery_pb2.DeltaDiscoveryRequest(
                type_url=type_url,
                resource_names_subscribe=names,
                resource_names_unsubscribe=unsubscribe,
                initial_resource_versions=initial or {},
            )
        )

    def unsubscribe(self, type_url, *names):
        """Asks for less; what it has of them it forgets."""
        for name in names:
            self.state.get(type_url, {}).pop(name, None)
        self.subscribe(type_url, unsubscribe=names)

    def learn(self, response):
        """Applies the difference."""
        for resource in response.resources:
            self.store(response.type_url, resource.name, resource.version, resource.resource.value)
        for name in response.removed_resources:
            self.state.get(response.type_url, {}).pop(name, None)
            self.removals[name] = self.removals.get(name, 0) + 1

    def acknowledge(self, response):
        """Accepts it."""
        self.send(discovery_pb2.DeltaDiscoveryRequest(type_url=response.type_url, response_nonce=response.nonce))


class SotwClient(RawClient):
    """State of the world. `full_state` are the types of which what is not named in a response is gone."""

    def __init__(self, *arguments, full_state=(), wrapped=False, **keywords):
        self.subscribed, self.full_state, self.last = {}, full_state, {}
        super().__init__(*arguments, features=[WRAPPED_IN_SOTW] if wrapped else [], **keywords)

    def method(self, stub):
        """The method it calls."""
        return stub.StreamAggregatedResources

    def subscribe(self, type_url, *names):
        """Says all names it wants of a type; what it no longer wants it forgets."""
        self.subscribed[type_url] = names
        if names and "*" not in names and not any(name.endswith("/*") for name in names):
            state = self.state.get(type_url, {})
            self.state[type_url] = {name: known for name, known in state.items() if name in names}
        self.request(type_url)

    def request(self, type_url):
        """A request with what was last accepted."""
        version, nonce = self.last.get(type_url, ("", ""))
        self.send(
            discovery_pb2.DiscoveryRequest(
                type_url=type_url,
                version_info=version,
                response_nonce=nonce,
                resource_names=self.subscribed[type_url],
            )
        )

    def learn(self, response):
        """Applies the whole, of types for which a response is that; else what it holds."""
        if response.type_url in self.full_state:
            self.state[response.type_url] = {}
        for entry in response.resources:
            if entry.type_url == WRAPPER:
                resource = discovery_pb2.Resource.FromString(entry.value)
                self.store(response.type_url, resource.name, resource.version, resource.resource.value)
            else:
                self.store(response.type_url, first_field(entry.value), response.version_info, entry.value)
        self.last[response.type_url] = (response.version_info, response.nonce)

    def acknowledge(self, response):
        """Accepts it, with the names it now wants."""
        self.request(response.type_url)


def first_field(body):
    """The string in field 1, which is the name in all of Envoy's types that are sent bare."""
    if body[0] != 0x0A or body[1] >= 0x80 and body[2] >= 0x80:
        raise ValueError("no short string in field 1")
    length, start = (body[1], 2) if body[1] < 0x80 else ((body[1] & 0x7F) | body[2] << 7, 3)
    return body[start : start + length].decode()
