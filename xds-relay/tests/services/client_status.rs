//! What all clients have, as a relay tells it by CSDS.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::client_status::{
    ClientConfig, ClientResourceStatus, ClientStatusRequest, ClientStatusResponse, STREAM_METHOD,
};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Status};

use crate::Running;
use crate::stream::{Call, framed, in_time};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

async fn clients(relay: &Running, contents: bool) -> Vec<ClientConfig> {
    let mut call = Call::open(relay.address, STREAM_METHOD).await;
    let request = ClientStatusRequest { exclude_resource_contents: !contents, ..ClientStatusRequest::default() };
    call.send(framed(&request.encode_to_vec())).await;
    ClientStatusResponse::decode(call.message().await.unwrap()).unwrap().config
}

/// What the client has, once nothing is under way.
async fn settled(relay: &Running, contents: bool) -> Vec<(String, ClientResourceStatus, String, bool)> {
    in_time(async {
        loop {
            let [client] = clients(relay, contents).await.try_into().unwrap();
            assert_eq!(Node::decode(client.node).unwrap_or_default().id, "n1");
            let told = client.generic_xds_configs.into_iter().map(|of| {
                let words = of.error_state.as_ref().map_or_else(String::new, |error| error.details.clone());
                let body = of.error_state.as_ref().map_or(&of.xds_config, |error| &error.failed_configuration);
                (of.name.clone(), of.client_status(), words, !body.is_empty())
            });
            let told: Vec<_> = told.collect();
            if !told.is_empty() && told.iter().all(|(_, status, ..)| *status != ClientResourceStatus::Requested) {
                return told;
            }
        }
    })
    .await
}

fn request(type_url: &str, names: &[&str], nonce: &str, error: Option<&str>) -> Bytes {
    let request = DeltaDiscoveryRequest {
        node: Node { id: "n1".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: type_url.into(),
        resource_names_subscribe: names.iter().map(|name| (*name).into()).collect(),
        response_nonce: nonce.into(),
        error_detail: error.map(|message| Status { code: 3, message: message.into() }),
        ..DeltaDiscoveryRequest::default()
    };
    framed(&request.encode_to_vec())
}

async fn files(text: &str, more: &str) -> (Running, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mesh.yaml"), text).unwrap();
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().display());
    (Running::start_with(&origins, more).await, directory)
}

#[tokio::test]
async fn what_clients_accepted_rejected_and_lack_is_told_and_secrets_are_not() {
    use ClientResourceStatus::{Acked, DoesNotExist, Nacked};
    let secret = format!("{{ '@type': {SDS}, name: s, generic_secret: {{ secret: {{ inline_string: sesame }} }} }}");
    let text = format!("resources:\n- {{ '@type': {CDS}, name: a }}\n- {{ '@type': {CDS}, name: b }}\n- {secret}\n");
    let (relay, _files) = files(&text, "client_status: true").await;
    assert_eq!(clients(&relay, true).await, [], "there is nobody");

    let mut client = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    client.send(request(CDS, &["*", "none"], "", None)).await;
    let sent = DeltaDiscoveryResponse::decode(client.message().await.unwrap()).unwrap();
    client.send(request(CDS, &[], &sent.nonce, None)).await;
    let row = |name: &str, status, words: &str, body| (name.to_owned(), status, words.to_owned(), body);
    let clusters = [row("a", Acked, "", true), row("b", Acked, "", true), row("none", DoesNotExist, "", false)];
    assert_eq!(settled(&relay, true).await, clusters);
    assert!(settled(&relay, false).await.iter().all(|(.., body)| !body), "the contents were left out");

    client.send(request(SDS, &["s"], "", None)).await;
    let sent = DeltaDiscoveryResponse::decode(client.message().await.unwrap()).unwrap();
    client.send(request(SDS, &[], &sent.nonce, Some("no such vault"))).await;
    let told = settled(&relay, true).await;
    assert!(told.contains(&row("s", Nacked, "no such vault", false)), "{told:?}");
}

#[tokio::test]
async fn it_is_told_only_where_the_configuration_says_so() {
    let (relay, _files) = files("resources: []\n", "").await;
    let mut call = Call::open(relay.address, STREAM_METHOD).await;
    call.send(framed(&ClientStatusRequest::default().encode_to_vec())).await;
    assert_eq!(call.status().await.0, 12);
}

#[tokio::test]
async fn it_is_told_to_those_whose_rule_allows_it() {
    let rules =
        "client_status: true\nclients: [{ match: { token: $tokens }, client_status: true }, { match: { any: true } }]";
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef").unwrap();
    let rules = rules.replace("$tokens", &tokens.display().to_string());
    let (relay, _files) = files("resources: []\n", &rules).await;
    let (none, bearer): (&[(&str, &[u8])], _) = (&[], [("authorization", b"Bearer 0123456789abcdef" as &[u8])]);
    for (headers, expected) in [(none, "7"), (&bearer, "")] {
        let mut call = Call::open_with(relay.address, STREAM_METHOD, headers).await;
        call.send(framed(&ClientStatusRequest::default().encode_to_vec())).await;
        let headers = call.response().await;
        let status = headers.get("grpc-status").map_or("", |status| status.to_str().unwrap());
        assert_eq!(status, expected, "{headers:?}");
    }
}

/// Two streams of which the nodes differ: who is picked is told of, and nobody else.
#[tokio::test]
async fn by_node_matchers_some_clients_are_told_of() {
    let (relay, _files) = files(&format!("resources:\n- {{ '@type': {CDS}, name: a }}\n"), "client_status: true").await;
    let mut calls = Vec::new();
    for id in ["shop-1", "bank-1"] {
        let mut call = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
        let request = DeltaDiscoveryRequest {
            node: Node { id: id.into(), ..Node::default() }.encode_to_vec().into(),
            type_url: CDS.into(),
            ..DeltaDiscoveryRequest::default()
        };
        call.send(framed(&request.encode_to_vec())).await;
        call.message().await.unwrap();
        calls.push(call);
    }
    // NodeMatcher.node_id (1), a StringMatcher with a prefix (2).
    let prefix = |text: &str| {
        let length = u8::try_from(text.len()).unwrap();
        Bytes::from([&[10, length + 2, 18, length], text.as_bytes()].concat())
    };
    for (matchers, expected) in [
        (vec![], &["shop-1", "bank-1"][..]),
        (vec![prefix("shop-")], &["shop-1"]),
        (vec![prefix("shop-"), prefix("bank-")], &["shop-1", "bank-1"]),
        (vec![prefix("none-")], &[]),
    ] {
        let mut call = Call::open(relay.address, STREAM_METHOD).await;
        let request = ClientStatusRequest { node_matchers: matchers, ..ClientStatusRequest::default() };
        call.send(framed(&request.encode_to_vec())).await;
        let config = ClientStatusResponse::decode(call.message().await.unwrap()).unwrap().config;
        let ids: Vec<_> = config.into_iter().map(|client| Node::decode(client.node).unwrap().id).collect();
        assert_eq!(ids, expected);
    }
}
