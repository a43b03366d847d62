//! A server without I/O, and clients that say what they were told in one line each.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{ProtocolError, Settings, Stream};
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse};
use xds_transport::wire::{RESOURCE_TYPE_URL, Resource, ResourceError, Status};
use xds_transport::{Frame, Protocol, Response, TypeRules};
use xdstp_cache::{Cache, Interest, Options, SubscriberId, TypeUrl};

pub(crate) const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
pub(crate) const SCOPED_ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
pub(crate) const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// A resource payload with what any server may look at: the name, and a Cluster's reference.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payload {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) eds: Option<EdsClusterConfig>,
    #[prost(string, tag = "1000")]
    pub(crate) body: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EdsClusterConfig {
    #[prost(string, tag = "2")]
    pub service_name: String,
}

pub(crate) fn payload(name: &str, body: &str) -> Vec<u8> {
    Payload { name: name.into(), eds: None, body: body.into() }.encode_to_vec()
}

pub(crate) fn any_moment() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    Instant::now()
}

/// The cache of a control plane, or of a relay, and the time.
pub(crate) struct Server {
    pub(crate) cache: Cache<Frame>,
    pub(crate) now: Instant,
    pub(crate) woken: Vec<SubscriberId>,
}

impl Server {
    pub(crate) fn new(options: Options) -> Self {
        Self { cache: Cache::new(options), now: any_moment(), woken: Vec::new() }
    }

    /// A control plane: what it does not hold does not exist.
    pub(crate) fn origin() -> Self {
        Self::new(Options::default())
    }

    /// A relay: what it does not hold was not answered yet.
    pub(crate) fn relay() -> Self {
        let mut options = Options::default();
        options.authoritative = false;
        Self::new(options)
    }

    /// A control plane that holds these resources at version 1.
    pub(crate) fn with(of: &str, names: &[&str]) -> Self {
        let mut server = Self::origin();
        for name in names {
            server.put(of, name, "1");
        }
        server
    }

    /// Stores a resource whose body says its version.
    pub(crate) fn put(&mut self, of: &str, name: &str, version: &str) {
        self.put_frame(of, name, version, Frame::of_message(&of.into(), &payload(name, version)));
    }

    pub(crate) fn put_frame(&mut self, of: &str, name: &str, version: &str, frame: Frame) {
        let aliases: Vec<_> = frame.aliases().collect();
        let resource = frame.into_resource(Some(version.into()));
        let name = name.parse().unwrap();
        let mut edit = self.cache.edit(self.now);
        edit.put_with_aliases(&of.into(), &name, aliases, resource);
        self.woken.extend(edit.finish());
    }

    /// A cluster that gets its endpoints under another name.
    pub(crate) fn put_cluster(&mut self, name: &str, endpoints: &str, version: &str) {
        let eds = Some(EdsClusterConfig { service_name: endpoints.into() });
        let payload = Payload { name: name.into(), eds, body: version.into() };
        let frame = Frame::of_message(&CLUSTERS.into(), &payload.encode_to_vec());
        self.put_frame(CLUSTERS, name, version, frame);
    }

    pub(crate) fn remove(&mut self, of: &str, name: &str) {
        let mut edit = self.cache.edit(self.now);
        edit.remove(&of.into(), &name.parse().unwrap());
        self.woken.extend(edit.finish());
    }

    pub(crate) fn fail(&mut self, of: &str, name: &str, code: i32) {
        let error = xdstp_cache::ResourceError::new(code, "why");
        let mut edit = self.cache.edit(self.now);
        edit.fail(&of.into(), &name.parse().unwrap(), error);
        self.woken.extend(edit.finish());
    }

    pub(crate) fn answered(&mut self, of: &str, collection: &str) {
        let collection = Interest::from(collection.parse::<xdstp_uri::ResourceName>().unwrap());
        let mut edit = self.cache.edit(self.now);
        edit.answered(&of.into(), &collection);
        self.woken.extend(edit.finish());
    }

