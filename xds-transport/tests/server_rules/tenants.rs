//! A source that looks at who asks, and at what it asks: rules 6, 109, 116.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{NodeError, Settings, Source, Stream, Tally};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Node};
use xds_transport::{Frame, Protocol};
use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::ResourceName;

use crate::support::{Ask, CLUSTERS, Server, any_moment};

/// A server of two tenants: what a node sees is decided by its client features.
struct Tenants {
    plain: Cache<Frame>,
    featured: Cache<Frame>,
    is_featured: bool,
    too_long_names: usize,
    /// For how many names what is kept beside them counts, of each subscriber.
    kept: BTreeMap<usize, usize>,
}

impl Tenants {
    fn serving() -> Self {
        let cache = |version| {
            let mut server = Server::origin();
            server.put(CLUSTERS, "a", version);
            server.cache
        };
        Self {
            plain: cache("plain"),
            featured: cache("featured"),
            is_featured: false,
            too_long_names: 0,
            kept: BTreeMap::new(),
        }
    }

    fn cache(&mut self) -> &mut Cache<Frame> {
        if self.is_featured { &mut self.featured } else { &mut self.plain }
    }
}

impl Source for Tenants {
    fn too_long_name(&mut self) {
        self.too_long_names += 1;
    }

    fn keeps(&mut self, id: SubscriberId, names: usize) {
        self.kept.insert(id.index(), names);
    }

    fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
        let features = Node::decode(node.clone()).map_err(|error| NodeError::new(error.to_string()))?.client_features;
        self.is_featured = features.iter().any(|feature| feature == "envoy.lb.does_not_support_overprovisioning");
        Ok(())
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.cache().open(type_url)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        Source::close(self.cache(), id, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::subscribe(self.cache(), id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::unsubscribe(self.cache(), id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        Source::resume(self.cache(), id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        Source::pull(self.cache(), id, removals, visitor)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        Source::pull_errors(self.cache(), id, removals, visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Source::visit(self.cache(), id, visitor)
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        if self.is_featured { Source::has_work(&self.featured, id) } else { Source::has_work(&self.plain, id) }
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        Source::look_up(if self.is_featured { &self.featured } else { &self.plain }, id, name, look);
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        Source::resend(self.cache(), id, name)
    }
}

/// What a stream is sent, whose requests come with these nodes.
fn versions_seen(nodes: &[&Node]) -> Vec<String> {
    let mut tenants = Tenants::serving();
    let mut stream = Stream::new(Protocol::Delta, Settings::default());
    let now = any_moment();
    let mut seen = Vec::new();
    for node in nodes {
        let request = Ask { of: CLUSTERS, subscribe: &["a"], node: &node.encode_to_vec(), ..Ask::default() };
        stream.handle_message(now, request.encode(), &mut tenants).unwrap();
        while let Some(transmit) = stream.poll_transmit(now, &mut tenants).unwrap() {
            let response = DeltaDiscoveryResponse::decode(transmit.into_bytes()).unwrap();
            seen.extend(response.resources.into_iter().map(|resource| resource.version));
        }
    }
    seen
}

#[test]
fn rule_006_a_node_that_changes_on_a_stream_is_shown_no_other_tenant() {
    let plain = Node { id: "me".into(), ..Node::default() };
    let client_features = vec!["envoy.lb.does_not_support_overprovisioning".into()];
    let featured = Node { id: "other".into(), client_features, ..Node::default() };
    assert_eq!(versions_seen(&[&plain, &featured, &plain]), ["plain"; 3]);
    assert_eq!(versions_seen(&[&featured, &plain]), ["featured"; 2]);
}

#[test]
fn rule_116_features_of_the_client_may_decide_what_it_is_sent() {
    let client_features = vec!["envoy.lb.does_not_support_overprovisioning".into()];
    assert_eq!(versions_seen(&[&Node { client_features, ..Node::default() }]), ["featured"]);
    assert_eq!(versions_seen(&[&Node::default()]), ["plain"]);
}

#[test]
fn rule_109_a_source_hears_of_each_text_that_is_too_long_for_a_name_once() {
    let (fits, long) = ("x".repeat(64 << 10), "x".repeat((64 << 10) + 1));
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut tenants = Tenants::serving();
        let mut stream = Stream::new(protocol, Settings::default());
        for names in [&[&*fits, "a"][..], &[&*long, "a"], &[&*long, "a", "b"]] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let type_url = CLUSTERS.to_owned();
            let request = match protocol {
                Protocol::Delta => {
                    DeltaDiscoveryRequest { type_url, resource_names_subscribe: names, ..Default::default() }
                        .encode_to_vec()
                }
                Protocol::Sotw => {
                    DiscoveryRequest { type_url, resource_names: names, ..Default::default() }.encode_to_vec()
                }
            };
            stream.handle_message(any_moment(), request.into(), &mut tenants).unwrap();
        }
        assert_eq!(tenants.too_long_names, 1, "{protocol:?}");
    }
}

/// Whoever sends such texts, and does not read what he is told of them, or stays when he was told, would have the server keep them.
#[test]
fn rule_109_texts_that_are_no_names_count_while_they_are_kept_and_of_long_ones_a_part_is() {
    const FAR_TOO_LONG: usize = 3 << 20;
    let long: Vec<_> = (0..4).map(|at| format!("{at}{}", "n".repeat(FAR_TOO_LONG))).collect();
    let names: Vec<_> = long.iter().map(String::as_str).chain(["xdstp:not a name", "a"]).map(str::to_owned).collect();
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut tenants = Tenants::serving();
        let mut stream = Stream::new(protocol, Settings::default());
        let request = |names: Vec<String>, nonce: String| match protocol {
            Protocol::Delta => {
                let type_url = CLUSTERS.to_owned();
                DeltaDiscoveryRequest {
                    type_url,
                    resource_names_subscribe: names,
                    response_nonce: nonce,
                    ..Default::default()
                }
                .encode_to_vec()
            }
            Protocol::Sotw => {
                let type_url = CLUSTERS.to_owned();
                DiscoveryRequest { type_url, resource_names: names, response_nonce: nonce, ..Default::default() }
                    .encode_to_vec()
            }
        };
        stream.handle_message(any_moment(), request(names.clone(), String::new()).into(), &mut tenants).unwrap();
        let kept = |tenants: &Tenants| tenants.kept.values().sum::<usize>();
        // 128 KiB of each, and those of SotW are known again later.
        let again = if protocol == Protocol::Sotw { 5 } else { 0 };
        assert_eq!(kept(&tenants), 4 * 129 + 1 + again, "{protocol:?}");
        let (mut told, mut responses) = (0, 0);
        while let Some(response) = stream.poll_transmit(any_moment(), &mut tenants).unwrap() {
            assert!(response.remaining() < 1 << 20, "{protocol:?}: {}", response.remaining());
            told += response.errors.max(response.removed);
            responses += 1;
            // A delta client answers, and says nothing new.
            let nonce = match protocol {
                Protocol::Delta => DeltaDiscoveryResponse::decode(response.into_bytes()).unwrap().nonce,
                Protocol::Sotw => DiscoveryResponse::decode(response.into_bytes()).unwrap().nonce,
            };
            let names = if protocol == Protocol::Sotw { names.clone() } else { Vec::new() };
            stream.handle_message(any_moment(), request(names, nonce).into(), &mut tenants).unwrap();
        }
        assert_eq!((told, kept(&tenants)), (5, again), "{protocol:?}: each once, in {responses} responses");
        assert_eq!(tenants.too_long_names, 4, "{protocol:?}");
        // What a client leaves is kept no more.
        if protocol == Protocol::Sotw {
            stream.handle_message(any_moment(), request(vec!["a".into()], "1".into()).into(), &mut tenants).unwrap();
        } else {
            let subscribe = |names: Vec<String>| request(names, String::new());
            stream.handle_message(any_moment(), subscribe(names.clone()).into(), &mut tenants).unwrap();
            assert_eq!(kept(&tenants), 4 * 129 + 1);
            let leave = DeltaDiscoveryRequest {
                type_url: CLUSTERS.to_owned(),
                resource_names_unsubscribe: names.clone(),
                ..Default::default()
            };
            stream.handle_message(any_moment(), leave.encode_to_vec().into(), &mut tenants).unwrap();
            assert_eq!(kept(&tenants), 0);
        }
    }
}
