//! What is passed on can be decoded by whoever is sent it: what cannot is rejected, and nothing else with it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use support::{CLUSTERS, Server};
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DiscoveryRequest, Duration, RESOURCE_TYPE_URL, Struct};
use xds_transport::{Protocol, Received, Response, TypeRules};

/// The messages of a client, as deep as it decodes them to take a response in.
mod client {
    use super::{Any, BTreeMap, Duration, Struct};

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Delta {
        #[prost(message, repeated, tag = "2")]
        pub(super) resources: Vec<Resource>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Sotw {
        #[prost(message, repeated, tag = "2")]
        pub(super) resources: Vec<Any>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Resource {
        #[prost(string, tag = "1")]
        pub(super) version: String,
        #[prost(message, optional, tag = "2")]
        pub(super) resource: Option<Any>,
        #[prost(string, tag = "3")]
        pub(super) name: String,
        #[prost(string, repeated, tag = "4")]
        pub(super) aliases: Vec<String>,
        #[prost(message, optional, tag = "6")]
        pub(super) ttl: Option<Duration>,
        #[prost(message, optional, tag = "7")]
        pub(super) cache_control: Option<xds_transport::wire::resource::CacheControl>,
        #[prost(message, optional, tag = "8")]
        pub(super) resource_name: Option<ResourceName>,
        #[prost(message, optional, tag = "9")]
        pub(super) metadata: Option<Metadata>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ResourceName {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(message, optional, tag = "2")]
        pub(super) dynamic_parameter_constraints: Option<Constraints>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Constraints {}

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Metadata {
        #[prost(btree_map = "string, message", tag = "1")]
        pub(super) filter_metadata: BTreeMap<String, Struct>,
        #[prost(btree_map = "string, message", tag = "2")]
        pub(super) typed_filter_metadata: BTreeMap<String, Any>,
    }
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(number, &content.to_vec(), &mut out);
    out
}

fn body(name: &str) -> Vec<u8> {
    Any { type_url: CLUSTERS.into(), value: support::payload(name, "1").into() }.encode_to_vec()
}

fn resource(name: &str, more: &[u8]) -> Vec<u8> {
    [field(1, b"v"), field(2, &body(name)), field(3, name.as_bytes()), more.to_vec()].concat()
}

/// Both protocols of a response with these encoded resources.
fn received(resources: &[Vec<u8>]) -> [Response; 2] {
    let delta: Vec<u8> = resources.iter().flat_map(|one| field(2, one)).collect();
    let wrapped = |one: &Vec<u8>| field(2, &[field(1, RESOURCE_TYPE_URL.as_bytes()), field(2, one)].concat());
    let sotw: Vec<u8> = resources.iter().flat_map(wrapped).collect();
    let whole = |resources: Vec<u8>| Bytes::from([resources, field(4, CLUSTERS.as_bytes())].concat());
    [Response::from_delta(whole(delta)).unwrap(), Response::from_sotw(whole(sotw), &TypeRules::envoy()).unwrap()]
}

/// Whether clients decode what a server of these resources sends them.
fn is_decoded_by_clients(resources: Vec<Received>) -> Result<(), prost::DecodeError> {
    const FEATURES: &[u8] = b"\x52\x1bxds.config.resource-in-sotw\x52\x20xds.config.supports-resource-ttl";
    let mut server = Server::origin();
    let count = resources.len();
    for received in resources {
        let resource = received.frame.unwrap().into_resource(received.version);
        let mut edit = server.cache.edit(server.now);
        edit.put(&CLUSTERS.into(), &received.name, resource);
        let _ = edit.finish();
    }
    for (protocol, node) in [(Protocol::Delta, FEATURES), (Protocol::Sotw, FEATURES), (Protocol::Sotw, b"")] {
        let mut settings = Settings::default();
        settings.ttl_in_sotw = true;
        let mut stream = Stream::new(protocol, settings);
        let (node, type_url) = (Bytes::from_static(node), CLUSTERS.to_owned());
        let request = match protocol {
            Protocol::Delta => DeltaDiscoveryRequest { node, type_url, ..Default::default() }.encode_to_vec(),
            Protocol::Sotw => DiscoveryRequest { node, type_url, ..Default::default() }.encode_to_vec(),
        };
        stream.handle_message(server.now, request.into(), &mut server.cache).unwrap();
        let Some(transmit) = stream.poll_transmit(server.now, &mut server.cache).unwrap() else {
            assert_eq!(count, 0);
            continue;
        };
        let message = transmit.into_bytes();
        if protocol == Protocol::Delta {
            assert_eq!(client::Delta::decode(message)?.resources.len(), count);
            continue;
        }
        let anys = client::Sotw::decode(message)?.resources;
        assert_eq!(anys.len(), count);
        for any in anys.into_iter().filter(|any| any.type_url == RESOURCE_TYPE_URL) {
            client::Resource::decode(any.value)?;
        }
    }
    Ok(())
}

/// A part of a resource, and the reason it is rejected for.
fn malformed() -> Vec<(Vec<u8>, &'static str)> {
    let entry = |key: &[u8], value: &[u8]| [field(1, key), field(2, value)].concat();
    let nested = (0..40).fold(b"\x20\x01".to_vec(), |value, _| field(5, &field(1, &field(2, &value))));
    vec![
        (field(1, b"\xff"), "version: text that is not UTF-8"),
        (b"\x08\x01".to_vec(), "version: not of its type"),
        (field(2, b"\x0a\xff"), "resource: not a protobuf message"),
        (field(2, b"\x10\x01"), "value: not of its type"),
        (field(2, b"\x0a\x01\xff"), "type_url: text that is not UTF-8"),
        (b"\x10\x01".to_vec(), "resource: not of its type"),
        (b"\x18\x01".to_vec(), "name: not of its type"),
        (field(4, b"\xff"), "aliases: text that is not UTF-8"),
        (b"\x20\x01".to_vec(), "aliases: not of its type"),
        (field(6, b"\x08"), "ttl: not a protobuf message"),
        (field(6, &field(1, b"60")), "seconds: not of its type"),
        (field(6, b"\x10\x80\x94\xeb\xdc\x03"), "ttl: not a duration of zero or more"),
        (field(6, &Duration { seconds: -1, nanos: 0 }.encode_to_vec()), "ttl: not a duration of zero or more"),
        (b"\x35\x01\x02\x03\x04".to_vec(), "ttl: not of its type"),
        (field(7, b"x"), "cache_control: not a protobuf message"),
        (field(7, &field(1, b"1")), "do_not_cache: not of its type"),
        (field(8, b"\x0a\x01\xff"), "name: text that is not UTF-8"),
        (field(8, &field(2, b"x")), "dynamic_parameter_constraints: not a protobuf message"),
        (field(9, b"abc"), "metadata: not a protobuf message"),
        (field(9, &field(1, b"x")), "filter_metadata: not a protobuf message"),
        (field(9, &field(1, &entry(b"\xff", b""))), "filter_metadata: text that is not UTF-8"),
        (field(9, &field(1, &entry(b"k", &field(1, &entry(b"k", b"\x1a\x01\xff"))))), "string_value: text that is not"),
        (field(9, &field(1, &entry(b"k", &field(1, &entry(b"k", &nested))))), "nested too deep"),
        (field(9, &field(2, &entry(b"k", b"\x0a\x01\xff"))), "type_url: text that is not UTF-8"),
        (field(100, b"").into_iter().chain([0x0b, 0x0c]).collect(), "resource: not a protobuf message"),
        (b"\xa0\x06".to_vec(), "resource: not a protobuf message"),
    ]
}

#[test]
fn rule_029_a_resource_that_its_receiver_cannot_decode_is_rejected_alone() {
    for (part, reason) in malformed() {
        for response in received(&[resource("a", b""), resource("b", &part), resource("c", b"")]) {
            assert_eq!(response.rejected.len(), 1, "{reason} {part:x?}");
            assert_eq!(response.rejected[0].name, "b", "{reason}: the NACK names it");
            assert!(response.rejected[0].reason.contains(reason), "{reason}: {:?}", response.rejected);
            let names: Vec<_> = response.resources.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, ["a", "c"], "{reason}");
            is_decoded_by_clients(response.resources).unwrap();
        }
    }
}

#[test]
fn a_name_that_is_no_text_is_rejected_not_mended() {
    let nameless = [field(3, b"a\xff"), field(2, &body("a"))].concat();
    for response in received(&[nameless, resource("b", b"")]) {
        assert_eq!(response.rejected[0].name, "#0");
        assert_eq!(response.rejected[0].reason, "name: text that is not UTF-8");
        assert_eq!(response.resources.len(), 1);
    }
    let removed = Response::from_delta([field(6, b"a\xff"), field(6, b"b")].concat().into()).unwrap();
    assert_eq!(removed.removed.len(), 1);
    assert_eq!(removed.rejected[0].name, "removed_resources");
}

/// One field of a resource, by a number that means something, of any form.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(byte(), 0..6).boxed();
    let nested = |(number, content): (u32, Vec<u8>)| field(number, &content);
    let message = (1..3_u32, text.clone()).prop_map(nested).boxed();
    let deeper = (1..4_u32, message.clone()).prop_map(nested).boxed();
    let deepest = (1..7_u32, deeper.clone()).prop_map(nested).boxed();
    let content = prop_oneof![text, message, deeper, deepest];
    (1..11_u32, content, 0..6_u8).prop_map(|(number, content, form)| match form {
        0 => vec![(number << 3) as u8, 1],
        1 => vec![(number << 3 | 5) as u8, 1, 2, 3, 4],
        _ => field(number, &content),
    })
}

/// Mostly what is text, and what is the head of a field.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![3 => 0x08..0x1c_u8, 2 => 0..4_u8, 2 => 0x60..0x70_u8, 1 => any::<u8>()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn what_is_accepted_is_decoded_by_clients(
        parts in prop::collection::vec(part(), 0..4),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2),
    ) {
        let mut encoded = resource("a", &parts.concat());
        for (index, byte) in flips {
            let length = encoded.len();
            encoded[index.index(length)] = byte;
        }
        let strict = client::Resource::decode(encoded.as_slice());
        for response in received(&[encoded]) {
            prop_assert_eq!(response.resources.len() + response.rejected.len(), 1);
            if response.resources.iter().all(|received| received.frame.is_some()) {
                prop_assert!(response.rejected.len() == 1 || strict.is_ok());
                let decoded = is_decoded_by_clients(response.resources);
                prop_assert!(decoded.is_ok(), "{decoded:?}");
            }
        }
    }
}