    /// Takes over what an origin answered over delta.
    pub(crate) fn receive_delta(&mut self, response: &DeltaDiscoveryResponse) {
        let response = Response::from_delta(response.encode_to_vec().into()).unwrap();
        self.receive(response);
    }

    pub(crate) fn receive_sotw(&mut self, response: &DiscoveryResponse) {
        let response = Response::from_sotw(response.encode_to_vec().into(), &TypeRules::envoy()).unwrap();
        self.receive(response);
    }

    fn receive(&mut self, response: Response) {
        assert_eq!(response.rejected, []);
        let of = TypeUrl::from(response.type_url);
        let mut edit = self.cache.edit(self.now);
        for received in response.resources {
            let resource = received.frame.unwrap().into_resource(received.version);
            edit.put(&of, &received.name, resource);
        }
        for name in response.removed {
            edit.remove(&of, &name);
        }
        self.woken.extend(edit.finish());
    }
}

/// What a client asks in one delta request.
#[derive(Clone, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) of: &'a str,
    pub(crate) subscribe: &'a [&'a str],
    pub(crate) unsubscribe: &'a [&'a str],
    pub(crate) holds: &'a [(&'a str, &'a str)],
    pub(crate) nonce: &'a str,
    pub(crate) error: Option<&'a str>,
    pub(crate) node: &'a [u8],
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

impl Ask<'_> {
    pub(crate) fn encode(&self) -> Bytes {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let entry = |(name, version): &(&str, &str)| {
            Entry { name: (*name).into(), version: (*version).into() }.encode_to_vec().into()
        };
        let request = DeltaDiscoveryRequest {
            node: Bytes::copy_from_slice(self.node),
            type_url: self.of.into(),
            resource_names_subscribe: owned(self.subscribe),
            resource_names_unsubscribe: owned(self.unsubscribe),
            initial_resource_versions: self.holds.iter().map(entry).collect(),
            response_nonce: self.nonce.into(),
            error_detail: self.error.map(status),
            ..Default::default()
        };
        request.encode_to_vec().into()
    }
}

fn status(message: &str) -> Status {
    Status { code: 13, message: message.into() }
}

/// One stream as its client sees it. Every response is one line: `C a@1 b@2 -c` says that of type
/// Cluster, a and b came, with bodies that say 1 and 2, and c is removed; `!d:7` that d is not sent, with code 7.
pub(crate) struct Client {
    pub(crate) stream: Stream,
    /// The node of the next request; only the first is sent with one.
    pub(crate) node: Vec<u8>,
    /// Every response, decoded as its protocol has it.
    pub(crate) delta: Vec<DeltaDiscoveryResponse>,
    pub(crate) sotw: Vec<DiscoveryResponse>,
    /// Of each type: what it subscribes to (SotW), the last nonce, the last version it accepted.
    subs: BTreeMap<String, Sub>,
    /// The types of responses that were not answered.
    unanswered: Vec<String>,
}

#[derive(Clone, Default)]
struct Sub {
    names: Vec<String>,
    nonce: String,
    version: String,
    offered: String,
}

