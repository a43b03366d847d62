"""One gRPC stream: its node, its sessions by type, and the order in which types are served."""

import itertools

from envoy.config.cluster.v3 import cluster_pb2

from ads.delta import DeltaSession
from ads.names import canonical
from ads.snapshots import DeltaSnapshots, SotwSnapshots
from ads.sotw import SotwSession
from ads.types import ADS_ORDER, CLUSTER, ENDPOINTS, WRAPPED_IN_SOTW, short


class Stream:
    """Turns requests and changes of the catalogue into responses."""

    def __init__(self, number, delta, views, options):
        self.number, self.delta, self.views = number, delta, views
        self.wrap, self.resend_endpoints = options.wrap, options.resend_endpoints and not options.snapshots
        kinds = (SotwSnapshots, DeltaSnapshots) if options.snapshots else (SotwSession, DeltaSession)
        self.session_kind = kinds[delta]
        self.node, self.wraps = None, False
        self.sessions = {}
        self.nonces = itertools.count(1)

    def next_nonce(self):
        """A nonce that no other response of this stream has."""
        return f"{self.number}.{next(self.nonces)}"

    def catalogue(self):
        """What this stream's node may see."""
        return self.views.of(self.node.id if self.node else "")

    def requested(self, message):
        """The responses to a request. Only the first one of a stream surely names the node."""
        if self.node is None:
            self.node = message.node
            self.wraps = self.wrap and WRAPPED_IN_SOTW in message.node.client_features
        session = self.sessions.get(message.type_url)
        if session is None:
            session = self.session_kind(message.type_url, self)
            self.sessions[message.type_url] = session
        response = session.request(message, self.catalogue())
        return [response] if response else []

    def changed(self):
        """The responses that tell of a change of the catalogue."""
        responses, resend = [], set()
        for type_url in sorted(self.sessions, key=ads_rank):
            session = self.sessions[type_url]
            again = (resend,) if self.delta and self.resend_endpoints and type_url == ENDPOINTS else ()
            response = session.changed(self.catalogue(), *again)
            if response is None:
                continue
            responses.append(response)
            if self.delta and self.resend_endpoints and type_url == CLUSTER:
                resend = endpoints_of(response)
        return responses

    def describe(self):
        """For the control channel: who is on this stream and what it is subscribed to."""
        return {
            "stream": self.number,
            "method": "delta" if self.delta else "sotw",
            "node": self.node.id if self.node else None,
            "cluster": self.node.cluster if self.node else None,
            "types": {short(url): sorted(session.interest.values()) for url, session in self.sessions.items()},
        }


def ads_rank(type_url):
    """Where a type stands in the order of a change; unknown types come last."""
    return ADS_ORDER.index(type_url) if type_url in ADS_ORDER else len(ADS_ORDER)


def endpoints_of(response):
    """The keys of the ClusterLoadAssignments that the clusters of a response refer to. Envoy keeps a changed cluster
    warming until it is sent its endpoints, and does not ask for them again."""
    keys = set()
    for resource in response.resources:
        cluster = cluster_pb2.Cluster.FromString(resource.resource.value)
        if cluster.type == cluster_pb2.Cluster.EDS:
            keys.add(canonical(cluster.eds_cluster_config.service_name or cluster.name))
    return keys
