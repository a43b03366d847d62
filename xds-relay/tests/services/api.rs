//! What the admin API tells of a relay, its clients and its resources, over loopback.

use bytes::Bytes;
use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use xds_relay::api::{Client, ClientState, Clients, Explained, Named, OriginState, Origins, Resources, Status};
use xds_transport::Protocol;
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Locality, Node, Resource, Status as RpcStatus,
};

use crate::Running;
use crate::admin_guard::asked as post;
use crate::pages::page;
use crate::stream::{Call, Origin, framed, in_time};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RULES: &str = "
fragments:
- rules:
  - {match: {request_node_match: {cluster_match: {exact_match: edge}}}, result: {string_fragment: edge}}
  - {match: {any_match: true}, result: {request_node_fragment: {cluster_action: {exact: true}}}}
";

async fn told<T: DeserializeOwned>(relay: &Running, path: &str) -> T {
    let (status, body) = page(relay, &format!("/api/v1/{path}")).await;
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// The client once it is in a state.
async fn in_state(relay: &Running, state: ClientState) -> Client {
    in_time(async {
        loop {
            let clients: Clients = told(relay, "clients?node=n1&search=eu-1b").await;
            if let Some(row) = clients.clients.iter().find(|row| row.state == state) {
                return told(relay, &format!("clients/{}?type={CDS}&name=web", row.id)).await;
            }
        }
    })
    .await
}

fn request(node: bool, nonce: &str, error: Option<&str>) -> Bytes {
    let names: &[&str] = if node { &["web", "none"] } else { &[] };
    let locality = Some(Locality { zone: "eu-1b".into(), ..Locality::default() });
    let says = Node { id: "n1".into(), cluster: "mesh".into(), locality, ..Node::default() };
    let node = if node { says.encode_to_vec().into() } else { Bytes::new() };
    let request = DeltaDiscoveryRequest {
        node,
        type_url: CDS.into(),
        resource_names_subscribe: names.iter().map(|name| (*name).into()).collect(),
        response_nonce: nonce.into(),
        error_detail: error.map(|message| RpcStatus { code: 3, message: message.into() }),
        ..DeltaDiscoveryRequest::default()
    };
    framed(&request.encode_to_vec())
}

fn response(version: &str, removed: &[&str]) -> Bytes {
    let value = [&[0x0a, 3], &b"web"[..], &[0x22, 2, 8, version.as_bytes()[0]]].concat();
    let resource = Resource {
        name: "web".into(),
        version: version.into(),
        resource: Some(Any { type_url: CDS.into(), value: value.into() }),
        ..Resource::default()
    };
    let response = DeltaDiscoveryResponse {
        type_url: CDS.into(),
        nonce: version.into(),
        resources: vec![resource],
        removed_resources: removed.iter().map(|name| (*name).into()).collect(),
        ..DeltaDiscoveryResponse::default()
    };
    framed(&response.encode_to_vec())
}

#[tokio::test]
async fn a_client_is_told_of_from_its_first_request_to_its_words_as_it_rejects() {
    let (directory, origin) = (tempfile::tempdir().unwrap(), Origin::listen().await);
    let rules = directory.path().join("rules.yaml");
    std::fs::write(&rules, RULES).unwrap();
    let origins = format!("[{{ name: up, server: '{}' }}]", origin.address());
    let relay = Running::start_with(&origins, &format!("aggregation: {}", rules.display())).await;
    let idle: Status = told(&relay, "status").await;
    assert_eq!((idle.ready, idle.origins[0].state, idle.clients.all), (true, OriginState::Idle, 0));

    let mut client = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    client.send(request(true, "", None)).await;
    let mut served = origin.accept().await;
    let waiting = in_state(&relay, ClientState::Waiting).await;
    let Explained { known, version, sent, rules, .. } = waiting.explained.unwrap();
    assert_eq!((known, version, sent), (false, None, false));
    assert!(waiting.wants[0].since_seconds < 3600, "{:?}", waiting.wants[0]);
    let verdicts: Vec<_> = rules.iter().map(|rule| (rule.line, &*rule.verdict, &*rule.words)).collect();
    assert_eq!(verdicts, [(4, "not_matched", "cluster is \"mesh\", not \"edge\""), (5, "matched", "mesh")]);

    let mut answers = served.respond();
    answers.send_data(response("1", &["none"]), false).unwrap();
    let sent = DeltaDiscoveryResponse::decode(client.message().await.unwrap()).unwrap();
    let unanswered = in_state(&relay, ClientState::Waiting).await.explained.unwrap();
    assert_eq!((unanswered.sent, unanswered.answer.as_deref()), (true, Some("unanswered")));
    client.send(request(false, &sent.nonce, None)).await;
    let synced = in_state(&relay, ClientState::Synced).await;
    assert_eq!((synced.row.groups, synced.row.cluster), (vec!["mesh".to_owned()], "mesh".to_owned()));
    assert_eq!(synced.wants[0].names, ["none", "web"]);
    let explained = synced.explained.unwrap();
    assert_eq!(explained.answer.as_deref(), Some("accepted"));
    assert_eq!((explained.wanted_as.as_deref(), explained.version.as_deref()), (Some("web"), Some("1")));
    assert_eq!(explained.origin.map(|origin| (origin.name, origin.state)), Some(("up".into(), OriginState::Up)));

    pages_of_the_original(&relay).await;

    answers.send_data(response("2", &[]), false).unwrap();
    let sent = DeltaDiscoveryResponse::decode(client.message().await.unwrap()).unwrap();
    client.send(request(false, &sent.nonce, Some("no such field"))).await;
    let rejected = in_state(&relay, ClientState::Rejected).await.explained.unwrap();
    assert_eq!((rejected.version.as_deref(), rejected.answer.as_deref()), (Some("2"), Some("rejected")));
    assert_eq!(rejected.rejection.unwrap().message, "no such field");
    assert!(rejected.reasons.iter().any(|reason| reason.contains("rejected it: \"no such field\"")));

    let origins: Origins = told(&relay, "origins").await;
    let up = &origins.origins[0];
    assert_eq!((up.status.resources, &*up.upstreams[0].group, up.upstreams[0].connected), (1, "mesh", true));
    assert_eq!(up.upstreams[0].subscriptions, 2);
    let status: Status = told(&relay, "status").await;
    assert_eq!((status.clients.rejected, status.origins[0].resources, status.resources[CDS]), (1, 1, 1));
    let none: Named = told(&relay, &format!("resource?type={CDS}&name=none")).await;
    assert_eq!((&none.held[0].row.version, none.held[0].wanted_by.len()), (&None, 1));
    let web: Named = told(&relay, &format!("resource?type={CDS}&name=web")).await;
    for short in ["cluster", "Cluster", "cluster.v3.Cluster", "envoy.config.cluster.v3.Cluster"] {
        let by_short: Named = told(&relay, &format!("resource?type={short}&name=web")).await;
        assert_eq!(by_short.held.len(), web.held.len(), "{short}");
        let listed: Resources = told(&relay, &format!("resources?type={short}")).await;
        assert!(listed.resources.iter().any(|row| row.type_url == CDS), "{short}");
    }
    let (status, words) = page(&relay, "/api/v1/resource?type=clusterr&name=web").await;
    assert!(status == 400 && words.contains("no type \"clusterr\": give a type URL or one of cluster, "), "{words}");
    assert_eq!(web.held[0].content.as_ref().unwrap()["name"], "web");
    let (status, _) = page(&relay, "/api/v1/clients/99").await;
    assert_eq!(status, 404);
}

/// As scripts for envoyproxy/xds-relay ask for them; one client of the group `mesh` has the cluster `web`.
async fn pages_of_the_original(relay: &Running) {
    let held = json!({ "Key": "mesh", "Resp": {
        "VersionInfo": "1", "Resources": { "Clusters": [{ "Name": "web", "Version": "1" }] }, "TypeURL": CDS,
    }, "NumRequests": 1 });
    let mut verbose = held.clone();
    verbose["Requests"] = json!([{ "node": { "id": "n1" }, "resource_names": ["none", "web"], "type_url": CDS }]);
    for (path, expected) in [
        ("/cache", json!({ "Cache": [held] })),
        ("/cache/mesh", json!({ "Cache": [held] })),
        ("/cache/me*", json!({ "Cache": [held] })),
        ("/cache?verbose=true", json!({ "Cache": [verbose] })),
        ("/cache/mesh?verbose=true", json!({ "Cache": [verbose] })),
        ("/cache/mesh?verbose=false", json!({ "Cache": [held] })),
        ("/cache/keys", json!({ "Names": ["mesh"] })),
        ("/cache/version/mesh", json!({ "Version": "1" })),
    ] {
        let (status, body) = page(relay, path).await;
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, expected), "{path}");
    }
    for (path, expected) in [
        ("/cache/none", (200, "")),
        ("/cache/no*", (200, "")),
        ("/cache/none/of/them", (200, "")),
        ("/ready", (200, "ready\n")),
    ] {
        let (status, body) = page(relay, path).await;
        assert_eq!((status, body.as_str()), expected, "{path}");
    }
    let (status, body) = page(relay, "/cache/version/none").await;
    assert!(status == 404 && body.contains("\"Message\": "), "{body}");
    for path in ["/cache", "/cache/mesh", "/cache/keys", "/cache/version/mesh", "/server_info"] {
        let io = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
        let posted = post(io, "POST", path, None).await;
        assert!(posted.starts_with("HTTP/1.1 200 "), "{path}: {posted}");
    }
    for (path, words) in [
        ("/cache/clear", "`linger`"),
        ("/cache/clear/mesh", "`linger`"),
        ("/cache/clear/ns/pod", "`linger`"),
        ("/debug/pprof/heap", "/metrics"),
        ("/debug/pprof/", "/metrics"),
    ] {
        let (status, body) = page(relay, path).await;
        assert!(status == 501 && body.contains(words), "{path}: {body}");
    }
    for (path, words) in [
        ("/api/v1/orders", "orders are not taken here: /api/v1/releases says where, as `orders`\n"),
        ("/api/v1/none", "there is no such page: / names those that there are\n"),
    ] {
        assert_eq!(page(relay, path).await, (404, words.to_owned()));
    }
    let (status, body) = page(relay, "/server_info").await;
    assert_eq!((status, serde_json::from_str::<Status>(&body).unwrap().ready), (200, true));
}

