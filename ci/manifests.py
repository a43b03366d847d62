"""Reads rendered manifests as Kubernetes does, and then as somebody who looks whether they fit. See ci/manifests."""

import re
import sys
from collections import Counter

import kubernetes_validate
import yaml

# The oldest that has all that is in them, and the newest that there are schemas of.
VERSIONS = ["1.31", "1.37"]
# Who applies them makes these before.
SECRETS = {"xds-relay-tls", "xds-relay-admin", "xds-relay-etcd"}
# Services that are not of these manifests, by the labels of their pods.
OTHERS = {"control-plane": {"app.kubernetes.io/name": "control-plane"}, "etcd": {"app.kubernetes.io/name": "etcd"}}
# Who is at the other end of a connection, as policies name them. Whoever is none of these has no business with a relay.
PEERS = {
    "clients": {
        "namespaceSelector": {"matchLabels": {"xds-relay/clients": "true"}},
        "podSelector": {"matchLabels": {"xds-relay/client": "true"}},
    },
    "monitoring": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},
    "names": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    },
    "edge": {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "xds-relay", "xds-relay/tier": "edge"}}},
    "regional": {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "xds-relay", "xds-relay/tier": "regional"}}},
} | {name: {"podSelector": {"matchLabels": labels}} for name, labels in OTHERS.items()}
# Who may connect to relays, and whom these may connect to, by the name of the policy.
CLEAR = {"xds-relay": ["clients 18000", "to control-plane 18000", "to names 53"]}
REPLICAS = {"xds-relay": [*CLEAR["xds-relay"], "monitoring 18001", "to etcd 2379"]}
TREE = {
    "xds-relay-edge": ["clients 18000", "monitoring 18001", "to regional 18000", "to names 53"],
    "xds-relay-regional": ["edge 18000", "monitoring 18001", "to control-plane 18000", "to names 53"],
}
# What each file has to have, no less and no more: how many of which kind, and what its policies let by.
RELAY = {"ServiceAccount": 1, "Service": 1, "Deployment": 1, "NetworkPolicy": 1, "ConfigMap": 1}
SECURED = RELAY | {"PodMonitor": 1, "PodDisruptionBudget": 1}
THERE = {
    "base.yaml": (RELAY, CLEAR),
    "single.yaml": (RELAY | {"PersistentVolumeClaim": 1}, CLEAR),
    "replicas.yaml": (SECURED | {"ConfigMap": 2, "HorizontalPodAutoscaler": 1}, REPLICAS),
    "tree.yaml": ({kind: 2 for kind in SECURED} | {"HorizontalPodAutoscaler": 1}, TREE),
    "reader.yaml": ({"Role": 1, "RoleBinding": 1}, {}),
    "xds-resources.yaml": ({"CustomResourceDefinition": 1}, {}),
}
ZONES = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
# `limits.streams` of a relay that says nothing of it.
STREAMS = 50_000
# Of kinds that Kubernetes has no schemas for: all the fields that there may be, as far as these manifests go.
POD_MONITOR = {
    "selector": {"matchLabels": None},
    "podMetricsEndpoints": {
        "port": None, "path": None, "scheme": None,
        "authorization": {"credentials": {"name": None, "key": None}},
        "tlsConfig": {"ca": {"secret": {"name": None, "key": None}}, "serverName": None},
    },
}


def known(value, fields, place):
    for each in value if isinstance(value, list) else [value]:
        for key in each if fields else []:
            assert key in fields, f"{place}: no field {key}"
            known(each[key], fields[key], f"{place}.{key}")


def by_schema(document):
    if document["kind"] == "PodMonitor":
        assert document["apiVersion"] == "monitoring.coreos.com/v1"
        return known(document["spec"], POD_MONITOR, "PodMonitor.spec")
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)


def seconds(text):
    units = {"s": 1, "m": 60, "h": 3600}
    parts = re.findall(r"(\d+)([smh])", text)
    assert "".join(map("".join, parts)) == text.replace(" ", ""), text
    return sum(int(count) * units[unit] for count, unit in parts)


def port_of(address):
    return int(address.rsplit(":", 1)[1])


