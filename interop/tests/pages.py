"""The relay's pages in a browser: on narrow and wide screens, light and dark, without script, by keyboard."""

import json
import os
from urllib.parse import quote

import yaml
from envoy.service.discovery.v3 import discovery_pb2
from google.rpc import status_pb2

from ads.types import CLUSTER, ENDPOINTS, LISTENER, ROUTE, SECRET
from harness.bed import dialed, upstream
from harness.polling import check, equal, until
from harness.processes import free_port
from harness.raw import DeltaClient
from harness.registry import scenario
from mesh import cluster, endpoints, listener, route, xdstp

SCREENS = ((400, 800), (1280, 900))
SCHEMES = ("light", "dark")
WORDS = "Proto constraint validation failed: field max_requests_per_connection is unknown in this version of Envoy"
HOSTILE = "<script>document.title = 'taken'</script>"
RULES = """
fragments:
- rules:
  - {match: {request_node_match: {cluster_match: {exact_match: edge}}}, result: {string_fragment: edge}}
  - {match: {any_match: true}, result: {request_node_fragment: {cluster_action: {exact: true}}}}
"""
# WCAG's contrast of every text with what is behind it, where it is less than 4.5.
PALE = """(() => {
  const rgba = color => color.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(of => of / 255)
    .map(of => of <= 0.03928 ? of / 12.92 : ((of + 0.055) / 1.055) ** 2.4)
    .reduce((sum, of, at) => sum + of * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = of => {
    for (; of; of = of.parentElement) {
      const color = rgba(getComputedStyle(of).backgroundColor);
      if (color[3] !== 0) return color;
    }
    return [255, 255, 255];
  };
  const pale = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, of = text.parentElement;
    if (!text.data.trim() || !of.checkVisibility()) continue;
    const [one, other] = [light(rgba(getComputedStyle(of).color)), light(behind(of))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) pale.push(`${text.data.trim()}: ${contrast.toFixed(2)}`);
  }
  return pale;
})()"""
FOCUSED = """(() => {
  const of = document.activeElement;
  return of === document.body ? null : [...document.querySelectorAll(STOPS)].indexOf(of);
})()"""
STOPS = "'a[href], button, input:not([type=hidden]), select, summary'"
SEEN = f"[...document.querySelectorAll({STOPS})].filter(of => of.checkVisibility()).length"


class Rejecting(DeltaClient):
    """Rejects clusters."""

    def acknowledge(self, response):
        """Says why not."""
        if response.type_url != CLUSTER:
            super().acknowledge(response)
            return
        error = status_pb2.Status(code=3, message=WORDS)
        self.send(
            discovery_pb2.DeltaDiscoveryRequest(
                type_url=response.type_url, response_nonce=response.nonce, error_detail=error
            )
        )


class Silent(DeltaClient):
    """Takes what comes and says nothing."""

    def acknowledge(self, response):
        """Does not."""


@scenario(needs_relay=True, needs_browser=True)
def its_pages_are_seen_without_script_on_any_screen(bed):
    """Nothing is wider than the screen, pale, or out of the keyboard's reach, and the browser has nothing to complain of."""
    relay = relay_with_clients(bed)
    browser = bed.browser()
    bed.pictures.mkdir(exist_ok=True)
    for name, path in pages(relay).items():
        for width, height in SCREENS:
            for scheme in SCHEMES:
                browser.screen(width, height, scheme)
                browser.visit(f"http://127.0.0.1:{relay.admin}{path}")
                browser.picture(bed.pictures / f"{name}-{width}-{scheme}.png")
                where = f"{path} at {width}, {scheme}"
                check(browser.evaluate("document.title") != "taken", f"a script ran on {where}")
                widest = browser.evaluate("document.documentElement.scrollWidth")
                check(widest <= width, f"{where} is {widest} wide")
                equal(browser.evaluate(PALE), [], f"what is pale on {where}")
        reaches_all(browser, path)
    complaints = [words for words in browser.complaints if "404 (Not Found)" not in words or "/style" in words]
    equal(complaints, [], "what the browser complains of, but for pages that are not there")


