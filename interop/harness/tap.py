"""What a client is sent, byte for byte: a server of gRPC that passes on streams as they are and keeps what comes back."""

from concurrent import futures

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from ads.types import WRAPPER

STREAMS = 16


class Tap:
    """Passes on all calls to a port; `received` is what came, by type and name, newest last."""

    def __init__(self, to_port):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{to_port}", options=[("grpc.use_local_subchannel_pool", 1)])
        self.server = grpc.server(futures.ThreadPoolExecutor(STREAMS), options=[("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers((self,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.received = {}

    def service(self, details):
        """How gRPC asks for the handler of a call."""

        def forward(requests, context):
            call = self.channel.stream_stream(details.method)(requests)
            context.add_callback(call.cancel)
            try:
                for response in call:
                    self.keep(details.method, response)
                    yield response
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(forward)

    def keep(self, method, response):
        """Takes a response apart."""
        if "Delta" in method:
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(response)
            resources = response.resources
        else:
            response = discovery_pb2.DiscoveryResponse.FromString(response)
            resources = [discovery_pb2.Resource.FromString(entry.value) for entry in response.resources]
            if any(entry.type_url != WRAPPER for entry in response.resources):
                raise ValueError("a bare resource has no version of its own")
        for resource in resources:
            came = self.received.setdefault((response.type_url, resource.name), [])
            came.append((resource.version, resource.resource.SerializeToString(deterministic=True)))

    def newest(self):
        """The version and the bytes of each resource that came, as they were last."""
        return {what: came[-1] for what, came in list(self.received.items())}

    def stop(self):
        """Closes both ends."""
        self.server.stop(0)
        self.channel.close()
