//! What a server says that a client is to send (DPDS, the draft of TP2), and clients that do so, each on one stream.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;
use prost::Message;
use xds_relay::relay_core::Routes;
use xds_transport::Dialect;
use xds_transport::server::Stream;
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Node};
use xdstp_cache::Selector;

use crate::parameters::{BOTH, chain, constraints, parameters, vary, wants};
use crate::support::{DELTA, ENDPOINTS, LISTENERS, Protocol, SECOND, SOTW, World};

const MAPS: &str = "type.googleapis.com/envoy.config.context_params.v3.DynamicContextParameters";
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// As in the text; here, it says as text what it constrains.
const MAP: &str = "xdstp://xds.example.com/envoy.config.context_params.v3.DynamicContextParameters/my_context_params";

/// A stream of a client that asks for each type with what it is told to, as its messages are.
struct Wire {
    protocol: Protocol,
    dialect: Dialect,
    node: Bytes,
    stream: Stream,
    routes: Routes,
    /// What it asks for of each type.
    asked: BTreeMap<&'static str, (String, Selector)>,
    /// The nonces of the last responses, by type: over SotW a request without is stale.
    nonces: BTreeMap<String, String>,
    /// The bodies that came, by type.
    bodies: BTreeMap<String, Vec<String>>,
}

/// What both kinds of response have under the same numbers.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    resources: Vec<Bytes>,
    #[prost(string, tag = "4")]
    type_url: String,
    #[prost(string, tag = "5")]
    nonce: String,
}

/// In a wrapper within an `Any`, in an `Any`, and in a wrapper.
fn body(resource: &Bytes) -> String {
    let body = [&[2, 2, 2, 1000][..], &[2, 2, 1000], &[2, 1000]].into_iter().find_map(|path| text_at(resource, path));
    body.unwrap_or_default().to_owned()
}

impl Wire {
    fn new(world: &World, relay: usize, protocol: Protocol, dialect: Dialect, id: &str) -> Self {
        let core = &world.relays[relay].core;
        let node = Node { id: id.into(), cluster: "c".into(), ..Node::default() };
        Self {
            protocol,
            dialect,
            node: node.encode_to_vec().into(),
            stream: Stream::new(protocol, core.settings()),
            routes: core.open_stream(protocol, Waker::noop().clone(), None),
            asked: BTreeMap::new(),
            nonces: BTreeMap::new(),
            bodies: BTreeMap::new(),
        }
    }

    /// In one request it leaves what it asked for of the type, and asks for this.
    fn ask(&mut self, world: &mut World, of: &'static str, name: &str, selector: Selector) {
        let before = self.asked.insert(of, (name.to_owned(), selector.clone()));
        let dialect = self.dialect;
        let locator = |(name, selector): (String, Selector)| Locator::new(name, selector).encode(dialect).unwrap();
        let now = locator((name.to_owned(), selector));
        let nonce = self.nonces.get(of).filter(|_| self.protocol == SOTW).cloned().unwrap_or_default();
        self.send(world, of, &nonce, vec![now], before.map(locator).into_iter().collect());
        self.read(world);
    }

    fn send(&mut self, world: &World, of: &str, nonce: &str, now: Vec<Bytes>, left: Vec<Bytes>) {
        let (node, type_url, response_nonce) = (self.node.clone(), of.to_owned(), nonce.to_owned());
        let request = match self.protocol {
            SOTW => {
                let resource_locators = now;
                DiscoveryRequest { node, type_url, response_nonce, resource_locators, ..Default::default() }
                    .encode_to_vec()
            }
            _ => DeltaDiscoveryRequest {
                node,
                type_url,
                response_nonce,
                resource_locators_subscribe: now,
                resource_locators_unsubscribe: left,
                ..Default::default()
            }
            .encode_to_vec(),
        };
        self.stream.handle_message(world.now, request.into(), &mut self.routes).unwrap();
    }

