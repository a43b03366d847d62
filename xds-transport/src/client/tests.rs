//! An origin written by hand, and a clock that only moves when told.

mod aliases;
mod another_server;
mod delta;
mod either;
mod failures;
mod held_before;
mod interning;
mod pace;
mod per_type;
mod room;
mod selecting;
mod sotw;
mod verdicts;
mod withheld;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xdstp_uri::ResourceName;

use super::{Command, Event, Interest, Silence, Stream, Update, Verdict};
use crate::Protocol;
use crate::response::Rejected;
use crate::types::TypeRules;
use crate::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Node, RESOURCE_TYPE_URL,
    Resource, ResourceError, Status, WireResourceName,
};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const GLOB: &str = "xdstp://auth/envoy.config.cluster.v3.Cluster/dir/*";
const MEMBER_A: &str = "xdstp://auth/envoy.config.cluster.v3.Cluster/dir/a";
const MEMBER_B: &str = "xdstp://auth/envoy.config.cluster.v3.Cluster/dir/b";

/// The machine, a clock, and counters for nonces.
struct Client {
    stream: Stream,
    now: Instant,
}

impl Client {
    fn new(protocol: Protocol) -> Self {
        let node = Node { id: "me".into(), ..Node::default() }.encode_to_vec();
        #[allow(clippy::disallowed_methods, reason = "where the virtual clock starts")]
        let now = Instant::now();
        Self { stream: Stream::new(protocol, node.into(), Arc::new(TypeRules::envoy())), now }
    }

    /// Connected, and with the first requests for `interests` of `type_url` sent.
    fn subscribed(protocol: Protocol, type_url: &str, interests: &[&str]) -> Self {
        let mut client = Self::new(protocol);
        client.subscribe(type_url, interests);
        client.connect();
        while client.poll().is_some() {}
        client
    }

    fn subscribe(&mut self, type_url: &str, interests: &[&str]) {
        for interest in interests {
            self.stream.apply(Command::Subscribe(type_url.into(), interest_of(interest)));
        }
    }

    fn unsubscribe(&mut self, type_url: &str, interests: &[&str]) {
        for interest in interests {
            self.stream.apply(Command::Unsubscribe(type_url.into(), interest_of(interest)));
        }
    }

    fn connect(&mut self) {
        self.stream.connected(self.now);
    }

    fn reconnect(&mut self) {
        self.stream.disconnected(self.now);
        assert!(self.poll().is_none(), "a request without a stream");
        self.connect();
    }

    fn advance(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.stream.handle_timeout(self.now);
    }

    fn poll(&mut self) -> Option<Bytes> {
        self.stream.poll_transmit(self.now)
    }

    fn delta(&mut self) -> Option<DeltaDiscoveryRequest> {
        self.poll().map(|request| DeltaDiscoveryRequest::decode(request).unwrap())
    }

    fn sotw(&mut self) -> Option<DiscoveryRequest> {
        self.poll().map(|request| DiscoveryRequest::decode(request).unwrap())
    }

    fn receive(&mut self, response: &impl Message) {
        self.stream.handle_message(self.now, response.encode_to_vec().into()).unwrap();
    }

    fn update(&mut self) -> Option<Update> {
        self.stream.poll_event().map(|Event::Update(update)| update)
    }

    fn finish(&mut self, update: &Update, verdict: Verdict) {
        self.stream.apply(Command::Finish(update.id, verdict));
    }

    /// Takes a response in, accepts it, and gives back what it changed.
    fn accept(&mut self, response: &impl Message) -> Update {
        self.receive(response);
        let update = self.update().expect("a response makes an update");
        self.finish(&update, Verdict::Accept);
        update
    }

    fn reject(&mut self, response: &impl Message, name: &str, reason: &str) -> Update {
        self.receive(response);
        let update = self.update().expect("a response makes an update");
        self.finish(&update, Verdict::Reject { reasons: vec![Rejected::new(name, reason)] });
        update
    }
}

fn interest_of(text: &str) -> Interest {
    name(text).into()
}

fn name(text: &str) -> ResourceName {
    ResourceName::parse(text).unwrap()
}

fn changed(update: &Update) -> Vec<(&str, &str)> {
    update.changed.iter().map(|changed| (changed.name.as_str(), changed.resource.version.as_str())).collect()
}

fn changed_names(update: &Update) -> Vec<&str> {
    update.changed.iter().map(|changed| changed.name.as_str()).collect()
}

fn removed(update: &Update) -> Vec<&str> {
    update.removed.iter().map(ResourceName::as_str).collect()
}

fn missing(update: &Update) -> Vec<&str> {
    update.missing.iter().map(ResourceName::as_str).collect()
}

fn lacking(update: &Update) -> Vec<&str> {
    update.lacking.iter().map(ResourceName::as_str).collect()
}

fn complete(update: &Update) -> Vec<&str> {
    update.complete.iter().map(Interest::as_str).collect()
}

fn answered(update: &Update) -> Vec<&str> {
    update.answered.iter().map(Interest::as_str).collect()
}

/// A payload whose field 1 is `name`, as in all of Envoy's types.
fn body(type_url: &str, name: &str, content: &str) -> Any {
    let mut value = Vec::new();
    for (key, text) in [(0x0a, name), (0x12, content)] {
        value.extend([key, u8::try_from(text.len()).unwrap()]);
        value.extend(text.bytes());
    }
    Any { type_url: type_url.into(), value: value.into() }
}

/// A delta response with resources as (name, version) and removed names.
fn delta(type_url: &str, nonce: &str, resources: &[(&str, &str)], removed: &[&str]) -> DeltaDiscoveryResponse {
    let resource = |(name, version): &(&str, &str)| Resource {
        name: (*name).into(),
        version: (*version).into(),
        resource: Some(body(type_url, name, version)),
        ..Resource::default()
    };
    DeltaDiscoveryResponse {
        type_url: type_url.into(),
        nonce: nonce.into(),
        resources: resources.iter().map(resource).collect(),
        removed_resources: removed.iter().map(|name| (*name).into()).collect(),
        ..DeltaDiscoveryResponse::default()
    }
}

/// A SotW response with resources as (name, content).
fn sotw(type_url: &str, version: &str, nonce: &str, resources: &[(&str, &str)]) -> DiscoveryResponse {
    DiscoveryResponse {
        type_url: type_url.into(),
        version_info: version.into(),
        nonce: nonce.into(),
        resources: resources.iter().map(|(name, content)| body(type_url, name, content)).collect(),
        ..DiscoveryResponse::default()
    }
}

/// TP3: what cannot be sent, and the code that says why.
fn error(name: &str, code: i32) -> ResourceError {
    let resource_name = Some(WireResourceName { name: name.into(), ..WireResourceName::default() });
    ResourceError { resource_name, error_detail: Some(Status { code, message: "because".into() }) }
}

fn wrapped(resource: &Resource) -> Any {
    Any { type_url: RESOURCE_TYPE_URL.into(), value: resource.encode_to_vec().into() }
}

/// The entries of `initial_resource_versions`.
fn initial_versions(request: &DeltaDiscoveryRequest) -> Vec<(String, String)> {
    let text = |entry: &Bytes, field| crate::wire::walk::text_at(entry, &[field]).unwrap_or_default().to_owned();
    request.initial_resource_versions.iter().map(|entry| (text(entry, 1), text(entry, 2))).collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect()
}