impl Client {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            node: Vec::new(),
            delta: Vec::new(),
            sotw: Vec::new(),
            subs: BTreeMap::new(),
            unanswered: Vec::new(),
        }
    }

    pub(crate) fn delta() -> Self {
        Self::new(Stream::new(Protocol::Delta, Settings::default()))
    }

    pub(crate) fn sotw() -> Self {
        Self::new(Stream::new(Protocol::Sotw, Settings::default()))
    }

    /// Over SotW, from a server that sends TTLs there.
    pub(crate) fn sotw_with_ttl() -> Self {
        let mut settings = Settings::default();
        settings.ttl_in_sotw = true;
        Self::new(Stream::new(Protocol::Sotw, settings))
    }

    /// With a node that lists client features.
    pub(crate) fn with_features(mut self, features: &[&str]) -> Self {
        self.node = features
            .iter()
            .flat_map(|feature| [&[10 << 3 | 2, feature.len() as u8], feature.as_bytes()].concat())
            .collect();
        self
    }

    pub(crate) fn try_send(&mut self, server: &mut Server, request: Bytes) -> Result<(), ProtocolError> {
        self.stream.handle_message(server.now, request, &mut server.cache)
    }

    /// Sends a delta request and takes what comes of it.
    pub(crate) fn ask(&mut self, server: &mut Server, ask: &Ask<'_>) -> Vec<String> {
        let node = std::mem::take(&mut self.node);
        let node = if ask.node.is_empty() { &*node } else { ask.node };
        self.try_send(server, Ask { node, ..ask.clone() }.encode()).unwrap();
        self.poll(server)
    }

    pub(crate) fn subscribe(&mut self, server: &mut Server, of: &str, names: &[&str]) -> Vec<String> {
        self.ask(server, &Ask { of, subscribe: names, ..Ask::default() })
    }

    pub(crate) fn unsubscribe(&mut self, server: &mut Server, of: &str, names: &[&str]) -> Vec<String> {
        self.ask(server, &Ask { of, unsubscribe: names, ..Ask::default() })
    }

    /// The first request of a type, in the stream's own protocol.
    pub(crate) fn want(&mut self, server: &mut Server, of: &str, names: &[&str]) -> Vec<String> {
        match self.stream.protocol() {
            Protocol::Delta => self.subscribe(server, of, names),
            Protocol::Sotw => self.names(server, of, names),
        }
    }

    /// Sends a SotW request with these names, the last nonce and the last accepted version.
    pub(crate) fn names(&mut self, server: &mut Server, of: &str, names: &[&str]) -> Vec<String> {
        let sub = self.subs.entry(of.into()).or_default();
        sub.names = names.iter().map(|name| (*name).to_owned()).collect();
        self.repeat(server, of, None)
    }

    /// The first SotW request of a type on a new stream, by a client that holds a version.
    pub(crate) fn names_at(&mut self, server: &mut Server, of: &str, names: &[&str], version: &str) -> Vec<String> {
        self.subs.entry(of.into()).or_default().version = version.into();
        self.names(server, of, names)
    }

    /// The answer to the last response of a type.
    fn answer_of(&mut self, of: &str, error: Option<&str>) -> Bytes {
        match self.stream.protocol() {
            Protocol::Sotw => self.sotw_request(of, error),
            Protocol::Delta => Ask { of, nonce: &self.nonce(of), error, ..Ask::default() }.encode(),
        }
    }

    fn sotw_request(&mut self, of: &str, error: Option<&str>) -> Bytes {
        let Sub { names, nonce, version, .. } = self.subs.entry(of.into()).or_default().clone();
        let request = DiscoveryRequest {
            version_info: version,
            node: std::mem::take(&mut self.node).into(),
            resource_names: names,
            type_url: of.into(),
            response_nonce: nonce,
            error_detail: error.map(status),
            ..Default::default()
        };
        request.encode_to_vec().into()
    }

    fn repeat(&mut self, server: &mut Server, of: &str, error: Option<&str>) -> Vec<String> {
        let request = self.sotw_request(of, error);
        self.try_send(server, request).unwrap();
        self.poll(server)
    }

    /// Accepts the last response of a type.
    pub(crate) fn ack(&mut self, server: &mut Server, of: &str) -> Vec<String> {
        let sub = self.subs.entry(of.into()).or_default();
        sub.version = sub.offered.clone();
        self.answer(server, of, None)
    }

    /// Accepts the last response of a type, if it was not yet, and takes nothing.
    pub(crate) fn drop_ack(&mut self, server: &mut Server, of: &str) {
        if !self.unanswered.iter().any(|unanswered| unanswered == of) {
            return;
        }
        self.unanswered.retain(|unanswered| unanswered != of);
        let sub = self.subs.entry(of.into()).or_default();
        sub.version = sub.offered.clone();
        let request = self.answer_of(of, None);
        self.try_send(server, request).unwrap();
    }

    /// Rejects the last response of a type.
    pub(crate) fn nack(&mut self, server: &mut Server, of: &str) -> Vec<String> {
        self.answer(server, of, Some("bad"))
    }

    fn answer(&mut self, server: &mut Server, of: &str, error: Option<&str>) -> Vec<String> {
        self.unanswered.retain(|unanswered| unanswered != of);
        match self.stream.protocol() {
            Protocol::Sotw => self.repeat(server, of, error),
            Protocol::Delta => {
                let nonce = self.nonce(of);
                self.ask(server, &Ask { of, nonce: &nonce, error, ..Ask::default() })
            }
        }
    }

    pub(crate) fn nonce(&self, of: &str) -> String {
        self.subs.get(of).map(|sub| sub.nonce.clone()).unwrap_or_default()
    }

    /// Takes every response the server has, and answers none.
    pub(crate) fn poll(&mut self, server: &mut Server) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.poll_one(server) {
            lines.push(line);
        }
        lines
    }

    pub(crate) fn poll_one(&mut self, server: &mut Server) -> Option<String> {
        let transmit = loop {
            let transmit = self.stream.poll_transmit(server.now, &mut server.cache).unwrap();
            if transmit.is_some() || !self.stream.has_paused() {
                break transmit?;
            }
        };
        let (type_url, nonce, version, line);
        match self.stream.protocol() {
            Protocol::Delta => {
                let response = DeltaDiscoveryResponse::decode(transmit.into_bytes()).unwrap();
                line = describe_delta(&response);
                (type_url, nonce, version) = (response.type_url.clone(), response.nonce.clone(), String::new());
                self.delta.push(response);
            }
            Protocol::Sotw => {
                let response = DiscoveryResponse::decode(transmit.into_bytes()).unwrap();
                line = describe_sotw(&response);
                (type_url, nonce, version) =
                    (response.type_url.clone(), response.nonce.clone(), response.version_info.clone());
                self.sotw.push(response);
            }
        }
        self.unanswered.push(type_url.clone());
        let sub = self.subs.entry(type_url).or_default();
        (sub.nonce, sub.offered) = (nonce, version);
        Some(line)
    }

    /// Accepts what it has and takes what comes, until the server has nothing more to say.
    pub(crate) fn settle(&mut self, server: &mut Server) -> Vec<String> {
        let mut lines = self.poll(server);
        while let Some(of) = self.unanswered.pop() {
            lines.extend(self.ack(server, &of));
        }
        lines
    }
}