    /// Takes and accepts what there is.
    fn read(&mut self, world: &mut World) {
        for _ in 0..5 {
            world.advance(SECOND);
            while let Some(mut transmit) = self.stream.poll_transmit(world.now, &mut self.routes).unwrap() {
                let encoded: Vec<u8> = std::iter::from_fn(|| transmit.next_chunk()).flatten().collect();
                let response = Response::decode(&*encoded).unwrap();
                let bodies = response.resources.iter().map(body);
                self.bodies.entry(response.type_url.clone()).or_default().extend(bodies);
                let wanted = self.asked.iter().find(|(of, _)| **of == response.type_url);
                let wanted = wanted.map(|(_, (name, selector))| {
                    Locator::new(name.clone(), selector.clone()).encode(self.dialect).unwrap()
                });
                let again = if self.protocol == DELTA { Vec::new() } else { wanted.into_iter().collect() };
                self.send(world, &response.type_url, &response.nonce, again, Vec::new());
                self.nonces.insert(response.type_url, response.nonce);
            }
        }
    }

    fn last(&self, of: &str) -> &str {
        self.bodies.get(of).and_then(|bodies| bodies.last()).map_or("", String::as_str)
    }
}

/// What the text says of listeners ("DPDS Example"), of endpoints ("Sharding Endpoints") and of routes ("Selecting Cluster Based on
/// ACL"): a client is told what to send, and told otherwise later. Another one that the server tells otherwise never has its
/// variant. Through two relays, with an origin of either form behind clients of the draft.
#[test]
fn server_specified_constraints() {
    for (protocol, form) in BOTH.into_iter().flat_map(|protocol| ["draft", "final"].map(|form| (protocol, form))) {
        for (of, name, key, values) in [
            (
                LISTENERS,
                "xdstp://xds.example.com/envoy.config.listener.v3.Listener/my_listener",
                "listener_type",
                ["direct", "via_proxy"],
            ),
            (
                ENDPOINTS,
                "xdstp://xds.example.com/envoy.config.endpoint.v3.ClusterLoadAssignment/cart",
                "subset_id",
                ["123", "456"],
            ),
            (ROUTES, "routes", "use_proxy", ["true", "false"]),
        ] {
            let context = format!("{protocol:?} {form} {key}");
            let (mut world, last) = chain(protocol, &[form, "draft"]);
            let variants = values.map(|value| match form {
                "draft" => parameters(&[(key, value)]),
                _ => constraints(&format!("{key}={value}")),
            });
            let put: Vec<_> = variants.iter().zip(values).collect();
            vary(&mut world, of, name, &put, &[]);
            let now = world.now;
            for (node, value) in [("", "nobody"), ("one", values[0]), ("other", values[1])] {
                if !node.is_empty() {
                    world.origins[0].answer_apart(node);
                }
                world.origins[0].put_map(now, node, MAPS, MAP, &format!("{key}={value}"));
                world.origins[0].vary_for(now, node, of, name, &put);
            }
            let mut clients = ["one", "other"].map(|id| Wire::new(&world, last, protocol, Dialect::Draft, id));
            for (client, value) in clients.iter_mut().zip(values) {
                client.ask(&mut world, MAPS, MAP, Selector::default());
                let told = client.last(MAPS).to_owned();
                assert_eq!(told, format!("{key}={value}"), "{context}");
                client.ask(&mut world, of, name, wants(&told));
                assert_eq!(client.last(of), value, "{context}");
            }
            // "Let's say that the client later gets an update".
            let now = world.now;
            world.origins[0].put_map(now, "one", MAPS, MAP, &format!("{key}={}", values[1]));
            clients.iter_mut().for_each(|client| client.read(&mut world));
            let [one, other] = &mut clients;
            let told = one.last(MAPS).to_owned();
            assert_eq!(told, format!("{key}={}", values[1]), "{context}");
            one.ask(&mut world, of, name, wants(&told));
            assert_eq!(one.last(of), values[1], "{context}");
            other.read(&mut world);
            assert_eq!(other.bodies[MAPS], [format!("{key}={}", values[1])], "never what others are told: {context}");
            assert_eq!(other.bodies[of], [values[1]], "{context}");
        }
    }
}
