//! A relay whose origin is no more than its messages.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::{Dial, Dialed, EveryNode, Position, RelayCore};
use xds_transport::client::{Command, Event, Silence};
use xds_transport::wire::{Any, DeltaDiscoveryResponse, Resource};
use xds_transport::{Protocol, TypeRules, client};
use xdstp_client::upstream::{Connection, Consumer};

pub const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

pub struct Origin {
    pub core: Arc<RelayCore>,
    pub now: Instant,
    dialed: Dialer,
    upstream: client::Stream,
    feed: Option<Box<dyn Consumer>>,
}

impl Origin {
    /// The origin of a new relay, that nothing is asked of yet.
    pub fn of_relay() -> Self {
        let text = "origins: [{ name: up, server: 'localhost:1' }]\n\
                    limits: { authorities: 100000, authorities_per_stream: 100000 }\n";
        let config = Config::parse("relay.yaml", text).unwrap();
        let dialed = Dialer::default();
        let metrics = Arc::new(Metrics::new([TYPE_URL]));
        let core = RelayCore::new(&config, Box::new(EveryNode), Box::new(dialed.clone()), metrics);
        let rules = Arc::new(TypeRules::envoy());
        let upstream = client::Stream::new(Protocol::Delta, Bytes::new(), rules).with_silence(Silence::IsNoAnswer);
        Self { core, now: Instant::now(), dialed, upstream, feed: None }
    }

    /// It is there, and hears what is asked of it.
    pub fn connect(&mut self) {
        let mut feed = self.dialed.0.lock().unwrap().take().unwrap();
        self.upstream.connected(self.now);
        feed.connection(self.now, Connection::Connected);
        feed.connection(self.now, Connection::Answered);
        self.feed = Some(feed);
        assert!(self.turn() > 0);
    }

    /// What a driver does whenever it is woken; how many bytes the origin is sent.
    pub fn turn(&mut self) -> usize {
        let Self { feed, upstream, .. } = self;
        if let Some(feed) = feed {
            feed.commands(self.now, &mut |command| upstream.apply(command));
        }
        std::iter::from_fn(|| upstream.poll_transmit(self.now)).map(|request| request.len()).sum()
    }

    /// When the stream to it is to be looked at: whether at all.
    pub fn look(&mut self) -> bool {
        self.feed.as_mut().is_some_and(|feed| feed.poll_timeout().is_some())
    }

    /// It says this.
    pub fn receive(&mut self, resources: Vec<Resource>) {
        self.respond(DeltaDiscoveryResponse { resources, ..Default::default() });
    }

    /// It has none of these.
    pub fn lacks(&mut self, names: Vec<String>) {
        self.respond(DeltaDiscoveryResponse { removed_resources: names, ..Default::default() });
    }

    fn respond(&mut self, response: DeltaDiscoveryResponse) {
        let Self { feed, upstream, now, .. } = self;
        let response = DeltaDiscoveryResponse { type_url: TYPE_URL.into(), nonce: "n".to_owned(), ..response };
        upstream.handle_message(*now, response.encode_to_vec().into()).unwrap();
        while let (Some(Event::Update(update)), Some(feed)) = (upstream.poll_event(), feed.as_mut()) {
            let id = update.id;
            let verdict = feed.update(*now, update);
            upstream.apply(Command::Finish(id, verdict));
        }
    }
}

/// Keeps what the relay would be fed by.
#[derive(Clone, Default)]
struct Dialer(Arc<Mutex<Option<Box<dyn Consumer>>>>);

impl Dial for Dialer {
    fn dial(&self, _: Position, _: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        *self.0.lock().unwrap() = Some(consumer);
        Box::new(Nobody)
    }
}

struct Nobody;

impl Dialed for Nobody {
    fn nudge(&self) {}
}

pub fn name(authority: &str, id: &str) -> String {
    format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/{id}")
}

pub fn resource(name: String, round: usize) -> Resource {
    let mut value = Vec::new();
    prost::encoding::string::encode(1, &name, &mut value);
    let any = Any { type_url: TYPE_URL.into(), value: value.into() };
    Resource { name, version: round.to_string(), resource: Some(any), ..Resource::default() }
}
