//! A client of the relay, that sends what the script says to the relay's end of its stream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::relay_core::{RelayCore, Routes};
use xds_transport::Protocol;
use xds_transport::server::Stream;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Status};

use super::flag::Flag;
use super::said::Said;
use super::script::Script;
use super::told::{Alone, Request, Told};
use super::transcript;
use super::world::{TYPES, Who, interests};

/// More than this at once is no end.
const MOST_RESPONSES: usize = 200;

pub(crate) struct Client {
    protocol: Protocol,
    node: Bytes,
    pub(crate) told: Told,
    served: Option<(Stream, Routes)>,
    woken: Arc<Flag>,
    /// The types that were asked for on this stream, and the nonces that wait for an answer.
    opened: BTreeMap<String, Vec<String>>,
    /// SotW: what is wanted, and the last version that was accepted, by type.
    wants: BTreeMap<String, BTreeSet<String>>,
    versions: BTreeMap<String, String>,
    /// It answers nothing by itself.
    pub(crate) lazy: bool,
    pub(crate) refuses: bool,
    pub(crate) stalled: bool,
}

impl Client {
    pub(crate) fn new(protocol: Protocol, node: Bytes) -> Self {
        Self {
            protocol,
            node,
            told: Told::new(protocol),
            served: None,
            woken: Arc::default(),
            opened: BTreeMap::new(),
            wants: BTreeMap::new(),
            versions: BTreeMap::new(),
            lazy: false,
            refuses: false,
            stalled: false,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.served.is_some()
    }

    pub(crate) fn connect(&mut self, relay: &Arc<RelayCore>, stream: u64) {
        self.disconnect();
        let routes = relay.open_stream(self.protocol, self.woken.waker(), None);
        self.served = Some((Stream::new(self.protocol, relay.settings()), routes));
        self.opened.clear();
        self.told.begin(stream);
    }

    pub(crate) fn disconnect(&mut self) {
        if let Some((mut stream, mut routes)) = self.served.take() {
            stream.close(&mut routes);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.served.as_ref().and_then(|(stream, _)| stream.poll_timeout()).filter(|_| !self.stalled)
    }

    /// Sends what a client might send next; somebody else's node, now and then, or bytes that are not quite a request.
    pub(crate) fn ask(&mut self, now: Instant, script: &mut Script<'_>, raw: bool) {
        let kind = script.byte();
        let type_url = TYPES[usize::from(kind & 3) % TYPES.len()];
        let node = match (self.opened.is_empty(), kind >> 2 & 3) {
            // The first node of a stream counts; who comes without is nobody.
            (true, 3) | (false, 0..=2) => Bytes::new(),
            (true, _) => self.node.clone(),
            (false, _) => xds_transport::wire::Node { id: "blue".into(), cluster: "blue".into(), ..Default::default() }
                .encode_to_vec()
                .into(),
        };
        let nonces = self.opened.get(type_url).cloned().unwrap_or_default();
        let response_nonce = match kind >> 4 & 3 {
            0 | 1 => nonces.last().cloned().unwrap_or_default(),
            2 => String::new(),
            _ => nonces.first().cloned().unwrap_or_else(|| "7".into()),
        };
        let error_detail = (kind & 0x40 != 0).then(|| Status { code: 13, message: "refused".into() });
        let spelled: Vec<_> = interests(type_url).iter().map(|one| one.as_str().to_owned()).collect();
        let names = script.some(&spelled);
        let message = match self.protocol {
            Protocol::Delta => {
                let resource_names_unsubscribe = if kind & 0x80 != 0 { script.some(&spelled) } else { Vec::new() };
                let brought = match (self.opened.contains_key(type_url), script.byte() % 4) {
                    (false, 0 | 1) => self.told.held(type_url),
                    (false, 2) => script.some(&spelled).into_iter().map(|name| (name, "a lie".into())).collect(),
                    _ => Vec::new(),
                };
                DeltaDiscoveryRequest {
                    node,
                    type_url: type_url.into(),
                    response_nonce,
                    error_detail,
                    initial_resource_versions: brought.iter().map(|(name, version)| entry(name, version)).collect(),
                    resource_names_subscribe: names,
                    resource_names_unsubscribe,
                    ..Default::default()
                }
                .encode_to_vec()
            }
            Protocol::Sotw => {
                let wants = self.wants.entry(type_url.into()).or_default();
                for name in names {
                    if kind & 0x80 == 0 || !wants.remove(&name) {
                        wants.insert(name);
                    }
                }
                DiscoveryRequest {
                    version_info: self.versions.get(type_url).cloned().unwrap_or_default(),
                    node,
                    resource_names: wants.iter().cloned().collect(),
                    type_url: type_url.into(),
                    response_nonce,
                    error_detail,
                    ..Default::default()
                }
                .encode_to_vec()
            }
        };
        let message = if raw { script.mutated(message) } else { message };
        self.send(now, message.into());
    }

    /// Sends bytes that may be no request at all.
    pub(crate) fn send(&mut self, now: Instant, message: Bytes) {
        let node = self.node_in(&message);
        let Some((stream, routes)) = &mut self.served else { return };
        let first = stream.node().is_none();
        let who = if first { Who::of(node.as_ref().unwrap_or(&Bytes::new())) } else { self.told.who };
        // What is another's mark in here would come back, and prove nothing.
        if who.must_not_see(&message).is_some()
            || first && node.is_some_and(|node| who == Who::Nobody && !node.is_empty())
        {
            return;
        }
        self.woken.set();
        self.told.who = who;
        transcript::request(&self.told.id(), self.protocol, &message);
        if stream.handle_message(now, message.clone(), routes).is_err() {
            return self.disconnect();
        }
        let request = self.read(&message);
        self.opened.entry(request.type_url.clone()).or_default();
        self.told.request(&request);
    }

    /// Takes what the relay has to say. The number of responses.
    pub(crate) fn drive(&mut self, now: Instant, said: &Said, alone: &mut Alone) -> Result<bool, String> {
        let mut progress = false;
        for _ in 0..MOST_RESPONSES {
            let Some((stream, routes)) = &mut self.served else { return Ok(progress) };
            let due = stream.poll_timeout().is_some_and(|due| due <= now);
            if self.stalled || !(self.woken.take() || due) {
                return Ok(progress);
            }
            let transmit = match stream.poll_transmit(now, routes) {
                Ok(Some(transmit)) => transmit,
                Ok(None) if due && !stream.has_paused() && stream.poll_timeout().is_some_and(|due| due <= now) => {
                    return Err("a time that is over, and nothing to say".into());
                }
                Ok(None) => continue,
                Err(_) => {
                    self.disconnect();
                    return Ok(true);
                }
            };
            progress = true;
            let message = transmit.into_bytes();
            transcript::response(&self.told.id(), self.protocol, &message);
            let response = self.told.response(now, &message, said, alone)?;
            self.opened.entry(response.type_url.clone()).or_default().push(response.nonce.clone());
            self.woken.set();
            if !self.lazy {
                self.answer(now, &response.type_url, &response.version, response.nonce);
            }
        }
        Err("more responses than anybody reads".into())
    }

    fn answer(&mut self, now: Instant, type_url: &str, version: &str, response_nonce: String) {
        let error_detail = self.refuses.then(|| Status { code: 13, message: "refused".into() });
        self.opened.insert(type_url.into(), Vec::new());
        let message = match self.protocol {
            Protocol::Delta => {
                DeltaDiscoveryRequest { type_url: type_url.into(), response_nonce, error_detail, ..Default::default() }
                    .encode_to_vec()
            }
            Protocol::Sotw => {
                if !self.refuses {
                    self.versions.insert(type_url.into(), version.into());
                }
                DiscoveryRequest {
                    version_info: self.versions.get(type_url).cloned().unwrap_or_default(),
                    resource_names: self.wants.get(type_url).into_iter().flatten().cloned().collect(),
                    type_url: type_url.into(),
                    response_nonce,
                    error_detail,
                    ..Default::default()
                }
                .encode_to_vec()
            }
        };
        self.send(now, message.into());
    }

    fn node_in(&self, message: &Bytes) -> Option<Bytes> {
        let message = message.clone();
        match self.protocol {
            Protocol::Delta => DeltaDiscoveryRequest::decode(message).ok().map(|request| request.node),
            Protocol::Sotw => DiscoveryRequest::decode(message).ok().map(|request| request.node),
        }
    }

    /// What the relay understood, having taken it.
    fn read(&self, message: &Bytes) -> Request {
        match self.protocol {
            Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(message.clone()).unwrap();
                let name = |entry: &Bytes| xds_transport::wire::walk::text_at(entry, &[1]).map(str::to_owned);
                Request {
                    type_url: request.type_url,
                    names: request.resource_names_subscribe,
                    unsubscribed: request.resource_names_unsubscribe,
                    brought: request.initial_resource_versions.iter().filter_map(name).collect(),
                    version: String::new(),
                    nonce: String::new(),
                }
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest::decode(message.clone()).unwrap();
                Request {
                    type_url: request.type_url,
                    names: request.resource_names,
                    unsubscribed: Vec::new(),
                    brought: Vec::new(),
                    version: request.version_info,
                    nonce: request.response_nonce,
                }
            }
        }
    }
}

/// An entry of `initial_resource_versions`.
fn entry(name: &String, version: &String) -> Bytes {
    let mut entry = Vec::new();
    prost::encoding::string::encode(1, name, &mut entry);
    prost::encoding::string::encode(2, version, &mut entry);
    entry.into()
}
