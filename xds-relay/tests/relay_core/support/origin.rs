//! A control plane: caches, by node where it answers by node, and a list of what it was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use tonic::metadata::MetadataMap;
use xds_transport::Frame;
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Node};
use xds_transport::{Dialect, Protocol};
use xdstp_cache::{Cache, Interest, Options, Resource, ResourceError, Variant};
use xdstp_uri::ResourceName;

pub(crate) struct Origin {
    pub(crate) up: bool,
    /// It reads, and says nothing.
    pub(crate) silent: bool,
    /// It ends every stream before it says anything: a balancer without anybody behind it.
    pub(crate) hangs_up: bool,
    /// What it says may be nothing that can be read: its stream is ended then.
    pub(crate) is_hostile: bool,
    /// The time between two of its responses.
    pub(crate) pace: Duration,
    /// The time that each of them takes to come in.
    pub(crate) slowness: Duration,
    /// What it says of itself on one stream of a type after the other.
    pub(crate) says_of_itself: Vec<MetadataMap>,
    /// The types whose streams end as they are opened, each with a code of gRPC.
    pub(crate) without: BTreeMap<String, i32>,
    /// The types whose streams nobody answers.
    pub(crate) hangs: BTreeSet<String>,
    /// The types whose streams were opened.
    pub(crate) opened: Vec<String>,
    /// How many streams are open.
    pub(crate) streams: usize,
    pub(crate) asked: Vec<String>,
    /// What nodes with an id of their own get; the empty id is everybody else.
    caches: BTreeMap<String, Cache<Frame>>,
    last_names: BTreeMap<(Bytes, String), Vec<String>>,
}

#[derive(Clone, PartialEq, Message)]
struct Payload {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "1000")]
    body: String,
}

/// A resource with what a relay may look at, its name, and a body.
pub(crate) fn frame(of: &str, name: &str, body: &str) -> Frame {
    Frame::of_message(&of.into(), &Payload { name: name.into(), body: body.into() }.encode_to_vec())
}

/// A Cluster whose endpoints have its name.
pub(crate) fn cluster(name: &str, body: &str) -> Frame {
    frame(super::CLUSTERS, name, body)
}

/// The body that [`Origin::put`] gave an encoded `Any`.
pub(crate) fn body_of(any: &Bytes) -> String {
    text_at(any, &[2, 1000]).unwrap_or_default().to_owned()
}

impl Origin {
    pub(crate) fn new() -> Self {
        let caches = BTreeMap::from([(String::new(), Cache::new(Options::default()))]);
        Self {
            up: true,
            silent: false,
            hangs_up: false,
            is_hostile: false,
            pace: Duration::ZERO,
            slowness: Duration::ZERO,
            says_of_itself: Vec::new(),
            without: BTreeMap::new(),
            hangs: BTreeSet::new(),
            opened: Vec::new(),
            streams: 0,
            asked: Vec::new(),
            caches,
            last_names: BTreeMap::new(),
        }
    }

    /// From now on this node has resources of its own, and only those.
    pub(crate) fn answer_apart(&mut self, node: &str) {
        self.caches.insert(node.into(), Cache::new(Options::default()));
    }

    pub(crate) fn cache_of(&mut self, node: &Bytes) -> &mut Cache<Frame> {
        let id = Node::decode(node.clone()).unwrap().id;
        let id = if self.caches.contains_key(&id) { id } else { String::new() };
        self.caches.get_mut(&id).unwrap()
    }

    /// A resource whose body says its version.
    pub(crate) fn put(&mut self, now: Instant, of: &str, name: &str, version: &str) {
        self.put_frame(now, "", of, name, version, frame(of, name, version));
    }

    /// The same, not to be shared between clients.
    pub(crate) fn put_uncached(&mut self, now: Instant, node: &str, of: &str, name: &str, version: &str) {
        let body = format!("{version}{node}");
        // Resource.cache_control { do_not_cache: true }
        let frame = frame(of, name, &body).with_wrapper(Bytes::from_static(b"\x3a\x02\x08\x01"), None, true);
        self.put_frame(now, node, of, name, version, frame);
    }

