"""A client and an origin that speak of variants (TP2), in either of its dialects. Both do what a test says, and remember what they were told."""

import itertools
import queue
import threading
from concurrent import futures

import grpc

from ads.dialects import DRAFT, is_for, locator, named, read_locator, variant, variant_name
from ads.wire import all_of, field, text_of
from harness.raw import OPTIONS

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
STREAMS = 32


class VariantsOrigin:
    """Has a content for each set of parameters, under whatever name; `asked` are all locators that it ever got, and `plain` all names
    without parameters."""

    def __init__(self, dialect, type_url, contents):
        self.name, self.dialect, self.type_url = "origin", dialect, type_url
        self.contents = contents
        self.asked, self.plain = [], []
        self.queues, self.nonces = [], itertools.count(1)
        handler = grpc.stream_stream_rpc_method_handler(self.serve)
        service, method = METHOD[1:].split("/")
        self.server = grpc.server(futures.ThreadPoolExecutor(STREAMS), options=[("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method: handler})])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def change(self, contents):
        """What it has from now on."""
        self.contents = contents
        for waiting in list(self.queues):
            waiting.put(b"")

    def serve(self, requests, _context):
        """One stream: what is asked for, and each change of it."""
        inbox, wanted, sent = queue.SimpleQueue(), {}, {}
        self.queues.append(inbox)
        threading.Thread(target=self.read, args=(requests, inbox), daemon=True).start()
        try:
            while (request := inbox.get()) is not None:
                self.plain += [name.decode() for name in all_of(request, 3)]
                for message in all_of(request, 8):
                    name, parameters = read_locator(self.dialect, message)
                    self.asked.append((name, parameters))
                    wanted[name, frozenset(parameters.items())] = parameters
                for message in all_of(request, 9):
                    name, parameters = read_locator(self.dialect, message)
                    wanted.pop((name, frozenset(parameters.items())), None)
                yield from self.news(wanted, sent)
        finally:
            self.queues.remove(inbox)

    def read(self, requests, inbox):
        """Queues what comes."""
        try:
            for request in requests:
                inbox.put(request)
        except grpc.RpcError:
            pass
        inbox.put(None)

    def news(self, wanted, sent):
        """The response that tells what is new of what is wanted, if anything is."""
        changed, removed = b"", b""
        for key, parameters in wanted.items():
            name, of = key
            content = self.contents.get(of)
            if key in sent and sent[key] == content:
                continue
            sent[key] = content
            if content is not None:
                body = field(1, self.type_url) + field(2, field(1, name) + field(28, content))
                named = variant(self.dialect, name, parameters)
                changed += field(2, field(1, content) + field(2, body) + named)
            elif self.dialect == DRAFT:
                removed += field(6, name)
            else:
                removed += field(8, variant_name(name, parameters))
        if changed or removed:
            yield changed + removed + field(4, self.type_url) + field(5, str(next(self.nonces)))

    def stop(self):
        """Ends every stream."""
        self.server.stop(0)


class VariantsClient:
    """One stream that asks for variants of one type. `told` is, in order, all it was told: a name, and the content, which is none
    where that is gone. `astray` is what is for nobody who sends what it asked with."""

    def __init__(self, address, dialect, type_url, node):
        self.dialect, self.type_url = dialect, type_url
        self.node = field(1, field(1, node))
        self.asked, self.told, self.astray, self.error = [], [], [], None
        self.outbox = queue.SimpleQueue()
        self.channel = grpc.insecure_channel(address, options=OPTIONS)
        self.call = self.channel.stream_stream(METHOD)(iter(self.outbox.get, None), wait_for_ready=True)
        threading.Thread(target=self.read, daemon=True).start()

    def subscribe(self, name, parameters):
        """Asks for a variant more."""
        self.asked.append(parameters)
        self.send(field(8, locator(self.dialect, name, parameters)))

    def subscribe_by(self, message):
        """The same by a locator as it is."""
        self.send(field(8, message))

    def send(self, rest):
        """A request; the node is said once."""
        node, self.node = self.node, b""
        self.outbox.put(node + field(2, self.type_url) + rest)

    def read(self):
        """Takes in responses, and accepts them, until the stream ends."""
        try:
            for response in self.call:
                for resource in all_of(response, 2):
                    name, [body] = named(self.dialect, resource), all_of(resource, 2)
                    self.told.append((name, text_of(all_of(body, 2)[0], 28)))
                    if not any(is_for(self.dialect, resource, parameters) for parameters in self.asked):
                        self.astray.append(name)
                self.told += [(name.decode(), None) for name in all_of(response, 6)]
                self.told += [(text_of(name, 1), None) for name in all_of(response, 8)]
                self.send(field(6, text_of(response, 5)))
        except grpc.RpcError as error:
            self.error = error

    def stop(self):
        """Closes the stream and the connection."""
        self.call.cancel()
        self.outbox.put(None)
        self.channel.close()
