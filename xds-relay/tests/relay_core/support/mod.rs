//! A world of origins, relays and clients, driven by hand until nobody has anything to say.

mod chain;
mod client;
mod ended;
#[path = "../../support/flag.rs"]
mod flag;
mod link;
#[path = "../../support/logged.rs"]
mod logged;
mod origin;
mod relays;
pub(crate) mod replicas;
mod wire;

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use prost::Message;
use xds_relay::Config;
use xds_relay::config::ClientRule;
pub(crate) use xds_transport::Protocol;
use xds_transport::wire::Node;
use xdstp_cache::{ResourceError, Selector};

pub(crate) use chain::Chain;
pub(crate) use client::Client;
pub(crate) use ended::Ended;
pub(crate) use flag::Flag;
use link::Link;
pub(crate) use logged::logged;
pub(crate) use origin::{Origin, body_of, cluster, frame};
pub(crate) use relays::Relay;
pub(crate) use wire::Wire;

pub(crate) const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

pub(crate) const DELTA: Protocol = Protocol::Delta;
pub(crate) const SOTW: Protocol = Protocol::Sotw;

/// The default of the configuration.
pub(crate) const LINGER: Duration = Duration::from_secs(30);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) origins: Vec<Origin>,
    pub(crate) relays: Vec<Relay>,
    pub(crate) clients: Vec<Client>,
    /// Who hears every response on its way, if somebody does.
    pub(crate) between: Option<Between>,
    /// Relays that come from now on notice that one above them ends a stream, as where nothing can be said on it.
    pub(crate) relays_end_streams: bool,
    began: Instant,
    /// How far the other clock was set ahead.
    pub(crate) wall_is_ahead: Duration,
}

/// Told of every response on its way, it says what arrives in its place.
pub(crate) type Between = Box<dyn FnMut(Instant, Hearer, Bytes) -> Bytes>;

/// Whom a response is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hearer {
    Relay(usize),
    Client(usize),
}

/// What a relay is connected to.
#[derive(Clone, Copy)]
pub(crate) enum Feeder {
    Origin(usize),
    Relay(usize),
}

