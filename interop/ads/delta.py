"""The server side of one type on one incremental stream."""

from envoy.service.discovery.v3 import discovery_pb2

from ads.catalogue import Interest
from ads.names import WILDCARD, canonical, collection, is_glob
from ads.types import LEGACY_WILDCARD


class DeltaSession:
    """Knows what the client has: by key, the name it was sent under and the version."""

    def __init__(self, type_url, stream):
        self.type_url, self.stream = type_url, stream
        self.interest = Interest()
        self.started = False
        self.sent = {}

    def request(self, message, catalogue):
        """Takes in a request; gives the response it asks for, if any."""
        asked = Interest((canonical(name), name) for name in message.resource_names_subscribe)
        first, self.started = not self.started, True
        if first:
            initial = message.initial_resource_versions.items()
            self.sent = {canonical(name): (name, version) for name, version in initial}
            if not asked and self.type_url in LEGACY_WILDCARD:
                asked[WILDCARD] = WILDCARD
        self.interest.update(asked)
        for name in message.resource_names_unsubscribe:
            key = canonical(name)
            asked.pop(key, None)
            if self.interest.pop(key, None) and self.interest.covers(key):
                asked[key] = name  # it may yet be in what remains subscribed, which the client cannot know
        if not first:
            self.sent = {key: known for key, known in self.sent.items() if self.interest.covers(key)}
        # On a new stream the client says what it has; later, a subscription asks for what it has once more.
        return self.response(catalogue, asked, Interest() if first else asked, first and bool(self.interest))

    def changed(self, catalogue, resend=frozenset()):
        """The response that tells of a change of the catalogue, or sends some resources again, if there is any."""
        return self.response(catalogue, Interest(), Interest((key, key) for key in resend if key in self.interest))

    def response(self, catalogue, asked, again, owed=False):
        """The response that is due, if any. `asked` are new subscriptions, each of which is answered; `again` is what
        is sent even if the client has it; `owed` is for the first request, which is answered even with nothing."""
        selected = catalogue.select(self.type_url, self.interest)
        news = {
            key: resource
            for key, resource in selected.items()
            if again.covers(key) or self.sent.get(key, ("", ""))[1] != resource.version
        }
        removed = {key: name for key, (name, _) in self.sent.items() if key not in selected}
        present = {WILDCARD, *selected, *map(collection, selected)}
        removed |= {key: name for key, name in asked.items() if key not in present}
        for name in catalogue.tombstones:
            if collection(name) in asked and canonical(name) not in selected:
                removed[canonical(name)] = name
        if not news and not removed and not owed and not any(map(is_glob, asked)):
            return None
        for key in removed:
            self.sent.pop(key, None)
        names = {key: self.interest.get(key, resource.name) for key, resource in news.items()}
        self.sent.update((key, (names[key], resource.version)) for key, resource in news.items())
        return discovery_pb2.DeltaDiscoveryResponse(
            type_url=self.type_url,
            nonce=self.stream.next_nonce(),
            removed_resources=list(removed.values()),
            resources=[
                discovery_pb2.Resource(name=names[key], version=resource.version, resource=resource.body)
                for key, resource in news.items()
            ],
        )