def files(value):
    """All that a relay.yaml says of files."""
    if isinstance(value, dict):
        return [file for each in value.values() for file in files(each)]
    if isinstance(value, list):
        return [file for each in value for file in files(each)]
    return [value] if isinstance(value, str) and value.startswith("/") else []


def chosen(selector, labels):
    return all(labels.get(key) == value for key, value in selector["matchLabels"].items())


def lets(policy, way, labels, port):
    """Whether a policy lets pods of this namespace with these labels, on this port: `from` them, or `to` them."""
    def is_one(peer):
        return "namespaceSelector" not in peer and chosen(peer["podSelector"], labels)
    rules = policy[{"from": "ingress", "to": "egress"}[way]]
    return any(any(map(is_one, rule[way])) and port in [each["port"] for each in rule["ports"]] for rule in rules)


def let_by(policy):
    """All that a policy lets by, by names; of a peer that has none all that is said of it."""
    def name(peer):
        return next((name for name, known in PEERS.items() if known == peer), repr(peer))

    def ports(rule):
        return sorted({port["port"] for port in rule.get("ports", [{"port": "any"}])})
    assert policy["policyTypes"] == ["Ingress", "Egress"], "what is not let by is cut off, both ways"
    ways = [(rule, "", "from") for rule in policy["ingress"]] + [(rule, "to ", "to") for rule in policy["egress"]]
    return sorted(f"{to}{name(peer)} {port}" for rule, to, way in ways for peer in rule.get(way, ["anybody"]) for port in ports(rule))


def scales(spec, relay):
    """An autoscaler by streams, with room on the others for those of a relay that goes while there are fewest."""
    least, most = spec["minReplicas"], spec["maxReplicas"]
    assert 3 <= least < most, f"{least} to {most}"
    [metric] = spec["metrics"]
    of = metric["pods"]
    assert of["metric"] == {"name": "xds_relay_downstream_streams"} and of["target"]["type"] == "AverageValue", of
    streams, average = relay.get("limits", {}).get("streams", STREAMS), int(of["target"]["averageValue"])
    assert streams / 10 <= average and average * least / (least - 1) <= streams, f"{average} of {streams} streams"
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 600, "clients are moved for a lull"


def one(documents, kind, labels=None, selector=lambda spec: spec["selector"]):
    found = [each for each in documents if each["kind"] == kind]
    if labels is not None:
        found = [each for each in found if chosen(selector(each["spec"]), labels)]
    assert len(found) == 1, f"{len(found)} {kind} for {labels}"
    return found[0]["spec"]