fn letter(type_url: &str) -> &str {
    match type_url {
        LISTENERS => "L",
        ROUTES => "R",
        CLUSTERS => "C",
        ENDPOINTS => "E",
        other => other,
    }
}

fn describe_delta(response: &DeltaDiscoveryResponse) -> String {
    let mut words: Vec<_> = response.resources.iter().map(|one| format!("{}@{}", one.name, one.version)).collect();
    words.sort();
    let mut removed: Vec<_> = response.removed_resources.iter().map(|name| format!("-{name}")).collect();
    removed.sort();
    words.insert(0, letter(&response.type_url).into());
    words.extend(removed);
    words.extend(response.resource_errors.iter().map(describe_error));
    words.join(" ")
}

fn describe_sotw(response: &DiscoveryResponse) -> String {
    let mut words: Vec<_> = response.resources.iter().map(describe_any).collect();
    words.sort();
    words.insert(0, letter(&response.type_url).into());
    words.extend(response.resource_errors.iter().map(describe_error));
    words.join(" ")
}

fn describe_error(error: &ResourceError) -> String {
    let status = error.error_detail.as_ref().unwrap();
    let name = &error.resource_name.as_ref().unwrap().name;
    // The words that these tests have a source give need not be repeated in each.
    match status.message.as_str() {
        "why" => format!("!{name}:{}", status.code),
        other => format!("!{name}:{} ({other})", status.code),
    }
}

fn describe_any(any: &Any) -> String {
    let inside = match any.type_url.as_str() {
        RESOURCE_TYPE_URL => Resource::decode(&*any.value).unwrap().resource.unwrap(),
        _ => any.clone(),
    };
    let payload = Payload::decode(&*inside.value).unwrap();
    format!("{}@{}", payload.name, payload.body)
}

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}
