"""A server as those that are built on go-control-plane's snapshots are: the server side of one type on one stream.

What is there of a type is a snapshot with one version. Over state of the world a request waits until that version is
another than the one it names, or a name is asked for that this stream was not sent; the response has all that was asked
for. Over delta the version of a resource is a digest of its content, of a name that was never sent and is not there
nothing is said, and only the answer to a wildcard may be empty.
"""

import hashlib

from envoy.service.discovery.v3 import discovery_pb2

from ads.catalogue import Interest
from ads.names import WILDCARD
from ads.sotw import version_of_all


class SotwSnapshots:
    """State of the world: at most one request is waiting, the newest."""

    def __init__(self, type_url, stream):
        self.type_url, self.stream = type_url, stream
        self.interest, self.waiting, self.nonce, self.sent = Interest(), None, "", set()

    def request(self, message, catalogue):
        """Takes in a request; gives the response it asks for, if any."""
        if message.response_nonce and message.response_nonce != self.nonce:
            return None  # stale
        names = message.resource_names or [WILDCARD]
        self.interest, self.waiting = Interest((name, name) for name in names), message.version_info
        return self.changed(catalogue)

    def changed(self, catalogue):
        """The response to the request that is waiting, if it is due."""
        if self.waiting is None:
            return None
        version = version_of_all(catalogue, self.type_url)
        selected = catalogue.select(self.type_url, self.interest)
        if self.waiting == version and selected.keys() <= self.sent:
            return None
        self.waiting, self.nonce, self.sent = None, self.stream.next_nonce(), set(selected)
        resources = [resource.body for resource in selected.values()]
        return discovery_pb2.DiscoveryResponse(
            type_url=self.type_url, version_info=version, nonce=self.nonce, resources=resources
        )


class DeltaSnapshots:
    """Incremental: what was sent is known by the digest of its content."""

    def __init__(self, type_url, stream):
        self.type_url, self.stream = type_url, stream
        self.interest, self.sent, self.started = Interest(), {}, False

    def request(self, message, catalogue):
        """Takes in a request; gives the response it asks for, if any."""
        first, self.started = not self.started, True
        names = list(message.resource_names_subscribe)
        if first:
            self.sent = dict(message.initial_resource_versions)
            names = names or [WILDCARD]
        self.interest.update((name, name) for name in names)
        for name in message.resource_names_unsubscribe:
            self.interest.pop(name, None)
            self.sent.pop(name, None)
        return self.changed(catalogue, first and WILDCARD in self.interest)

    def changed(self, catalogue, owed=False):
        """The response that tells what is not as it was sent, if there is any; `owed` is one that may be empty."""
        selected = catalogue.select(self.type_url, self.interest)
        now = {name: digest(resource) for name, resource in selected.items()}
        news = [name for name, version in now.items() if self.sent.get(name) != version]
        removed = [name for name in self.sent if name not in now]
        if not news and not removed and not owed:
            return None
        self.sent = now
        return discovery_pb2.DeltaDiscoveryResponse(
            type_url=self.type_url,
            system_version_info=version_of_all(catalogue, self.type_url),
            nonce=self.stream.next_nonce(),
            removed_resources=removed,
            resources=[
                discovery_pb2.Resource(name=name, version=now[name], resource=selected[name].body) for name in news
            ],
        )


def digest(resource):
    """A version that equal content has again."""
    return hashlib.sha256(resource.body.value).hexdigest()
