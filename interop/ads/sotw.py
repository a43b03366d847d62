"""The server side of one type on one state-of-the-world stream."""

import hashlib

from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import any_pb2

from ads.catalogue import Interest
from ads.names import WILDCARD, canonical
from ads.types import FULL_STATE, LEGACY_WILDCARD


class SotwSession:
    """Holds at most one response that is not acknowledged; what changes meanwhile is looked up afterwards."""

    def __init__(self, type_url, stream):
        self.type_url, self.stream = type_url, stream
        self.interest = Interest()
        self.started = self.ever_named = self.awaiting = False
        self.nonce = ""
        self.sent = {}

    def request(self, message, catalogue):
        """Takes in a request; gives the response it asks for, if any."""
        if self.nonce and message.response_nonce != self.nonce:
            return None  # stale: the client repeats its names when it acknowledges the newer response
        first, self.started, self.awaiting = not self.started, True, False
        before = self.interest
        self.interest = Interest((canonical(name), name) for name in message.resource_names)
        self.ever_named = self.ever_named or bool(self.interest)
        if not self.ever_named and self.type_url in LEGACY_WILDCARD:
            self.interest[WILDCARD] = WILDCARD
        self.sent = {key: version for key, version in self.sent.items() if self.interest.covers(key)}
        return self.response(catalogue, self.interest.keys() - before.keys(), first)

    def changed(self, catalogue):
        """The response that tells of a change of the catalogue, if there is one to send now."""
        return None if self.awaiting else self.response(catalogue)

    def response(self, catalogue, asked=frozenset(), first=False):
        """The response that is due, if any: of a full-state type everything, of others what the client lacks."""
        selected = catalogue.select(self.type_url, self.interest)
        state = {key: resource.version for key, resource in selected.items()}
        if self.type_url in FULL_STATE:
            due = bool(self.interest) and (first or asked or state != self.sent)
        else:
            selected = {key: selected[key] for key in state if key in asked or self.sent.get(key) != state[key]}
            due = bool(selected)
        self.sent = state
        if not due:
            return None
        self.awaiting, self.nonce = True, self.stream.next_nonce()
        return discovery_pb2.DiscoveryResponse(
            type_url=self.type_url,
            version_info=version_of_all(catalogue, self.type_url),
            nonce=self.nonce,
            resources=[self.entry(key, resource) for key, resource in selected.items()],
        )

    def entry(self, key, resource):
        """A resource as it goes into a response: bare, or in the wrapper that has room for name and version."""
        if not self.stream.wraps:
            return resource.body
        wrapped = any_pb2.Any()
        name = self.interest.get(key, resource.name)
        wrapped.Pack(discovery_pb2.Resource(name=name, version=resource.version, resource=resource.body))
        return wrapped


def version_of_all(catalogue, type_url):
    """One version for a whole type: equal for equal content, also after a restart."""
    content = sorted((key, resource.version) for key, resource in catalogue.resources.get(type_url, {}).items())
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]
