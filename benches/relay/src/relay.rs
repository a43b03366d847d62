//! A relay with a client that is measured, and many that are not.

use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

use crate::origin::{Origin, TYPE_URL, name, resource};
use crate::stream::Stream;

/// Who others are: each names so many authorities.
const EACH: usize = 500;

pub struct Relay {
    now: Instant,
    /// What is measured.
    client: Stream,
    _others: Vec<Stream>,
    origin: Origin,
}

impl Relay {
    /// A relay of whose origin a client watches one name, and others one each of so many authorities.
    pub fn beside(authorities: usize) -> Self {
        let mut origin = Origin::of_relay();
        let now = origin.now;
        let mut client = Stream::open(&origin.core, Protocol::Delta);
        ask(&mut client, now, &[name("good", "x")], &[]);
        let others: Vec<_> = (0..authorities).map(|at| name(&format!("other-{at}"), "x")).collect();
        let open = |names: &[String]| {
            let mut stream = Stream::open(&origin.core, Protocol::Delta);
            ask(&mut stream, now, names, &[]);
            stream
        };
        let _others = others.chunks(EACH).map(open).collect();
        origin.connect();
        let all = others.iter().cloned().chain([name("good", "x")]);
        origin.receive(all.map(|name| resource(name, 0)).collect());
        poll(&mut client, now);
        Self { now, client, _others, origin }
    }

    /// The origin changes what the client watches; how many bytes the client is sent.
    pub fn update(&mut self, round: usize) -> usize {
        self.origin.receive(vec![resource(name("good", "x"), round + 1)]);
        self.origin.turn();
        poll(&mut self.client, self.now)
    }

    /// The client asks for a name of its authority, and leaves it; how many bytes the origin is asked for it.
    pub fn ask_and_leave(&mut self, round: usize) -> usize {
        let other = [name("good", &format!("y{round}"))];
        ask(&mut self.client, self.now, &other, &[]);
        let asked = self.origin.turn();
        ask(&mut self.client, self.now, &[], &other);
        asked + self.origin.turn()
    }

    /// When the stream to the origin is to be looked at: whether at all.
    pub fn look(&mut self) -> bool {
        self.origin.look()
    }
}

/// A client that asks for a name of each of so many authorities, at an origin that has none of them.
pub struct Greedy {
    client: Stream,
    origin: Origin,
    names: Vec<String>,
}

impl Greedy {
    pub fn of(authorities: usize) -> Self {
        let mut origin = Origin::of_relay();
        let mut client = Stream::open(&origin.core, Protocol::Delta);
        ask(&mut client, origin.now, &[name("first", "x")], &[]);
        origin.connect();
        origin.lacks(vec![name("first", "x")]);
        poll(&mut client, origin.now);
        let names = (0..authorities).map(|at| name(&format!("other-{at}"), "x")).collect();
        Self { client, origin, names }
    }

    /// It is told that they are gone; in how many bytes.
    pub fn ask(&mut self) -> usize {
        ask(&mut self.client, self.origin.now, &self.names, &[]);
        self.origin.turn();
        self.origin.lacks(self.names.clone());
        poll(&mut self.client, self.origin.now)
    }
}

fn ask(stream: &mut Stream, now: Instant, names: &[String], left: &[String]) {
    let request = DeltaDiscoveryRequest {
        type_url: TYPE_URL.into(),
        resource_names_subscribe: names.to_vec(),
        resource_names_unsubscribe: left.to_vec(),
        ..DeltaDiscoveryRequest::default()
    };
    stream.say(now, request.encode_to_vec().into());
    poll(stream, now);
}

/// How many bytes are said; all of them are accepted.
fn poll(stream: &mut Stream, now: Instant) -> usize {
    let mut said = 0;
    while let Some(message) = stream.next(now) {
        said += message.len();
        let DeltaDiscoveryResponse { type_url, nonce, .. } = DeltaDiscoveryResponse::decode(message).unwrap();
        let ack = DeltaDiscoveryRequest { type_url, response_nonce: nonce, ..DeltaDiscoveryRequest::default() };
        stream.say(now, Bytes::from(ack.encode_to_vec()));
    }
    said
}