def fits(file, documents):
    kinds, policies = THERE[file]
    there = Counter(each["kind"] for each in documents)
    assert there == kinds, f"{file} has {dict(there)}, and not {kinds}"
    lets_by = {each["metadata"]["name"]: let_by(each["spec"]) for each in documents if each["kind"] == "NetworkPolicy"}
    assert lets_by == {name: sorted(by) for name, by in policies.items()}, f"{file} lets by {lets_by}"

    def policy_of(labels):
        return one(documents, "NetworkPolicy", labels, lambda spec: spec["podSelector"])

    names = [(each["kind"], each["metadata"]["name"]) for each in documents]
    assert len(set(names)) == len(names), names
    deployments = [each for each in documents if each["kind"] == "Deployment"]
    for scaled in (each["spec"] for each in documents if each["kind"] == "HorizontalPodAutoscaler"):
        target = [each for each in deployments if each["metadata"]["name"] == scaled["scaleTargetRef"]["name"]]
        assert len(target) == 1 and "replicas" not in target[0]["spec"], "the autoscaler says how many there are"
        scales(scaled, relay_of(documents, target[0]["spec"]["template"]["spec"]))
    for deployment in deployments:
        name, spec = deployment["metadata"]["name"], deployment["spec"]
        labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
        assert spec["selector"]["matchLabels"] == labels, name
        service = one(documents, "Service", labels, lambda spec: {"matchLabels": spec["selector"]})
        policy = policy_of(labels)
        assert policy["podSelector"] == {"matchLabels": labels}, name
        if "PodDisruptionBudget" in kinds:
            assert one(documents, "PodDisruptionBudget", labels)["maxUnavailable"] == 1, name
            spread = pod["topologySpreadConstraints"]
            assert [each["topologyKey"] for each in spread] == ZONES, name
            assert all(each["labelSelector"]["matchLabels"] == labels for each in spread), name

        # What Kubernetes calls restricted.
        [container] = pod["containers"]
        own, shared = container["securityContext"], pod["securityContext"]
        assert own["capabilities"] == {"drop": ["ALL"]} and not own["allowPrivilegeEscalation"], name
        assert shared["runAsNonRoot"] and shared["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert own["readOnlyRootFilesystem"] and not pod["automountServiceAccountToken"], name

        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert all(port["targetPort"] in ports for port in service["ports"]), name
        for probe in (container["readinessProbe"], container["livenessProbe"]):
            [action] = [probe[how] for how in ("grpc", "httpGet", "tcpSocket") if how in probe]
            assert action["port"] in ports or action["port"] in ports.values(), f"{name}: {probe}"
        assert pod["serviceAccountName"] in [each for kind, each in names if kind == "ServiceAccount"]

        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: volumes.pop(mount["name"]) for mount in container["volumeMounts"]}
        assert not volumes, f"{name}: mounted nowhere: {volumes}"
        for volume in mounts.values():
            if "secret" in volume:
                assert volume["secret"]["secretName"] in SECRETS, volume
        claims = {volume["persistentVolumeClaim"]["claimName"] for volume in mounts.values() if "persistentVolumeClaim" in volume}
        assert claims == {each for kind, each in names if kind == "PersistentVolumeClaim"}, f"{name}: {claims}"
        if claims:
            assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}, "a state is one relay's at a time"

        relay = relay_of(documents, pod)
        for file in files(relay):
            assert any(f"{file}/".startswith(f"{path}/") for path in mounts), f"{name}: {file} is mounted nowhere"
        if relay.get("ready_when") == "last_known_good" and not claims:
            assert relay["state"].get("last_known_good") == "shared", f"{name}: one that is new knows nothing, and is not ready"
        assert pod["terminationGracePeriodSeconds"] > seconds(relay["drain_delay"]) + seconds(relay["drain"]) + 1, name
        assert relay["listen"] == f"0.0.0.0:{ports['grpc-xds']}", name
        assert ("appProtocol" in service["ports"][0]) == ("tls" not in relay), "clear text, or not"
        reached = isinstance(relay["admin"], dict)
        assert reached == ("admin" in ports), f"{name}: who reaches its admin pages?"
        if reached:
            assert relay["admin"]["address"] == f"0.0.0.0:{ports['admin']}", name
            monitor = one(documents, "PodMonitor", labels)
            assert all(each["port"] in ports for each in monitor["podMetricsEndpoints"]), name
            rules = [rule for rule in policy["ingress"] if rule["ports"][0]["port"] == ports["admin"]]
            assert rules, f"{name}: nobody may scrape it"

        # Whom it asks, it may ask; and who of these is a relay lets it.
        asked = [origin["server"] for origin in relay["origins"] if "server" in origin] + relay["state"].get("etcd", {}).get("endpoints", [])
        for address in asked:
            host, port = re.sub("^https://", "", address).rsplit(":", 1)[0].split(".")[-1], port_of(address)
            of_these = [each["spec"] for each in documents if each["kind"] == "Service" and each["metadata"]["name"] == host]
            theirs = of_these[0]["selector"] if of_these else OTHERS[host]
            assert lets(policy, "to", theirs, port), f"{name} may not ask {address}"
            if of_these:
                assert lets(policy_of(theirs), "from", labels, port), f"{address} does not let {name}"


def relay_of(documents, pod):
    """The relay.yaml of a pod."""
    [container] = pod["containers"]
    [mount] = [mount["name"] for mount in container["volumeMounts"] if mount["mountPath"] == "/etc/xds-relay"]
    [config] = [volume["configMap"]["name"] for volume in pod["volumes"] if volume["name"] == mount]
    [text] = [each["data"]["relay.yaml"] for each in documents if each["kind"] == "ConfigMap" and each["metadata"]["name"] == config]
    return yaml.safe_load(text)


for path in sys.argv[1:]:
    with open(path) as rendered:
        documents = list(yaml.safe_load_all(rendered))
    for document in documents:
        by_schema(document)
    file = path.rsplit("/", 1)[1]
    fits(file, documents)
    print(f"{file}: {len(documents)} good")
