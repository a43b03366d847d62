//! A client whose messages are its own, as the wire has them: it asks for each type with what it is told to.

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

use super::{DELTA, Protocol, SECOND, SOTW, World};

/// One name of each type is asked for, and each request for another one leaves that of before.
pub(crate) struct Wire {
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
    pub(crate) bodies: BTreeMap<String, Vec<String>>,
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
    pub(crate) fn new(world: &World, relay: usize, protocol: Protocol, dialect: Dialect, id: &str) -> Self {
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
    pub(crate) fn ask(&mut self, world: &mut World, of: &'static str, name: &str, selector: Selector) {
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
    pub(crate) fn read(&mut self, world: &mut World) {
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

    pub(crate) fn last(&self, of: &str) -> &str {
        self.bodies.get(of).and_then(|bodies| bodies.last()).map_or("", String::as_str)
    }
}
