//! What goes over the wire, against prost.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use support::{CLUSTERS, Payload, Server};
use xds_transport::server::{Settings, Stream, Transmit};
use xds_transport::wire::{
    Any, ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Duration,
    RESOURCE_TYPE_URL, Resource, ResourceError, Status, resource::CacheControl,
};
use xds_transport::{Protocol, Response, TypeRules};

/// Client features: fields 10 of a node.
const FEATURES: &[u8] = b"\x52\x1bxds.config.resource-in-sotw\x52\x20xds.config.supports-resource-ttl";

prop_compose! {
    fn ttl()(seconds in 0..1_000_000_i64, nanos in 0..1_000_000_000) -> Duration {
        Duration { seconds, nanos }
    }
}

prop_compose! {
    /// A name, with a body that has it; sizes around those where a body gets a chunk of its own.
    fn named()(
        name in "[a-z]{1,8}",
        size in prop_oneof![0..200_usize, 4000..4200_usize, 16_000..17_000_usize, 60_000..60_001_usize],
    ) -> (String, Vec<u8>) {
        let payload = Payload { name: name.clone(), eds: None, body: "x".repeat(size) };
        (name, payload.encode_to_vec())
    }
}

prop_compose! {
    fn resource()(
        (name, body) in named(),
        version in "[a-z0-9]{1,4}",
        aliases in prop::collection::vec("[a-z]{1,4}", 0..3),
        ttl in prop::option::of(ttl()),
        cache_control in prop::option::of(any::<bool>()),
        metadata in prop::option::of(("[a-z]{0,4}", any::<u64>())),
    ) -> Resource {
        Resource {
            version,
            resource: Some(Any { type_url: CLUSTERS.into(), value: body.into() }),
            name,
            aliases,
            ttl,
            cache_control: cache_control.map(|do_not_cache| CacheControl { do_not_cache }),
            metadata: metadata.map(|(key, unknown)| metadata_of(&key, unknown)).unwrap_or_default(),
            ..Default::default()
        }
    }
}

/// An encoded `Metadata`, with a field that nobody here knows.
fn metadata_of(key: &str, unknown: u64) -> Bytes {
    let mut encoded = Vec::new();
    prost::encoding::bytes::encode(1, &[&[0x0a, key.len() as u8], key.as_bytes()].concat(), &mut encoded);
    prost::encoding::uint64::encode(127, &unknown, &mut encoded);
    encoded.into()
}

fn resources() -> impl Strategy<Value = Vec<Resource>> {
    prop::collection::vec(resource(), 0..12).prop_map(|resources| {
        let named: BTreeMap<_, _> = resources.into_iter().map(|one| (one.name.clone(), one)).collect();
        named.into_values().collect()
    })
}

fn server(resources: &[Resource]) -> Server {
    let mut server = Server::origin();
    server.receive_delta(&DeltaDiscoveryResponse {
        type_url: CLUSTERS.into(),
        resources: resources.to_vec(),
        ..Default::default()
    });
    server
}

/// Takes a response in chunks, the first behind a gRPC frame header.
fn take(mut transmit: Transmit, header: bool) -> Bytes {
    let mut all = Vec::new();
    let length = transmit.remaining();
    if header {
        all.extend_from_slice(&transmit.chunk_after(&[0; 5]).unwrap());
        assert_eq!(all.drain(..5).collect::<Vec<_>>(), [0; 5]);
    }
    while let Some(chunk) = transmit.next_chunk() {
        assert!(!chunk.is_empty());
        all.extend_from_slice(&chunk);
        assert_eq!(transmit.remaining(), length - all.len());
    }
    assert_eq!(all.len(), length);
    all.into()
}

