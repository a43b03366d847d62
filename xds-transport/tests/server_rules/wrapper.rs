//! What stands beside a body, and converting between the protocols: rules 81, 110, 121, 149.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{
    Any, DeltaDiscoveryResponse, DiscoveryResponse, Duration, RESOURCE_TYPE_URL, Resource, resource::CacheControl,
};
use xds_transport::{Frame, Misfit, Put, TypeRules, WrongType};
use xdstp_cache::Outcome;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, ROUTES, Server, payload};

const WRAPPED: &str = "xds.config.resource-in-sotw";
const TTL: &str = "xds.config.supports-resource-ttl";

fn full(of: &str, name: &str) -> Resource {
    Resource {
        version: "v".into(),
        resource: Some(Any { type_url: of.into(), value: payload(name, "v").into() }),
        name: name.into(),
        aliases: vec!["alias/1".into(), "alias/2".into()],
        ttl: Some(Duration { seconds: 60, nanos: 5 }),
        cache_control: Some(CacheControl { do_not_cache: true }),
        // A field inside it that nobody here knows.
        metadata: Bytes::from_static(b"\x0a\x05\x0a\x03abc\xf8\x07\x01"),
        ..Default::default()
    }
}

fn delta_response(resources: Vec<Resource>) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        type_url: resources[0].resource.clone().unwrap().type_url,
        resources,
        ..Default::default()
    }
}

#[test]
fn rule_081_a_frame_of_another_type_is_refused() {
    let any = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1")).any().clone();
    assert!(Frame::of_any(&ENDPOINTS.into(), any.clone()).is_ok());
    let error = Frame::of_any(&CLUSTERS.into(), any).unwrap_err();
    assert_eq!((error.inside.as_str(), error.expected.as_str()), (ENDPOINTS, CLUSTERS));
}

#[test]
fn rule_110_a_sotw_resource_is_wrapped_only_for_who_understands_it() {
    // What is told as a full state, and what is told by changes.
    for of in [LISTENERS, CLUSTERS, ROUTES, ENDPOINTS] {
        let mut server = Server::origin();
        server.receive_delta(&delta_response(vec![full(of, "a")]));
        for mut plain in [Client::sotw_with_ttl(), Client::sotw_with_ttl().with_features(&[TTL])] {
            plain.names(&mut server, of, &["a"]);
            assert_eq!(plain.sotw[0].resources, full(of, "a").resource.as_slice(), "bare, and without a TTL");
        }
        for (features, ttl) in [(vec![WRAPPED], false), (vec![WRAPPED, TTL], true)] {
            let mut client = Client::sotw_with_ttl().with_features(&features);
            client.names(&mut server, of, &["a"]);
            let any = &client.sotw[0].resources[0];
            assert_eq!(any.type_url, RESOURCE_TYPE_URL);
            let expected = Resource { ttl: full(of, "a").ttl.filter(|_| ttl), ..full(of, "a") };
            assert_eq!(Resource::decode(&*any.value).unwrap(), expected);
        }
    }
}

#[test]
fn rule_110_every_documented_name_of_a_feature_is_understood_and_no_other() {
    let mut server = Server::origin();
    server.receive_delta(&delta_response(vec![full(CLUSTERS, "a")]));
    server.receive_delta(&delta_response(vec![full(ENDPOINTS, "a")]));
    for (feature, wrapped) in [
        ("xds.config.resource-in-sotw", true),
        ("xds.config.supports-resource-in-sotw", true),
        ("xds.config.supports-resource-ttl", false),
        ("xds.config.resource-in-sotw.not", false),
        ("", false),
    ] {
        for of in [CLUSTERS, ENDPOINTS] {
            let mut client = Client::sotw_with_ttl().with_features(&["envoy.lb.any", feature]);
            client.names(&mut server, of, &["a"]);
            let any = &client.sotw[0].resources[0];
            assert_eq!(any.type_url == RESOURCE_TYPE_URL, wrapped, "{feature:?}");
            let ttl = wrapped.then(|| Resource::decode(&*any.value).unwrap().ttl).flatten();
            assert_eq!(ttl, None, "the wrapper alone says nothing of a TTL");
        }
    }
}

