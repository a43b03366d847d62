"""The origin's trace: one JSON object a line for all it is asked and all it says."""

import json
import time

from ads.types import short


class Trace:
    """Appends to a file, so that one trace tells of an origin before and after a restart."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1, encoding="utf-8")

    def event(self, event, **fields):
        """One line; fields without content are left out."""
        fields = {key: value for key, value in fields.items() if value not in (None, "", [], {})}
        self.file.write(json.dumps({"time": round(time.time(), 3), "event": event, **fields}) + "\n")

    def request(self, stream, message):
        """A request as it came."""
        if stream.delta:
            fields = {
                "subscribe": list(message.resource_names_subscribe),
                "unsubscribe": list(message.resource_names_unsubscribe),
                "initial_resource_versions": dict(message.initial_resource_versions),
            }
        else:
            fields = {"names": list(message.resource_names), "version": message.version_info}
        node = (message.node if message.HasField("node") else stream.node) or message.node
        self.event(
            "request",
            stream=stream.number,
            node=node.id,
            type=short(message.type_url),
            nonce=message.response_nonce,
            error=message.error_detail.message,
            **fields,
        )

    def response(self, stream, message):
        """A response as it goes."""
        if stream.delta:
            fields = {
                "resources": {resource.name: resource.version for resource in message.resources},
                "removed": list(message.removed_resources),
            }
        else:
            fields = {"version": message.version_info, "count": len(message.resources)}
        self.event("response", stream=stream.number, type=short(message.type_url), nonce=message.nonce, **fields)