#[test]
fn a_resource_is_not_named_like_a_collection() {
    for name in ["*", "xdstp://x/T/d/*"] {
        let resource = Some(Any { type_url: CLUSTERS.into(), ..Default::default() });
        let resources = vec![Resource { name: name.into(), resource, ..Default::default() }];
        let message = DeltaDiscoveryResponse { type_url: CLUSTERS.into(), resources, ..Default::default() };
        let walked = Response::from_delta(message.encode_to_vec().into()).unwrap();
        assert_eq!((walked.resources.len(), walked.rejected.len()), (0, 1));
        assert_eq!(walked.rejected[0].name, name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn chunks_of_a_delta_response_are_what_prost_decodes(resources in resources(), header in any::<bool>()) {
        let mut server = server(&resources);
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        let request =
            DeltaDiscoveryRequest { node: FEATURES.into(), type_url: CLUSTERS.into(), ..Default::default() };
        stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
        let mut decoded = Vec::new();
        while let Some(transmit) = stream.poll_transmit(server.now, &mut server.cache).unwrap() {
            let count = transmit.resources;
            let response = DeltaDiscoveryResponse::decode(take(transmit, header)).unwrap();
            prop_assert_eq!(response.resources.len(), count as usize);
            decoded.extend(response.resources);
        }
        decoded.sort_by(|a, b| a.name.cmp(&b.name));
        prop_assert_eq!(decoded, resources);
    }

    #[test]
    fn chunks_of_a_sotw_response_are_what_prost_decodes(
        resources in resources(),
        header in any::<bool>(),
        wrapped in any::<bool>(),
    ) {
        let mut server = server(&resources);
        let mut settings = Settings::default();
        settings.ttl_in_sotw = true;
        let mut stream = Stream::new(Protocol::Sotw, settings);
        let node = if wrapped { FEATURES.into() } else { Bytes::new() };
        let request = DiscoveryRequest { node, type_url: CLUSTERS.into(), ..Default::default() };
        stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
        let transmit = stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
        let response = DiscoveryResponse::decode(take(transmit, header)).unwrap();
        let bare: BTreeSet<_> = resources.iter().map(|one| one.resource.clone().unwrap().value).collect();
        prop_assert_eq!(response.resources.len(), resources.len());
        for any in response.resources {
            if any.type_url == RESOURCE_TYPE_URL {
                prop_assert!(wrapped);
                prop_assert!(resources.contains(&Resource::decode(any.value).unwrap()));
            } else {
                prop_assert!(bare.contains(&any.value));
            }
        }
    }

    #[test]
    fn a_delta_response_is_walked_as_prost_decodes_it(
        resources in resources(),
        removed in prop::collection::btree_set("[A-Z]{1,8}", 0..4),
        version in "[a-z]{0,4}",
        nonce in "[a-z]{0,4}",
        identifier in prop::option::of("[a-z]{0,4}"),
        errors in 0..3_usize,
    ) {
        let error = |n| ResourceError {
            resource_name: Some(xds_transport::wire::WireResourceName { name: format!("e{n}"), ..Default::default() }),
            error_detail: Some(Status { code: 5, message: "gone".into() }),
        };
        let message = DeltaDiscoveryResponse {
            system_version_info: version,
            resources,
            type_url: CLUSTERS.into(),
            nonce,
            removed_resources: removed.into_iter().collect(),
            control_plane: identifier.map(|identifier| ControlPlane { identifier }),
            resource_errors: (0..errors).map(error).collect(),
            ..Default::default()
        };
        let encoded = Bytes::from(message.encode_to_vec());
        let walked = Response::from_delta(encoded).unwrap();
        prop_assert_eq!(&walked.rejected, &[]);
        prop_assert_eq!(walked.version, message.system_version_info);
        prop_assert_eq!(walked.nonce, message.nonce);
        prop_assert_eq!(walked.type_url, message.type_url);
        prop_assert_eq!(walked.control_plane, message.control_plane.unwrap_or_default().identifier);
        prop_assert_eq!(walked.errors, message.resource_errors);
        let names: Vec<_> = walked.removed.iter().map(ToString::to_string).collect();
        prop_assert_eq!(names, message.removed_resources);
        prop_assert_eq!(walked.resources.len(), message.resources.len());
        for (walked, prost) in walked.resources.into_iter().zip(message.resources) {
            let frame = walked.frame.unwrap();
            prop_assert_eq!(walked.name.as_str(), prost.name);
            prop_assert_eq!(walked.version, Some(prost.version.into()));
            prop_assert_eq!(frame.any(), &prost.resource.unwrap().encode_to_vec());
            let ttl = prost.ttl.map(|ttl| std::time::Duration::new(ttl.seconds as u64, ttl.nanos as u32));
            prop_assert_eq!((frame.ttl(), walked.ttl), (ttl, ttl));
            prop_assert_eq!(frame.do_not_cache(), prost.cache_control.is_some_and(|control| control.do_not_cache));
            let beside = Resource {
                aliases: prost.aliases,
                cache_control: prost.cache_control,
                metadata: prost.metadata,
                ..Default::default()
            };
            prop_assert_eq!(frame.wrapper(), &beside.encode_to_vec());
        }
    }

    #[test]
    fn a_sotw_response_is_walked_as_prost_decodes_it(resources in resources(), wrap in any::<bool>()) {
        let any = |one: &Resource| match wrap {
            true => Any { type_url: RESOURCE_TYPE_URL.into(), value: one.encode_to_vec().into() },
            false => one.resource.clone().unwrap(),
        };
        let message = DiscoveryResponse {
            version_info: "7".into(),
            resources: resources.iter().map(any).collect(),
            type_url: CLUSTERS.into(),
            nonce: "n".into(),
            ..Default::default()
        };
        let walked = Response::from_sotw(message.encode_to_vec().into(), &TypeRules::envoy()).unwrap();
        prop_assert_eq!(&walked.rejected, &[]);
        prop_assert_eq!((walked.version.as_str(), walked.nonce.as_str()), ("7", "n"));
        prop_assert_eq!(walked.resources.len(), resources.len());
        for (walked, prost) in walked.resources.into_iter().zip(resources) {
            prop_assert_eq!(walked.name.as_str(), prost.name);
            prop_assert_eq!(walked.version.is_some(), wrap);
            let frame = walked.frame.unwrap();
            prop_assert_eq!(frame.any(), &prost.resource.unwrap().encode_to_vec());
        }
    }

    #[test]
    fn what_arrived_leaves_as_it_was(resources in resources()) {
        let first = server(&resources);
        let mut second = Server::origin();
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        let mut first = first;
        let request =
            DeltaDiscoveryRequest { node: FEATURES.into(), type_url: CLUSTERS.into(), ..Default::default() };
        stream.handle_message(first.now, request.encode_to_vec().into(), &mut first.cache).unwrap();
        while let Some(transmit) = stream.poll_transmit(first.now, &mut first.cache).unwrap() {
            second.receive_delta(&DeltaDiscoveryResponse::decode(transmit.into_bytes()).unwrap());
        }
        for one in &resources {
            let held = |server: &Server| {
                server.cache.resource(&CLUSTERS.into(), &one.name.parse().unwrap()).cloned()
            };
            prop_assert!(held(&first).is_some());
            prop_assert_eq!(held(&second), held(&first));
        }
    }

    #[test]
    fn bytes_that_prost_decodes_are_walked_and_none_panic(
        mut bytes in resources().prop_map(|resources| {
            DeltaDiscoveryResponse { type_url: CLUSTERS.into(), resources, ..Default::default() }.encode_to_vec()
        }),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        for (index, byte) in flips {
            let length = bytes.len();
            bytes[index.index(length)] = byte;
        }
        let bytes = Bytes::from(bytes);
        let _ = Response::from_sotw(bytes.clone(), &TypeRules::envoy());
        if let (Ok(prost), Ok(walked)) = (DeltaDiscoveryResponse::decode(bytes.clone()), Response::from_delta(bytes)) {
            prop_assert_eq!(prost.nonce, walked.nonce);
            prop_assert!(walked.resources.len() <= prost.resources.len());
        }
    }
}

/// A message that is there twice is one, of which each field has the value that came last.
#[test]
fn a_cache_control_that_is_there_twice_is_one() {
    for (controls, expected) in [
        (&b"\x3a\x02\x08\x01\x3a\x00"[..], true),
        (b"\x3a\x00\x3a\x02\x08\x01", true),
        (b"\x3a\x02\x08\x01\x3a\x02\x08\x00", false),
        (b"\x3a\x04\x08\x01\x08\x00", false),
        (b"\x3a\x00", false),
    ] {
        let any = Any { type_url: CLUSTERS.into(), value: Bytes::from_static(b"\x0a\x01a") };
        let resource = Resource { name: "a".into(), resource: Some(any), ..Default::default() };
        let resource = [&resource.encode_to_vec()[..], controls].concat();
        let mut encoded = DeltaDiscoveryResponse { type_url: CLUSTERS.into(), ..Default::default() }.encode_to_vec();
        prost::encoding::bytes::encode(2, &resource, &mut encoded);
        let prost = DeltaDiscoveryResponse::decode(&encoded[..]).unwrap();
        assert_eq!(prost.resources[0].cache_control.is_some_and(|control| control.do_not_cache), expected);
        let walked = Response::from_delta(encoded.into()).unwrap();
        assert_eq!(walked.resources[0].frame.as_ref().unwrap().do_not_cache(), expected, "{controls:?}");
    }
}