#[test]
fn rule_110_delta_carries_a_ttl_only_for_who_understands_it() {
    for of in [CLUSTERS, ENDPOINTS] {
        let mut server = Server::origin();
        server.receive_delta(&delta_response(vec![full(of, "a")]));
        for (mut client, ttl) in [(Client::delta(), false), (Client::delta().with_features(&[TTL]), true)] {
            client.subscribe(&mut server, of, &["a"]);
            assert_eq!(client.delta[0].resources[0].ttl.is_some(), ttl);
        }
    }
}

#[test]
fn rule_110_who_understands_the_wrapper_is_told_each_name_and_version() {
    for of in [CLUSTERS, ENDPOINTS] {
        let mut server = Server::with(of, &["a"]);
        let mut client = Client::sotw().with_features(&[WRAPPED]);
        client.names(&mut server, of, &["a"]);
        let resource = Resource::decode(&*client.sotw[0].resources[0].value).unwrap();
        assert_eq!((resource.name.as_str(), resource.version.as_str()), ("a", "1"));
        assert_eq!(resource.resource.unwrap().value, payload("a", "1"));
    }
}

#[test]
fn rule_121_what_stands_beside_a_body_passes_byte_for_byte() {
    // Fields the messages here do not have, between and after those they do.
    let mut encoded = Vec::new();
    let known = full(ENDPOINTS, "a");
    encoded.extend_from_slice(b"\x98\x06\x07");
    encoded.extend_from_slice(&known.encode_to_vec());
    encoded.extend_from_slice(b"\xa2\x06\x02hi\x9d\x06\x01\x02\x03\x04");
    let mut response = Vec::new();
    prost::encoding::encode_key(2, prost::encoding::WireType::LengthDelimited, &mut response);
    prost::encoding::encode_varint(encoded.len() as u64, &mut response);
    response.extend_from_slice(&encoded);
    DeltaDiscoveryResponse { type_url: ENDPOINTS.into(), ..Default::default() }.encode(&mut response).unwrap();
    let walked = xds_transport::Response::from_delta(response.into()).unwrap();
    let received = walked.resources.into_iter().next().unwrap();
    let frame = received.frame.unwrap();
    assert!(frame.do_not_cache());

    let mut server = Server::origin();
    let resource = frame.into_resource(received.version);
    let mut edit = server.cache.edit(server.now);
    edit.put(&ENDPOINTS.into(), &received.name, resource);
    let _ = edit.finish();
    let mut client = Client::delta().with_features(&[TTL]);
    let of = ENDPOINTS;
    client.try_send(&mut server, Ask { of, subscribe: &["a"], node: &client.node, ..Ask::default() }.encode()).unwrap();
    let sent = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap().into_bytes();
    let contains = |part: &[u8]| sent.windows(part.len()).any(|window| window == part);
    let mut beside = Resource { version: String::new(), resource: None, name: String::new(), ttl: None, ..known };
    let cache_control_and_metadata = Resource { aliases: Vec::new(), ..beside.clone() }.encode_to_vec();
    (beside.cache_control, beside.metadata) = (None, Bytes::new());
    let aliases = beside.encode_to_vec();
    let wrapper =
        [b"\x98\x06\x07", &aliases[..], &cache_control_and_metadata, b"\xa2\x06\x02hi\x9d\x06\x01\x02\x03\x04"]
            .concat();
    assert!(contains(&wrapper), "one run of bytes, in the order they came in");
    let response = DeltaDiscoveryResponse::decode(sent).unwrap();
    assert_eq!(response.resources, [full(ENDPOINTS, "a")]);
}