    pub(crate) fn put_frame(&mut self, now: Instant, node: &str, of: &str, name: &str, version: &str, frame: Frame) {
        let aliases: Vec<_> = frame.aliases().collect();
        let resource = frame.into_resource(Some(version.into()));
        let cache = self.caches.get_mut(node).unwrap();
        let name = name.parse().unwrap();
        let mut edit = cache.edit(now);
        edit.put_with_aliases(&of.into(), &name, aliases, resource);
        let _ = edit.finish();
    }

    /// In one change, these variants of a name come, and those go: each with a body that says its version.
    pub(crate) fn vary(&mut self, now: Instant, of: &str, name: &str, put: &[(&Variant, &str)], gone: &[&Variant]) {
        let cache = self.caches.get_mut("").unwrap();
        let parsed = name.parse().unwrap();
        let mut edit = cache.edit(now);
        for (variant, version) in put {
            let resource = frame(of, name, version).into_resource(Some((*version).into()));
            edit.put_variant(&of.into(), &parsed, variant, resource);
        }
        gone.iter().for_each(|variant| edit.remove_variant(&of.into(), &parsed, variant));
        _ = edit.finish();
    }

    /// A resource with this body for a node, not to be shared between clients.
    pub(crate) fn put_map(&mut self, now: Instant, node: &str, of: &str, name: &str, body: &str) {
        let frame = frame(of, name, body).with_wrapper(Bytes::from_static(b"\x3a\x02\x08\x01"), None, true);
        self.put_frame(now, node, of, name, body, frame);
    }

    /// Variants of a name for a node.
    pub(crate) fn vary_for(&mut self, now: Instant, node: &str, of: &str, name: &str, put: &[(&Variant, &str)]) {
        let mut edit = self.caches.get_mut(node).unwrap().edit(now);
        for (variant, version) in put {
            let resource = frame(of, name, version).into_resource(Some((*version).into()));
            edit.put_variant(&of.into(), &name.parse().unwrap(), variant, resource);
        }
        _ = edit.finish();
    }

    /// A variant with a version that others of the name may have, too.
    pub(crate) fn put_variant(
        &mut self,
        now: Instant,
        of: &str,
        name: &str,
        variant: &Variant,
        version: &str,
        body: &str,
    ) {
        let resource = frame(of, name, body).into_resource(Some(version.into()));
        let mut edit = self.caches.get_mut("").unwrap().edit(now);
        edit.put_variant(&of.into(), &name.parse().unwrap(), variant, resource);
        _ = edit.finish();
    }

    /// Sends a resource again although it did not change.
    pub(crate) fn touch(&mut self, now: Instant, of: &str, name: &str) {
        let cache = self.caches.get_mut("").unwrap();
        let mut edit = cache.edit(now);
        edit.touch(&of.into(), &name.parse().unwrap());
        let _ = edit.finish();
    }

    /// Removes a resource from what a node has of its own.
    pub(crate) fn remove_from(&mut self, now: Instant, node: &str, of: &str, name: &str) {
        let mut edit = self.caches.get_mut(node).unwrap().edit(now);
        edit.remove(&of.into(), &name.parse().unwrap());
        let _ = edit.finish();
    }

    pub(crate) fn remove(&mut self, now: Instant, of: &str, name: &str) {
        for cache in self.caches.values_mut() {
            let mut edit = cache.edit(now);
            edit.remove(&of.into(), &name.parse().unwrap());
            let _ = edit.finish();
        }
    }

    pub(crate) fn fail(&mut self, now: Instant, of: &str, name: &str, error: &ResourceError) {
        for cache in self.caches.values_mut() {
            let mut edit = cache.edit(now);
            edit.fail(&of.into(), &name.parse().unwrap(), error.clone());
            let _ = edit.finish();
        }
    }

    /// The same to a node that has resources of its own, or to everybody else.
    pub(crate) fn fail_for(&mut self, now: Instant, node: &str, of: &str, name: &str, error: &ResourceError) {
        let cache = self.caches.get_mut(node).unwrap();
        let mut edit = cache.edit(now);
        edit.fail(&of.into(), &name.parse().unwrap(), error.clone());
        let _ = edit.finish();
    }

