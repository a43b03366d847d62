//! The pages of envoyproxy/xds-relay, of keys with anything in them.

use prost::Message;
use serde_json::{Value, json};
use xds_transport::Protocol;
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Resource};

use crate::Running;
use crate::pages::page;
use crate::stream::{Call, Origin, framed};

const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const RULES: &str = "
fragments:
- rules: [{match: {any_match: true}, result: {request_node_fragment: {id_action: {exact: true}}}}]
- rules: [{match: {any_match: true}, result: {resource_names_fragment: {action: {exact: true}}}}]
";

/// A field of a message that is a message, or a text.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

/// Endpoints of a cluster, with one address.
fn assignment(name: &str, address: &str) -> Resource {
    // From the inside: a socket address, the address, the endpoint, that of the balancer, and those of a locality.
    let endpoint = [1, 1, 1, 2].iter().fold(field(2, address.as_bytes()), |inner, number| field(*number, &inner));
    let value = [field(1, name.as_bytes()), field(2, &endpoint)].concat();
    let resource = Some(Any { type_url: EDS.into(), value: value.into() });
    Resource { name: name.into(), version: "1".into(), resource, ..Resource::default() }
}

#[tokio::test]
async fn keys_are_found_that_have_slashes_and_names_in_them_and_so_are_their_endpoints() {
    let (directory, origin) = (tempfile::tempdir().unwrap(), Origin::listen().await);
    let rules = directory.path().join("rules.yaml");
    std::fs::write(&rules, RULES).unwrap();
    let origins = format!("[{{ name: up, server: '{}' }}]", origin.address());
    let relay = Running::start_with(&origins, &format!("aggregation: {}", rules.display())).await;
    let mut client = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let request = DeltaDiscoveryRequest {
        node: Node { id: "ns/pod".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: EDS.into(),
        resource_names_subscribe: vec!["a/b".into(), "c".into()],
        ..DeltaDiscoveryRequest::default()
    };
    client.send(framed(&request.encode_to_vec())).await;
    let mut served = origin.accept().await;
    let response = DeltaDiscoveryResponse {
        type_url: EDS.into(),
        nonce: "1".into(),
        resources: vec![assignment("a/b", "10.0.0.7"), assignment("c", "10.0.0.8")],
        ..DeltaDiscoveryResponse::default()
    };
    served.respond().send_data(framed(&response.encode_to_vec()), false).unwrap();
    client.message().await.unwrap();

    let group = "ns/pod_(name 0)";
    let entry = |key: &str, names: &[&str]| {
        let named: Vec<_> = names.iter().map(|name| json!({ "Name": name, "Version": "1" })).collect();
        let resp = json!({ "VersionInfo": "1", "Resources": { "Endpoints": named }, "TypeURL": EDS });
        json!({ "Cache": [{ "Key": key, "NumRequests": 1, "Resp": resp }] })
    };
    let at = |key: &str| key.replace(' ', "%20");
    for (path, expected) in [
        (at(&format!("/cache/{group}")), entry(group, &["a/b", "c"])),
        ("/cache/ns/*".to_owned(), entry(group, &["a/b", "c"])),
        ("/cache/ns/pod_a/b".to_owned(), entry("ns/pod_a/b", &["a/b"])),
        ("/cache/version/ns/pod_c".to_owned(), json!({ "Version": "1" })),
        ("/cache/eds/ns/pod_a/b".to_owned(), json!({ "Key": "ns/pod_a/b", "Version": "1", "Endpoints": ["10.0.0.7"] })),
        (
            at(&format!("/cache/eds/{group}")),
            json!({ "Key": group, "Version": "1", "Endpoints": ["10.0.0.7", "10.0.0.8"] }),
        ),
    ] {
        let (status, body) = page(&relay, &path).await;
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"));
        assert_eq!((status, body), (200, expected), "{path}");
    }
    let (status, body) = page(&relay, "/cache/eds/ns/none").await;
    assert!(status == 404 && body.contains("\"Message\": "), "{body}");
}
