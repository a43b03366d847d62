//! A client that says what it was told in one line for each response.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::server::{ProtocolError, Settings, Stream};
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse};

use super::Server;
use super::ask::{Ask, status};
use super::lines::{describe_delta, describe_sotw};

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