    /// It sends a collection, whatever it said of that before.
    pub(crate) fn answered(&mut self, now: Instant, of: &str, collection: &str) {
        let collection = Interest::from(collection.parse::<ResourceName>().unwrap());
        let mut edit = self.caches.get_mut("").unwrap().edit(now);
        edit.answered(&of.into(), &collection);
        let _ = edit.finish();
    }

    /// In which words it does not send a name or a collection.
    pub(crate) fn words_of(&self, of: &str, name: &str) -> Option<String> {
        Some(self.caches[""].error(&of.into(), &name.parse().unwrap())?.message.to_string())
    }

    /// What it holds under a name.
    pub(crate) fn resource(&self, of: &str, name: &str) -> Resource<Frame> {
        self.caches[""].resource(&of.into(), &name.parse().unwrap()).unwrap().clone()
    }

    /// Its wildcard holds `xdstp:` names too.
    pub(crate) fn wildcard_sends_xdstp(&mut self) {
        self.wildcard_sends_xdstp_to("");
    }

    /// The same, for a node that has resources of its own from now on.
    pub(crate) fn wildcard_sends_xdstp_to(&mut self, node: &str) {
        let mut options = Options::default();
        options.wildcard_covers_xdstp = true;
        self.caches.insert(node.into(), Cache::new(options));
    }

    /// Gives a type a version, as SotW has it.
    pub(crate) fn set_version(&mut self, of: &str, version: &str) {
        self.caches.get_mut("").unwrap().set_type_version(&of.into(), Some(version.into()));
    }

    /// `node Cluster +a -b =c@1`: what is subscribed, unsubscribed, and brought along.
    pub(crate) fn note(&mut self, protocol: Protocol, dialect: Dialect, node: &Bytes, request: &Bytes) {
        let id = Node::decode(node.clone()).unwrap().id;
        let mut line = Vec::new();
        let type_url = match protocol {
            Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(request.clone()).unwrap();
                let first = request.response_nonce.is_empty();
                line.extend(request.resource_names_subscribe.iter().map(|name| format!("+{name}")));
                line.extend(request.resource_names_unsubscribe.iter().map(|name| format!("-{name}")));
                let held = |entry: &Bytes| {
                    format!("={}@{}", text_at(entry, &[1]).unwrap(), text_at(entry, &[2]).unwrap_or_default())
                };
                line.extend(
                    request.resource_locators_subscribe.iter().map(|one| format!("+{}", located(dialect, one))),
                );
                line.extend(
                    request.resource_locators_unsubscribe.iter().map(|one| format!("-{}", located(dialect, one))),
                );
                line.extend(request.initial_resource_versions.iter().map(held));
                if line.is_empty() && first {
                    line.push("+*".into());
                }
                line.extend(request.error_detail.map(|error| format!("NACK {}", error.message)));
                request.type_url
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest::decode(request.clone()).unwrap();
                let mut names = request.resource_names.clone();
                names.extend(request.resource_locators.iter().map(|one| located(dialect, one)));
                let key = (node.clone(), request.type_url.clone());
                let first = request.response_nonce.is_empty();
                let before = self.last_names.insert(key, names.clone()).filter(|_| !first);
                if before.as_ref() != Some(&names) {
                    line.push(format!("[{}]", names.join(" ")));
                    line.extend(
                        Some(format!("v{}", request.version_info))
                            .filter(|_| first && !request.version_info.is_empty()),
                    );
                }
                line.extend(request.error_detail.map(|error| format!("NACK {}", error.message)));
                request.type_url
            }
        };
        if !line.is_empty() {
            self.asked.push(format!("{id} {} {}", short(&type_url), line.join(" ")));
        }
    }
}

/// A name, and what is sent with it.
fn located(dialect: Dialect, locator: &Bytes) -> String {
    let locator = Locator::decode(dialect, locator).unwrap();
    format!("{}{{{}}}", locator.name, locator.selector.to_string().trim_matches(['{', '}']))
}

/// The last word of a type URL.
pub(crate) fn short(type_url: &str) -> &str {
    type_url.rsplit('.').next().unwrap()
}