#[tokio::test]
async fn resources_come_in_pages_and_secrets_do_not_come() {
    let directory = tempfile::tempdir().unwrap();
    let mut text = "resources:\n".to_owned();
    (0..600).for_each(|number| text += &format!("- {{ '@type': {CDS}, name: c{number} }}\n"));
    text += &format!("- {{ '@type': {SDS}, name: s, generic_secret: {{ secret: {{ inline_string: sesame }} }} }}\n");
    std::fs::write(directory.path().join("a.yaml"), text).unwrap();
    let relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let (mut names, mut after) = (Vec::new(), String::new());
    for pages in 1.. {
        let part: Resources = told(&relay, &format!("resources?type=Cluster&search=c&limit=250{after}")).await;
        names.extend(part.resources.into_iter().map(|row| row.name));
        let Some(next) = part.next else {
            assert_eq!(pages, 3);
            break;
        };
        after = format!("&after={next}");
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 600);

    let (_, secret) = page(&relay, &format!("/api/v1/resource?type={SDS}&name=s")).await;
    assert!(secret.contains("\"hidden\":") && !secret.contains("sesame"), "{secret}");
    let status: Status = told(&relay, "status").await;
    assert_eq!((status.origins[0].state, status.origins[0].resources), (OriginState::Up, 601));
}