#[test]
fn rule_149_one_content_reaches_clients_of_both_protocols_from_origins_of_both() {
    let anys: Vec<_> =
        ["a", "b"].map(|name| Any { type_url: LISTENERS.into(), value: payload(name, "1").into() }).into();
    let wrapped = |(name, any): (&str, &Any)| Resource {
        version: "1".into(),
        name: name.into(),
        resource: Some(any.clone()),
        ..Default::default()
    };
    let mut from_delta = Server::origin();
    from_delta.receive_delta(&delta_response(["a", "b"].into_iter().zip(&anys).map(wrapped).collect()));
    let mut from_sotw = Server::origin();
    let response = DiscoveryResponse {
        version_info: "7".into(),
        type_url: LISTENERS.into(),
        resources: anys.clone(),
        ..Default::default()
    };
    from_sotw.receive_sotw(&response);
    for server in [&mut from_delta, &mut from_sotw] {
        let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
        delta.subscribe(server, LISTENERS, &[]);
        sotw.names(server, LISTENERS, &[]);
        let bodies: Vec<_> = delta.delta[0].resources.iter().map(|one| one.resource.clone().unwrap()).collect();
        assert_eq!(bodies, anys);
        assert_eq!(sotw.sotw[0].resources, anys);
    }
}

#[test]
fn rule_149_relays_agree_on_the_versions_they_make_up() {
    let any = Any { type_url: CLUSTERS.into(), value: payload("a", "1").into() };
    let response = |version: &str| DiscoveryResponse {
        version_info: version.into(),
        type_url: CLUSTERS.into(),
        resources: vec![any.clone()],
        ..Default::default()
    };
    let versions = ["1", "2"].map(|version| {
        let mut relay = Server::origin();
        relay.receive_sotw(&response(version));
        let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
        delta.subscribe(&mut relay, CLUSTERS, &[]);
        sotw.names(&mut relay, CLUSTERS, &[]);
        (delta.delta[0].resources[0].version.clone(), sotw.sotw[0].version_info.clone())
    });
    assert_eq!(versions[0], versions[1]);
    assert!(!versions[0].0.is_empty() && !versions[0].1.is_empty());
}

#[test]
fn rule_081_a_resource_of_another_type_is_not_put() {
    let mut server = Server::origin();
    let rules = TypeRules::envoy();
    let resource = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1")).into_resource(None);
    let name = "a".parse().unwrap();
    let mut edit = server.cache.edit(server.now);
    let mut put = |of: &str| edit.put_checked(&rules, &of.into(), &name, resource.clone());
    assert!(matches!(put(CLUSTERS), Err(Misfit::WrongType(WrongType { inside, .. })) if inside == ENDPOINTS));
    assert_eq!(put(ENDPOINTS), Ok(Outcome::Added));
    let _ = edit.finish();
    assert_eq!(server.cache.resources().count(), 1);
}

#[test]
fn rule_082_a_resource_with_another_name_inside_is_not_put() {
    let mut server = Server::origin();
    let rules = TypeRules::envoy();
    let mut edit = server.cache.edit(server.now);
    let mut put = |of: &str, name: &str, inside: &str| {
        let resource = Frame::of_message(&of.into(), &payload(inside, "1")).into_resource(None);
        let name = name.parse().unwrap();
        edit.put_checked(&rules, &of.into(), &name, resource)
    };
    for inside in ["b", ""] {
        let error = put(CLUSTERS, "a", inside).unwrap_err();
        assert!(matches!(&error, Misfit::WrongName { inside: found, .. } if found == inside), "{error}");
    }
    let xdstp = "xdstp://x/envoy.config.cluster.v3.Cluster/a?b=1&c=2";
    let other_order = "xdstp://x/envoy.config.cluster.v3.Cluster/a?c=2&b=1";
    assert_eq!(put(CLUSTERS, xdstp, other_order), Ok(Outcome::Added), "rule 94");
    // Nobody said where that has its name.
    assert_eq!(put("type.example/T", "a", "b"), Ok(Outcome::Added));
    let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    assert_eq!(put(hosts, "routes/shop.example", "shop"), Ok(Outcome::Added), "rule 107");
    let _ = edit.finish();
    assert_eq!(server.cache.resources().count(), 3);
}
