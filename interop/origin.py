"""An xDS origin for the tests: discovery, aggregated or by type, incremental and state-of-the-world, from resource files.

    origin.py --listen HOST:PORT --trace FILE [--view NODE=FILE]... [--wrap] [--no-resend-endpoints]
              [--wildcard-covers-all] [--snapshots] [--per-type] [--tls CERTIFICATE KEY CLIENT_CA] FILE

FILE holds `resources: [{"@type": ...}]`. A node that a view is given for sees that view's file and nothing else. The
process is controlled by JSON objects on its standard input, one a line, each answered by one line:

    {"do": "reload"}       read the files again and tell the clients what changed
    {"do": "end_streams"}  end every open stream with UNAVAILABLE
    {"do": "streams"}      the open streams: node, method, subscriptions by type
    {"do": "pace", ...}    how it answers from now on, each left out is as at the start:
                             "late": S       seconds before the first response of each stream
                             "piece": N      at most so many resources in an incremental response
                             "between": S    seconds between two such pieces
                             "silent": true  takes requests and says nothing
                             "refuse": true  ends every stream at once, as a balancer does that has nobody behind it

It takes load reports, too. It says {"ready": true} first and leaves when its input ends.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import grpc
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2
from envoy.service.load_stats.v3 import lrs_pb2, lrs_pb2_grpc

from ads.catalogue import Interest, read
from ads.stream import Stream
from ads.trace import Trace

END = object()
# How often it wants to be told of loads, in milliseconds.
REPORTED_EVERY = 200
# The services that envoyproxy/xds-relay asked, and what their methods call the resources.
BY_TYPE = {
    "envoy.service.listener.v3.ListenerDiscoveryService": "Listeners",
    "envoy.service.route.v3.RouteDiscoveryService": "Routes",
    "envoy.service.cluster.v3.ClusterDiscoveryService": "Clusters",
    "envoy.service.endpoint.v3.EndpointDiscoveryService": "Endpoints",
}


class Views:
    """The catalogue of each node: its own if it has one, else the common one."""

    def __init__(self, common, by_node):
        self.common_file, self.files = common, by_node
        self.reload()

    def reload(self):
        """Reads all files; on an error nothing is changed."""
        common = read(self.common_file)
        by_node = {node: read(path) for node, path in self.files.items()}
        self.common, self.by_node = common, by_node

    def of(self, node):
        """What a node may see."""
        return self.by_node.get(node, self.common)


@dataclass
class Pace:
    """How it answers."""

    late: float = 0
    piece: int = 0
    between: float = 0
    silent: bool = False
    refuse: bool = False

    def pieces(self, response):
        """What a response goes out as: additions first, then what is gone. State of the world has no pieces."""
        if not self.piece or not hasattr(response, "removed_resources") or len(response.resources) <= self.piece:
            return [response]
        parts = []
        for start in range(0, len(response.resources), self.piece):
            part = response.__class__(type_url=response.type_url, nonce=f"{response.nonce}.{start}")
            part.resources.extend(response.resources[start : start + self.piece])
            parts.append(part)
        parts[-1].removed_resources.extend(response.removed_resources)
        return parts


class Origin(ads_pb2_grpc.AggregatedDiscoveryServiceServicer):
    """The service: every stream is told of changes through its queue."""

    def __init__(self, options, views, trace):
        self.options, self.views, self.trace = options, views, trace
        self.pace = Pace()
        self.numbers = itertools.count(1)
        self.streams = {}

    async def StreamAggregatedResources(self, requests, context):
        """State of the world."""
        async for response in self.serve(requests, context, delta=False):
            yield response

    async def DeltaAggregatedResources(self, requests, context):
        """Incremental."""
        async for response in self.serve(requests, context, delta=True):
            yield response

    async def serve(self, requests, context, delta):
        """One stream from its first request to its end."""
        stream = Stream(next(self.numbers), delta, self.views, self.options)
        queue = asyncio.Queue()
        self.streams[stream] = queue
        self.trace.event("open", stream=stream.number, method="delta" if delta else "sotw")
        waited = False
        reader = asyncio.create_task(self.read(stream, requests, queue))
        try:
            if self.pace.refuse:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the test ends every stream")
            while (responses := await queue.get()) is not END:
                if responses is None:
                    await context.abort(grpc.StatusCode.UNAVAILABLE, "the test ends this stream")
                if not waited:
                    await asyncio.sleep(self.pace.late)
                    waited = True
                if self.pace.silent:
                    continue
                for response in responses():
                    for number, piece in enumerate(self.pace.pieces(response)):
                        await asyncio.sleep(self.pace.between if number else 0)
                        self.trace.response(stream, piece)
                        yield piece
        finally:
            reader.cancel()
            del self.streams[stream]
            self.trace.event("close", stream=stream.number)

    async def read(self, stream, requests, queue):
        """Queues what answers each request, to be worked out in turn with the changes."""
        try:
            async for message in requests:
                self.trace.request(stream, message)
                queue.put_nowait(lambda message=message: stream.requested(message))
        finally:
            queue.put_nowait(END)

    def control(self, command):
        """Carries out one command; its result is the answer."""
        match command["do"]:
            case "reload":
                self.views.reload()
                self.trace.event("reload")
                for stream, queue in self.streams.items():
                    queue.put_nowait(stream.changed)
            case "end_streams":
                for queue in self.streams.values():
                    queue.put_nowait(None)
            case "pace":
                self.pace = Pace(**{key: value for key, value in command.items() if key != "do"})
            case "streams":
                return [stream.describe() for stream in self.streams]
            case other:
                raise ValueError(f"no such command: {other}")
        return None


class Loads(lrs_pb2_grpc.LoadReportingServiceServicer):
    """Who is told of loads: wants to hear of all clusters, and writes down what comes."""

    def __init__(self, trace):
        self.trace = trace

    async def StreamLoadStats(self, requests, context):
        """One client's reports."""
        node = None
        async for report in requests:
            if node is None:
                node = report.node.id
                answer = lrs_pb2.LoadStatsResponse(send_all_clusters=True)
                answer.load_reporting_interval.FromMilliseconds(REPORTED_EVERY)
                yield answer
            served = {
                stats.cluster_name: sum(place.total_successful_requests for place in stats.upstream_locality_stats)
                for stats in report.cluster_stats
            }
            self.trace.event("load", node=node, served=served)


