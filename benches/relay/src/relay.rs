//! A relay between an origin that is no more than its messages, a client that is measured, and many that are not.

use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::{Dial, Dialed, EveryNode, RelayCore, Routes};
use xds_transport::client::{Command, Event, Silence};
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use xds_transport::{Protocol, TypeRules, client, server};
use xdstp_client::upstream::{Connection, Consumer};

const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// Who others are: each names so many authorities.
const EACH: usize = 500;

pub struct Relay {
    now: Instant,
    /// What is measured.
    client: Stream,
    _others: Vec<Stream>,
    upstream: client::Stream,
    feed: Box<dyn Consumer>,
}

struct Stream {
    server: server::Stream,
    routes: Routes,
}

impl Relay {
    /// A relay of whose origin a client watches one name, and others one each of so many authorities.
    pub fn beside(authorities: usize) -> Self {
        let text = "origins: [{ name: up, server: 'localhost:1' }]\n\
                    limits: { authorities: 100000, authorities_per_stream: 100000 }\n";
        let config = Config::parse("relay.yaml", text).unwrap();
        let dialed = Dialer::default();
        let metrics = Arc::new(Metrics::new([TYPE_URL]));
        let core = RelayCore::new(&config, Box::new(EveryNode), Box::new(dialed.clone()), metrics);
        let now = Instant::now();
        let mut client = Stream::open(&core);
        client.ask(now, &[name("good", "x")], &[]);
        let others: Vec<_> = (0..authorities).map(|at| name(&format!("other-{at}"), "x")).collect();
        let open = |names: &[String]| {
            let mut stream = Stream::open(&core);
            stream.ask(now, names, &[]);
            stream
        };
        let _others = others.chunks(EACH).map(open).collect();
        let mut feed = dialed.0.lock().unwrap().take().unwrap();
        let rules = Arc::new(TypeRules::envoy());
        let mut upstream = client::Stream::new(Protocol::Delta, Bytes::new(), rules).with_silence(Silence::IsNoAnswer);
        upstream.connected(now);
        feed.connection(now, Connection::Connected);
        feed.connection(now, Connection::Answered);
        let mut relay = Self { now, client, _others, upstream, feed };
        assert!(relay.transmit() > 0);
        let all = others.iter().cloned().chain([name("good", "x")]);
        relay.receive(response(all.map(|name| resource(name, 0)).collect()));
        relay.client.poll(now);
        relay
    }

    /// The origin changes what the client watches; how many bytes the client is sent.
    pub fn update(&mut self, round: usize) -> usize {
        self.receive(response(vec![resource(name("good", "x"), round + 1)]));
        self.turn();
        self.client.poll(self.now)
    }

    /// The client asks for a name of its authority, and leaves it; how many bytes the origin is asked for it.
    pub fn ask_and_leave(&mut self, round: usize) -> usize {
        let other = [name("good", &format!("y{round}"))];
        self.client.ask(self.now, &other, &[]);
        let asked = self.turn();
        self.client.ask(self.now, &[], &other);
        asked + self.turn()
    }

    /// When the stream to the origin is to be looked at: whether at all.
    pub fn look(&mut self) -> bool {
        self.feed.poll_timeout().is_some()
    }

    /// What a driver does whenever it is woken; how many bytes the origin is sent.
    fn turn(&mut self) -> usize {
        let Self { feed, upstream, .. } = self;
        feed.commands(self.now, &mut |command| upstream.apply(command));
        self.transmit()
    }

    fn transmit(&mut self) -> usize {
        let Self { feed, upstream, .. } = self;
        feed.commands(self.now, &mut |command| upstream.apply(command));
        std::iter::from_fn(|| upstream.poll_transmit(self.now)).map(|request| request.len()).sum()
    }

    fn receive(&mut self, message: Bytes) {
        let Self { feed, upstream, now, .. } = self;
        upstream.handle_message(*now, message).unwrap();
        while let Some(Event::Update(update)) = upstream.poll_event() {
            let id = update.id;
            let verdict = feed.update(*now, update);
            upstream.apply(Command::Finish(id, verdict));
        }
    }
}

impl Stream {
    fn open(core: &Arc<RelayCore>) -> Self {
        let routes = core.open_stream(Protocol::Delta, Waker::noop().clone(), None);
        Self { server: server::Stream::new(Protocol::Delta, core.settings()), routes }
    }

    fn ask(&mut self, now: Instant, names: &[String], left: &[String]) {
        let request = DeltaDiscoveryRequest {
            type_url: TYPE_URL.into(),
            resource_names_subscribe: names.to_vec(),
            resource_names_unsubscribe: left.to_vec(),
            ..DeltaDiscoveryRequest::default()
        };
        self.server.handle_message(now, request.encode_to_vec().into(), &mut self.routes).unwrap();
        self.poll(now);
    }

    /// How many bytes are said; all of them are accepted.
    fn poll(&mut self, now: Instant) -> usize {
        let mut said = 0;
        while let Some(transmit) = self.server.poll_transmit(now, &mut self.routes).unwrap() {
            let message = transmit.into_bytes();
            said += message.len();
            let DeltaDiscoveryResponse { type_url, nonce, .. } = DeltaDiscoveryResponse::decode(message).unwrap();
            let ack = DeltaDiscoveryRequest { type_url, response_nonce: nonce, ..DeltaDiscoveryRequest::default() };
            self.server.handle_message(now, ack.encode_to_vec().into(), &mut self.routes).unwrap();
        }
        said
    }
}

/// Keeps what the relay would be fed by.
#[derive(Clone, Default)]
struct Dialer(Arc<Mutex<Option<Box<dyn Consumer>>>>);

impl Dial for Dialer {
    fn dial(&self, _: usize, _: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        *self.0.lock().unwrap() = Some(consumer);
        Box::new(Nobody)
    }
}

struct Nobody;

impl Dialed for Nobody {
    fn nudge(&self) {}
}

fn name(authority: &str, id: &str) -> String {
    format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/{id}")
}

fn resource(name: String, round: usize) -> Resource {
    let mut value = Vec::new();
    prost::encoding::string::encode(1, &name, &mut value);
    let any = Any { type_url: TYPE_URL.into(), value: value.into() };
    Resource { name, version: round.to_string(), resource: Some(any), ..Resource::default() }
}

fn response(resources: Vec<Resource>) -> Bytes {
    let nonce = "n".to_owned();
    DeltaDiscoveryResponse { type_url: TYPE_URL.into(), nonce, resources, ..Default::default() }.encode_to_vec().into()
}