impl World {
    /// One relay before one origin that speaks `protocol`.
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self::of(&[protocol], &[&[]], "")
    }

    /// No relay, no origin.
    pub(crate) fn empty() -> Self {
        let now = Instant::now();
        let (origins, relays, clients) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            now,
            origins,
            relays,
            clients,
            between: None,
            relays_end_streams: false,
            began: now,
            wall_is_ahead: Duration::ZERO,
        }
    }

    /// One relay before origins that have authorities, the first being the default; with more configuration.
    pub(crate) fn of(protocols: &[Protocol], authorities: &[&[&str]], more: &str) -> Self {
        let mut world = Self::empty();
        let mut text = String::from("origins:\n");
        for (at, (protocol, authorities)) in protocols.iter().zip(authorities).enumerate() {
            world.origins.push(Origin::new());
            let protocol = if *protocol == DELTA { "delta" } else { "sotw" };
            text += &format!("  - name: o{at}\n    server: 127.0.0.1:1\n    protocol: {protocol}\n");
            text += &format!("    authorities: {authorities:?}\n");
        }
        text += &format!("default_origin: o0\n{more}\n");
        let feeders = (0..protocols.len()).map(Feeder::Origin).collect();
        world.add_relay(&text, feeders);
        world
    }

    /// One relay before one origin of several servers: world origins, in order of preference.
    pub(crate) fn with_servers(protocol: Protocol, servers: usize) -> Self {
        let mut world = Self::empty();
        world.origins.extend((0..servers).map(|_| Origin::new()));
        let text = Self::several_servers(protocol, servers);
        world.add_relay(&text, (0..servers).map(Feeder::Origin).collect());
        world
    }

    /// The configuration of that.
    pub(crate) fn several_servers(protocol: Protocol, servers: usize) -> String {
        let servers: Vec<_> = (0..servers).map(|at| format!("s{at}:1")).collect();
        let protocol = if protocol == DELTA { "delta" } else { "sotw" };
        format!("origins:\n  - {{ name: up, servers: [{}], protocol: {protocol} }}\n", servers.join(", "))
    }

    /// The time by the other clock.
    pub(crate) fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + (self.now - self.began) + self.wall_is_ahead
    }

    /// The first relay, whose origins have one server each, has these origins of delta from now on, with their authorities: one that is
    /// new is the world's at the next position.
    pub(crate) fn lead(&mut self, origins: &[(&str, &[&str])]) {
        let mut text = String::from("default_origin: o0\norigins:\n");
        for (name, authorities) in origins {
            text += &format!("  - {{ name: {name}, server: '127.0.0.1:1', authorities: {authorities:?} }}\n");
        }
        let relay = &mut self.relays[0];
        relay.fed_by.extend((relay.fed_by.len()..self.origins.len()).map(Feeder::Origin));
        relay.core.lead(&Config::parse("relay.yaml", &text).unwrap());
        self.settle();
    }

    /// A client of the first relay.
    pub(crate) fn client(&mut self, protocol: Protocol, node: &str) -> usize {
        self.client_of(0, protocol, node)
    }

    pub(crate) fn client_of(&mut self, relay: usize, protocol: Protocol, node: &str) -> usize {
        self.client_with(relay, protocol, &Node { id: node.into(), cluster: "c".into(), ..Node::default() })
    }

    pub(crate) fn client_with(&mut self, relay: usize, protocol: Protocol, node: &Node) -> usize {
        let mut client = Client::new(protocol, node.encode_to_vec().into());
        client.connect(&self.relays[relay].core, self.now);
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// One of the first relay, whose stream that can look at.
    pub(crate) fn shown_client(&mut self, protocol: Protocol, node: &Node) -> usize {
        let mut client = Client::new(protocol, node.encode_to_vec().into()).shown();
        client.connect(&self.relays[0].core, self.now);
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// A client of the first relay under a rule of `clients`: all of it but whom it is for.
    pub(crate) fn client_under(&mut self, rule: &str, protocol: Protocol, node: &str) -> usize {
        self.client_under_selecting(rule, protocol, node, None)
    }

    /// Another rule counts for a client on a stream that is open: how that ends, if it does.
    pub(crate) fn rule_changes(&mut self, client: usize, rule: &str) -> Option<String> {
        self.clients[client].is_under_next(client_rule(rule));
        self.relays[0].core.judge_streams();
        self.clients[client].ended()
    }

    /// The same of one that asks for everything with parameters, if there are any.
    pub(crate) fn client_under_selecting(
        &mut self,
        rule: &str,
        protocol: Protocol,
        node: &str,
        selector: Option<Selector>,
    ) -> usize {
        let rule = client_rule(rule);
        let node = Node { id: node.into(), cluster: "c".into(), ..Node::default() };
        let dialect = self.relays[0].core.settings().dialect;
        let mut client = Client::new(protocol, node.encode_to_vec().into()).under(rule);
        if let Some(selector) = selector {
            client = client.selecting(dialect, selector);
        }
        client.connect(&self.relays[0].core, self.now);
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// A client of a relay that asks for everything with parameters or constraints.
    pub(crate) fn client_selecting(&mut self, relay: usize, protocol: Protocol, selector: Selector) -> usize {
        let node = Node { id: "n".into(), cluster: "c".into(), ..Node::default() };
        let dialect = self.relays[relay].core.settings().dialect;
        let mut client = Client::new(protocol, node.encode_to_vec().into()).selecting(dialect, selector);
        client.connect(&self.relays[relay].core, self.now);
        self.clients.push(client);
        self.clients.len() - 1
    }

    pub(crate) fn connect(&mut self, client: usize, relay: usize) {
        self.clients[client].connect(&self.relays[relay].core, self.now);
        self.settle();
    }

    pub(crate) fn disconnect(&mut self, client: usize) {
        self.clients[client].disconnect(self.now);
        self.settle();
    }

    pub(crate) fn subscribe(&mut self, client: usize, of: &str, names: &[&str]) {
        self.clients[client].subscribe(of, names);
        self.settle();
    }

    pub(crate) fn unsubscribe(&mut self, client: usize, of: &str, names: &[&str]) {
        self.clients[client].unsubscribe(of, names);
        self.settle();
    }

    /// Everything the client was told since the last call, one line an update.
    pub(crate) fn told(&mut self, client: usize) -> Vec<String> {
        std::mem::take(&mut self.clients[client].told)
    }

    /// Everything an origin was asked since the last call, one line a request; acknowledgements are none.
    pub(crate) fn asked(&mut self, origin: usize) -> Vec<String> {
        std::mem::take(&mut self.origins[origin].asked)
    }

    /// Changes an origin, and lets everybody hear of it.
    pub(crate) fn put(&mut self, origin: usize, of: &str, name: &str, version: &str) {
        let now = self.now;
        self.origins[origin].put(now, of, name, version);
        self.settle();
    }

    pub(crate) fn remove(&mut self, origin: usize, of: &str, name: &str) {
        let now = self.now;
        self.origins[origin].remove(now, of, name);
        self.settle();
    }

    pub(crate) fn fail(&mut self, origin: usize, of: &str, name: &str, code: i32, message: &str) {
        let (now, error) = (self.now, ResourceError::new(code, message));
        self.origins[origin].fail(now, of, name, &error);
        self.settle();
    }

    /// Takes an origin away, or brings it back.
    pub(crate) fn set_up(&mut self, origin: usize, up: bool) {
        self.origins[origin].up = up;
        self.settle();
    }

    /// Runs until nobody has anything to say.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut progress = false;
            for relay in 0..self.relays.len() {
                progress |= self.drive_links(relay);
                progress |= self.relays[relay].follow(self.now);
            }
            let Self { clients, between, now, .. } = self;
            for (at, client) in clients.iter_mut().enumerate() {
                progress |= client.drive(*now, &mut |response| heard(between, *now, Hearer::Client(at), response));
            }
            if !progress {
                return;
            }
        }
        panic!("never quiet");
    }

    fn drive_links(&mut self, relay: usize) -> bool {
        if self.relays[relay].stopped {
            return self.relays[relay].end_links(&mut self.origins);
        }
        let Relay { dialed, links, .. } = &mut self.relays[relay];
        links.append(&mut dialed.lock().unwrap());
        let mut links = std::mem::take(links);
        let mut progress = false;
        links.retain_mut(|link| {
            let feeder = self.relays[relay].fed_by[link.origin];
            let upper = match feeder {
                Feeder::Relay(upper) => Some(&self.relays[upper]).filter(|upper| !upper.stopped),
                Feeder::Origin(_) => None,
            };
            let upper = upper.map(|upper| upper.core.clone());
            let origin = match feeder {
                Feeder::Origin(at) => Some(&mut self.origins[at]),
                Feeder::Relay(_) => None,
            };
            if link.is_dropped() {
                link.end(origin);
                progress = true;
                return false;
            }
            let (between, now) = (&mut self.between, self.now);
            let hears = &mut |response| heard(between, now, Hearer::Relay(relay), response);
            progress |= link.drive(now, origin, upper.as_ref(), hears);
            true
        });
        self.relays[relay].links = links;
        progress
    }

    /// Lets time pass, from one timeout to the next, sweeping every second.
    pub(crate) fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        let mut sweep = self.now + SECOND;
        for _ in 0..100_000 {
            self.settle();
            let links = self.relays.iter().flat_map(|relay| &relay.links).filter_map(Link::poll_timeout);
            let followed = self.relays.iter().filter_map(Relay::follows_at);
            let due = links.chain(self.clients.iter().filter_map(Client::poll_timeout)).chain(followed).min();
            let next = due.into_iter().chain([sweep]).min().unwrap().max(self.now);
            if next > until {
                self.now = until;
                return self.settle();
            }
            self.now = next;
            if next == sweep {
                sweep += SECOND;
                let now = self.now;
                let wall = self.wall();
                for relay in self.relays.iter().filter(|relay| !relay.stopped) {
                    relay.core.sweep(now);
                    relay.core.release(now, wall);
                    let _ = relay.core.save(now, wall);
                }
            }
        }
        panic!("a timeout that never ends");
    }

    /// Nothing arrives any more on the streams that a relay has upstream now.
    pub(crate) fn stick(&mut self, relay: usize) {
        self.relays[relay].links.iter_mut().for_each(|link| link.is_stuck = true);
    }

    /// How many streams a relay has upstream.
    pub(crate) fn streams_of(&self, relay: usize) -> usize {
        self.relays[relay].links.len()
    }

    /// What a relay counts.
    pub(crate) fn metrics_of(&self, relay: usize) -> String {
        let core = &self.relays[relay].core;
        core.metrics().render(&core.gauges())
    }

    /// One number of it, by what stands in front of it.
    pub(crate) fn counted(&self, relay: usize, what: &str) -> u64 {
        let text = self.metrics_of(relay);
        let number = |line: &str| line.strip_prefix("xds_relay_")?.strip_prefix(what)?.trim().parse().ok();
        text.lines().find_map(number).unwrap_or_else(|| panic!("no {what}: {text}"))
    }

    /// Who the relay says it is on its first stream.
    pub(crate) fn node_upstream(&self, relay: usize) -> Node {
        Node::decode(self.relays[relay].links[0].node.clone()).unwrap()
    }

    /// Who speaks on each of its streams, and to which origin.
    pub(crate) fn nodes_upstream(&self, relay: usize) -> Vec<(usize, Node)> {
        let links = self.relays[relay].links.iter();
        links.map(|link| (link.origin, Node::decode(link.node.clone()).unwrap())).collect()
    }

    /// The scopes that a relay holds.
    pub(crate) fn scopes_of(&self, relay: usize) -> Vec<String> {
        self.relays[relay].core.config_dump(self.now).scopes.into_iter().map(|scope| scope.scope).collect()
    }
}

/// The name of an endpoint assignment.
fn heard(between: &mut Option<Between>, now: Instant, hearer: Hearer, response: Bytes) -> Bytes {
    match between {
        Some(between) => between(now, hearer, response),
        None => response,
    }
}

pub(crate) fn endpoints(authority: &str, name: &str) -> String {
    format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/{name}")
}

pub(crate) fn file(of: &str, name: &str, body: &str) -> xds_relay::relay_core::Held {
    let mut origin = Origin::new();
    let now = Instant::now();
    origin.put(now, of, name, body);
    let resource = origin.resource(of, name);
    (of.into(), name.parse().unwrap(), resource)
}

/// A rule of `clients`: all of it but whom it is for.
pub(crate) fn client_rule(rule: &str) -> ClientRule {
    let text = format!("origins: [{{ name: a, server: 'a:1' }}]\nclients: [{{ match: {{ any: true }}, {rule} }}]");
    Config::parse("relay.yaml", &text).unwrap().clients.unwrap().remove(0)
}
