//! A relay that has everything, and clients who come, are sent what they ask for, and leave.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::relay_core::RelayCore;
use xds_transport::Protocol;
use xds_transport::wire::walk::{FieldValue, Fields};
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::origin::{Origin, TYPE_URL, name, resource};
use crate::stream::Stream;

/// What clients ask for, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Glob,
    EachName,
    EachNameSotw,
}

/// A relay of whose origin a client has a collection, each name of which somebody watches.
pub struct Arrivals {
    now: Instant,
    core: Arc<RelayCore>,
    resources: usize,
    protocol: Protocol,
    first: Bytes,
    _others: Vec<Stream>,
    _origin: Origin,
}

impl Arrivals {
    pub fn of(interest: Interest, resources: usize) -> Self {
        let mut origin = Origin::of_relay();
        let now = origin.now;
        let names: Vec<_> = match interest {
            Interest::Glob => vec![name("good", "pool/*")],
            _ => (0..resources).map(|at| name("good", &format!("pool/{at}"))).collect(),
        };
        let (protocol, first) = match interest {
            Interest::EachNameSotw => (Protocol::Sotw, sotw(&names, "", "")),
            _ => (Protocol::Delta, delta(names, "")),
        };
        let mut other = Stream::open(&origin.core, protocol);
        other.say(now, first.clone());
        origin.connect();
        origin.receive((0..resources).map(|at| resource(name("good", &format!("pool/{at}")), 0)).collect());
        let core = origin.core.clone();
        let mut arrivals = Self { now, core, resources, protocol, first, _others: vec![other], _origin: origin };
        // Once, so that what grows has grown.
        arrivals.arrive().leave();
        arrivals
    }

    /// A client that has everything.
    pub fn arrive(&mut self) -> Arrived {
        let mut stream = Stream::open(&self.core, self.protocol);
        stream.say(self.now, self.first.clone());
        let mut received = 0;
        while let Some(response) = stream.next(self.now) {
            let (count, ack) = self.answer(&response);
            received += count;
            stream.say(self.now, ack);
        }
        assert_eq!(received, self.resources);
        Arrived(stream)
    }

    /// How many resources a response has, and its ACK.
    fn answer(&self, response: &[u8]) -> (usize, Bytes) {
        let (mut count, mut version, mut nonce) = (0, "", "");
        for field in Fields::of(response) {
            let field = field.unwrap();
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) if self.protocol == Protocol::Sotw => {
                    version = std::str::from_utf8(text).unwrap();
                }
                (2, _) => count += 1,
                (5, FieldValue::Bytes(text)) => nonce = std::str::from_utf8(text).unwrap(),
                _ => {}
            }
        }
        let ack = match self.protocol {
            Protocol::Sotw => {
                let ack = sotw(&[], version, nonce);
                // Its names are a piece of the first request, as they are.
                Bytes::from([&ack[..], &self.first[type_url_len()..]].concat())
            }
            _ => delta(Vec::new(), nonce),
        };
        (count, ack)
    }
}

/// A client that has everything.
pub struct Arrived(Stream);

impl Arrived {
    pub fn leave(self) {
        self.0.close();
    }
}

fn delta(names: Vec<String>, nonce: &str) -> Bytes {
    let (type_url, response_nonce) = (TYPE_URL.to_owned(), nonce.to_owned());
    let request =
        DeltaDiscoveryRequest { type_url, response_nonce, resource_names_subscribe: names, ..Default::default() };
    request.encode_to_vec().into()
}

/// The type comes after the names in their order: here it is written before them.
fn sotw(names: &[String], version: &str, nonce: &str) -> Bytes {
    let own = DiscoveryRequest {
        type_url: TYPE_URL.to_owned(),
        version_info: version.to_owned(),
        response_nonce: nonce.to_owned(),
        ..Default::default()
    };
    let names = DiscoveryRequest { resource_names: names.to_vec(), ..Default::default() };
    [own.encode_to_vec(), names.encode_to_vec()].concat().into()
}

fn type_url_len() -> usize {
    sotw(&[], "", "").len()
}
