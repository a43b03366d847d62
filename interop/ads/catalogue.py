"""What an origin has: resources read from files in Envoy's own form."""

import base64
import hashlib
import json
from dataclasses import dataclass, field

import yaml
from google.protobuf import any_pb2, json_format, symbol_database

from ads.names import WILDCARD, canonical, collection
from ads.types import PREFIX, WRAPPER


@dataclass(frozen=True)
class Resource:
    """One resource under its name. Its version is a digest of its content unless the file says otherwise."""

    name: str
    version: str
    body: any_pb2.Any


@dataclass
class Catalogue:
    """All resources by type and key, and the names that are known to be gone."""

    resources: dict = field(default_factory=dict)
    tombstones: list = field(default_factory=list)

    def select(self, type_url, interest):
        """The resources an interest covers, by key."""
        of_type = self.resources.get(type_url, {})
        return {key: resource for key, resource in of_type.items() if interest.covers(key)}


class Interest(dict):
    """What a client wants of one type: names, globs and the wildcard by key, each in the client's spelling. What the
    wildcard covers is the origin's choice: all names, or all but `xdstp:` names."""

    wildcard_is_all = False

    def covers(self, key):
        """Whether the resource under this key is wanted."""
        return key in self or collection(key) in self or self.wildcard_is_all and WILDCARD in self


def read(path):
    """Reads `resources: [{"@type": ...}]`, plain or inside a discovery `Resource` with its own name and version,
    and `tombstones: [name]`, which is this origin's own key."""
    with open(path, encoding="utf-8") as file:
        document = yaml.load(file, Loader=yaml.CSafeLoader) or {}
    catalogue = Catalogue(tombstones=document.get("tombstones") or [])
    for item in document.get("resources") or []:
        resource = parse(item)
        catalogue.resources.setdefault(resource.body.type_url, {})[canonical(resource.name)] = resource
    return catalogue


def parse(item):
    """One entry of a file."""
    body = item["resource"] if item["@type"] == WRAPPER else item
    name = item.get("name") or item.get("cluster_name")
    if not name:
        raise ValueError(f"a resource without a name: {item}")
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return Resource(name, str(item.get("version") or digest), pack(body))


def pack(body):
    """The Any for a JSON body. Of a type that nobody has a schema for, `value` is the payload in base64."""
    type_url = body["@type"]
    try:
        symbol_database.Default().pool.FindMessageTypeByName(type_url.removeprefix(PREFIX))
    except KeyError:
        return any_pb2.Any(type_url=type_url, value=base64.b64decode(body["value"]))
    return json_format.ParseDict(body, any_pb2.Any())