def by_type(origin):
    """A method for each type, and none for all."""

    def handler(method, request, response):
        return grpc.stream_stream_rpc_method_handler(method, request.FromString, response.SerializeToString)

    sotw = handler(
        origin.StreamAggregatedResources, discovery_pb2.DiscoveryRequest, discovery_pb2.DiscoveryResponse
    )
    delta = handler(
        origin.DeltaAggregatedResources, discovery_pb2.DeltaDiscoveryRequest, discovery_pb2.DeltaDiscoveryResponse
    )
    return [
        grpc.method_handlers_generic_handler(service, {f"Stream{name}": sotw, f"Delta{name}": delta})
        for service, name in BY_TYPE.items()
    ]


async def main(options):
    """Serves until standard input ends."""
    trace = Trace(options.trace)
    Interest.wildcard_is_all = options.wildcard_covers_all
    origin = Origin(options, Views(options.file, dict(view.split("=", 1) for view in options.view)), trace)
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)])
    if options.per_type:
        server.add_generic_rpc_handlers(by_type(origin))
    else:
        ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(origin, server)
    lrs_pb2_grpc.add_LoadReportingServiceServicer_to_server(Loads(trace), server)
    if options.tls:
        certificate, key, ca = (Path(file).read_bytes() for file in options.tls)
        # Whoever shows no certificate that is vouched for is not spoken to.
        credentials = grpc.ssl_server_credentials([(key, certificate)], ca, require_client_auth=True)
        server.add_secure_port(options.listen, credentials)
    else:
        server.add_insecure_port(options.listen)
    await server.start()
    trace.event("start", listen=options.listen)
    say({"ready": True})
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        try:
            say({"result": origin.control(json.loads(line))})
        except Exception as error:
            say({"error": repr(error)})
    trace.event("stop")
    os._exit(0)  # the clients see a broken connection, as from a process that dies


def say(answer):
    """One line to whoever controls this process."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--trace", required=True)
    parser.add_argument("--view", action="append", default=[], metavar="NODE=FILE")
    parser.add_argument(
        "--wrap", action="store_true", help="in SotW, send resources in their wrapper if the client may"
    )
    parser.add_argument(
        "--wildcard-covers-all", action="store_true", help="`xdstp:` names are in the answer to the wildcard too"
    )
    parser.add_argument("--snapshots", action="store_true", help="answer as go-control-plane's snapshot cache does")
    parser.add_argument("--per-type", action="store_true", help="a method for each type, and none for all")
    parser.add_argument("--tls", nargs=3, metavar=("CERTIFICATE", "KEY", "CLIENT_CA"), help="certificates on both sides")
    parser.add_argument("--no-resend-endpoints", dest="resend_endpoints", action="store_false")
    parser.add_argument("file")
    asyncio.run(main(parser.parse_args()))