def relay_with_clients(bed):
    """A relay with a client in every state, an origin that is away, a secret, many clusters, and a release on its way."""
    names = [f"service-{number}" for number in range(120)]
    secret = {"@type": SECRET, "name": "token", "generic_secret": {"secret": {"inline_string": "sesame"}}}
    origin = bed.origin(
        [
            *(cluster(name, name) for name in names),
            *(endpoints(name, 80) for name in names),
            listener("front", 8080, "routes"),
            route("routes", [("/", names[0])]),
            cluster(xdstp(CLUSTER, "a"), "a"),
            secret,
        ]
    )
    away = {"name": "away", "server": f"127.0.0.1:{free_port()}", "authorities": ["away"]}
    rules = bed.folder / "rules.yaml"
    rules.write_text(RULES)
    directory = bed.folder / "released"
    directory.mkdir()
    files = {"name": "files", "files": str(directory), "authorities": ["files"]}
    write(bed, directory, "a", "gone")
    rollout = [{"scope": "xdstp://files", "settle": "200ms", "stages": [{"percent": 1, "hold": "1h"}]}]
    releasing = {"rollout": rollout, "state": {"path": "state"}, "orders": "none"}
    relay = bed.start_relay([upstream(origin), away, files], aggregation=str(rules), unknown="wait", **releasing)
    until("what files have is stable", lambda: released(relay).get("stable"))
    write(bed, directory, "a", "b", "c")
    until("what is new is on its way", lambda: released(relay).get("candidate"))
    silent = bed.stopped(Silent(dialed(relay.port), "payments-7d9c5b6f4-x2x8q", cluster="payments"))
    silent.subscribe(CLUSTER, *names[:3])
    rejecting = bed.stopped(Rejecting(dialed(relay.port), "checkout-5f7b9-abcde", cluster="edge"))
    rejecting.subscribe(CLUSTER)
    rejecting.subscribe(LISTENER)
    synced = bed.delta(relay.port, node=f"web-1.{'very-' * 12}long.example.com", cluster="edge")
    synced.subscribe(CLUSTER)
    synced.subscribe(ENDPOINTS, *names)
    synced.subscribe(LISTENER)
    synced.subscribe(ROUTE, "routes")
    synced.subscribe(SECRET, "token")
    synced.subscribe(CLUSTER, xdstp(CLUSTER, "a"))
    waiting = bed.delta(relay.port, node=HOSTILE, cluster="mesh")
    waiting.subscribe(CLUSTER, xdstp(CLUSTER, "a", authority="away"))
    expected = {"all": 4, "synced": 1, "waiting": 1, "rejected": 1, "silent": 1}
    until("there is a client in every state", lambda: equal(counts(relay), expected, "they are") is None, within=40)
    until("the origin that is away is down", lambda: asked(relay, "status")["origins"][1]["state"] == "down")
    return relay


def write(bed, directory, *names):
    """Clusters of these names are in files, all at once."""
    draft = bed.folder / "draft"
    resources = [cluster(xdstp(CLUSTER, name, authority="files"), name) for name in names]
    draft.write_text(yaml.safe_dump({"resources": resources}))
    os.replace(draft, directory / "clusters.yaml")


def released(relay):
    """How the releases are."""
    [scope] = asked(relay, "releases")["scopes"]
    return scope


def counts(relay):
    """How many clients are in which state."""
    return asked(relay, "status")["clients"]


def pages(relay):
    """A path for each kind of page, by a name for its picture."""
    clients = {row["node"]: row["id"] for row in asked(relay, "clients")["clients"]}
    rejecting, hostile = clients["checkout-5f7b9-abcde"], clients[HOSTILE]
    synced = next(client for node, client in clients.items() if node.startswith("web-1."))
    return {
        "overview": "/",
        "clients": "/clients",
        "clients-rejected": "/clients?state=REJECTED",
        "client": f"/clients/{synced}",
        "client-explained": f"/clients/{rejecting}?{of(CLUSTER, 'service-7')}",
        "client-waiting": f"/clients/{hostile}?{of(CLUSTER, xdstp(CLUSTER, 'a', authority='away'))}",
        "resources": "/resources",
        "resource": f"/resource?{of(CLUSTER, 'service-7')}",
        "resource-secret": f"/resource?{of(SECRET, 'token')}",
        "origins": "/origins",
        "releases": "/releases",
        "releases-diff": "/releases/diff",
        "audit": "/audit",
        "none": "/nothing",
        "gone": "/clients/99",
    }


def of(type_url, name):
    """A query for one name."""
    return f"type={quote(type_url, safe='')}&name={quote(name, safe='')}"


def reaches_all(browser, path):
    """The key goes from the link over the frame to each that there is, in their order, and back out."""
    browser.visit(browser.evaluate("location.href"))
    expected = min(browser.evaluate(SEEN), 60)
    reached = []
    for _ in range(expected):
        browser.press("Tab")
        reached.append(browser.evaluate(FOCUSED.replace("STOPS", STOPS)))
    check(None not in reached, f"{path}: the key goes nowhere: {reached}")
    equal(reached, sorted(set(reached)), f"{path}: the order of what the key reaches")
    equal(reached[:1], [0], f"{path}: what the key reaches first")


def asked(relay, path):
    """What the relay's API says."""
    return json.loads(relay.page(f"/api/v1/{path}"))
