//! An origin of two servers, of which the first dies and comes back, over gRPC on either side.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::SendStream;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use xds_relay::config::XdstpStreams;
use xds_transport::Protocol;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};

use crate::Running;
use crate::stream::{Call, Origin, Served, framed};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const NODE: &[u8] = b"\x0a\x01n";

/// Clusters by name, version and a word that their bodies have.
pub(crate) fn say(answers: &mut SendStream<Bytes>, nonce: &str, clusters: &[(&str, &str, &str)]) {
    let resource = |(name, version, body): &(&str, &str, &str)| {
        let mut value = Vec::new();
        prost::encoding::string::encode(1, &(*name).to_owned(), &mut value);
        prost::encoding::string::encode(1000, &(*body).to_owned(), &mut value);
        let any = Any { type_url: CLUSTERS.into(), value: value.into() };
        Resource { name: (*name).into(), version: (*version).into(), resource: Some(any), ..Resource::default() }
    };
    let resources = clusters.iter().map(resource).collect();
    let response =
        DeltaDiscoveryResponse { type_url: CLUSTERS.into(), nonce: nonce.into(), resources, ..Default::default() };
    answers.send_data(framed(&response.encode_to_vec()), false).unwrap();
}

/// What the relay asks of a server next.
pub(crate) async fn asked(served: &mut Served) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest::decode(served.receiving.message().await.unwrap().unwrap()).unwrap()
}

/// The names that a first request asks for, and the versions that it tells.
pub(crate) fn first(request: &DeltaDiscoveryRequest) -> (BTreeSet<&str>, Vec<&str>) {
    let versions = request.initial_resource_versions.iter().filter_map(|entry| text_at(entry, &[2]));
    let names = request.resource_names_subscribe.iter().map(String::as_str).collect();
    (names, versions.filter(|version| !version.is_empty()).collect())
}

pub(crate) async fn client(relay: &Running, names: &[&str]) -> Call {
    let mut call = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let request = DeltaDiscoveryRequest {
        node: Bytes::from_static(NODE),
        type_url: CLUSTERS.into(),
        resource_names_subscribe: names.iter().map(|name| (*name).into()).collect(),
        ..Default::default()
    };
    call.sending.send_data(framed(&request.encode_to_vec()), false).unwrap();
    call
}

/// What a client is told next, in one response: names with the words of their bodies, and what is gone.
pub(crate) async fn told(call: &mut Call) -> Vec<String> {
    let response = DeltaDiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
    let body = |resource: &Resource| text_at(&resource.resource.as_ref().unwrap().value, &[1000]).unwrap().to_owned();
    let there = response.resources.iter().map(|resource| format!("{}={}", resource.name, body(resource)));
    there.chain(response.removed_resources.iter().map(|name| format!("-{name}"))).collect()
}

pub(crate) async fn page(admin: SocketAddr, path: &str) -> String {
    let mut connection = TcpStream::connect(admin).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).await.unwrap();
    page
}

/// How each server is doing, and how many scopes it feeds.
async fn servers(relay: &Running) -> Vec<(String, u64)> {
    let page = page(relay.admin.unwrap(), "/config_dump").await;
    let dump: serde_json::Value = serde_json::from_str(page.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let servers = dump["origins"][0]["streams"][0]["servers"].as_array().unwrap();
    let of = |of: &serde_json::Value| (of["state"].as_str().unwrap().to_owned(), of["feeds"].as_u64().unwrap());
    servers.iter().map(of).collect()
}

#[tokio::test]
async fn client_rule_069_the_second_serves_what_is_new_and_the_first_takes_over_again_end_to_end() {
    let (a, b) = (Origin::listen().await, Origin::listen().await);
    let addresses = [a.address(), b.address()];
    let origins = format!("[{{ name: up, servers: ['{}', '{}'] }}]", addresses[0], addresses[1]);
    let relay = Running::start(&origins).await;
    let mut holder = client(&relay, &["x"]).await;
    let mut by_a = a.accept().await;
    assert_eq!(first(&asked(&mut by_a).await), (["x"].into(), vec![]));
    let mut of_a = by_a.respond();
    say(&mut of_a, "1", &[("x", "1", "one")]);
    assert_eq!(told(&mut holder).await, ["x=one"]);

    // It dies, and somebody asks for something that it did not say.
    drop((a, of_a));
    by_a.cut();
    let mut new = client(&relay, &["y"]).await;
    let mut by_b = b.accept().await;
    assert_eq!(first(&asked(&mut by_b).await), (["x", "y"].into(), vec![]), "no version that the other gave");
    let mut of_b = by_b.respond();
    say(&mut of_b, "1", &[("x", "another", "one"), ("y", "1", "one")]);
    assert_eq!(told(&mut new).await, ["y=one"]);
    assert_eq!(servers(&relay).await, [("fails".into(), 0), ("answers".into(), 1)]);
    // The first that the other client hears since: nothing was gone, and what is equal was not sent.
    say(&mut of_b, "2", &[("x", "1", "two")]);
    assert_eq!(told(&mut holder).await, ["x=two"], "new content, by a version that was there");

    // It comes back, with what the second has, and is asked for everything.
    let a = Origin::listen_at(addresses[0]).await;
    let mut by_a = a.accept().await;
    assert_eq!(first(&asked(&mut by_a).await), (["x", "y"].into(), vec![]));
    let mut of_a = by_a.respond();
    say(&mut of_a, "1", &[("x", "7", "two"), ("y", "7", "one")]);
    // The second is left, whatever it was about to say.
    while let Ok(Some(_)) = by_b.receiving.message().await {}
    assert_eq!(servers(&relay).await, [("answers".into(), 1), ("not asked".into(), 0)]);
    say(&mut of_a, "2", &[("x", "8", "three"), ("y", "8", "two")]);
    assert_eq!(told(&mut holder).await, ["x=three"]);
    assert_eq!(told(&mut new).await, ["y=two"]);
    let metrics = page(relay.admin.unwrap(), "/metrics").await;
    for (at, switches, feeds) in [(0, 1, 1), (1, 1, 0)] {
        let labels = format!("{{origin=\"up\",server=\"{}\"}}", addresses[at]);
        assert!(metrics.contains(&format!("\nxds_relay_origin_switches_total{labels} {switches}\n")), "{metrics}");
        assert!(metrics.contains(&format!("\nxds_relay_origin_in_use{labels} {feeds}\n")), "{metrics}");
    }
}

#[tokio::test]
async fn an_origin_that_is_reached_otherwise_is_resumed_on_another_connection_and_clients_notice_nothing() {
    let a = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", a.address())).await;
    let mut holder = client(&relay, &["x"]).await;
    let mut before = a.accept().await;
    assert_eq!(first(&asked(&mut before).await), (["x"].into(), vec![]));
    let mut answers = before.respond();
    say(&mut answers, "1", &[("x", "1", "one")]);
    assert_eq!(told(&mut holder).await, ["x=one"]);

    let (mut config, reloader) = (relay.reloader.config(), relay.reloader.clone());
    config.origins[0].keepalive *= 2;
    let reloaded = tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap();
    assert_eq!((reloaded.applied, reloaded.needs_restart), (vec!["origins[0].keepalive".to_owned()], vec![]));
    while let Ok(Some(_)) = before.receiving.message().await {}
    let mut after = a.accept().await;
    assert_eq!(first(&asked(&mut after).await), (["x"].into(), vec!["1"]));
    let mut answers = after.respond();
    say(&mut answers, "1", &[("x", "2", "two")]);
    assert_eq!(told(&mut holder).await, ["x=two"], "nothing came before that");

    // Where what is asked for is another thing, too, all of it waits.
    let (mut config, reloader) = (relay.reloader.config(), relay.reloader.clone());
    config.origins[0].keepalive *= 2;
    config.origins[0].xdstp = XdstpStreams::ByNode;
    let reloaded = tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap();
    assert_eq!(reloaded.applied, [""; 0]);
    assert_eq!(reloaded.needs_restart, ["origins[0].keepalive", "origins[0].xdstp"]);
    say(&mut answers, "2", &[("x", "3", "three")]);
    assert_eq!(told(&mut holder).await, ["x=three"]);
}

#[tokio::test]
async fn another_server_takes_the_place_of_one_and_clients_are_told_what_differs() {
    let (a, b) = (Origin::listen().await, Origin::listen().await);
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", a.address())).await;
    let mut holder = client(&relay, &["x", "y"]).await;
    let mut by_a = a.accept().await;
    assert_eq!(first(&asked(&mut by_a).await), (["x", "y"].into(), vec![]));
    let mut of_a = by_a.respond();
    say(&mut of_a, "1", &[("x", "1", "one"), ("y", "1", "one")]);
    let mut held = told(&mut holder).await;
    held.sort();
    assert_eq!(held, ["x=one", "y=one"]);

    let (mut config, reloader) = (relay.reloader.config(), relay.reloader.clone());
    let server = format!("http://{}", b.address()).parse().unwrap();
    config.origins[0] = xds_relay::config::Origin::server("up", server);
    let reloaded = tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap();
    assert_eq!((reloaded.applied, reloaded.needs_restart), (vec!["origins[0].server".to_owned()], vec![]));
    while let Ok(Some(_)) = by_a.receiving.message().await {}
    let mut by_b = b.accept().await;
    assert_eq!(first(&asked(&mut by_b).await), (["x", "y"].into(), vec![]), "no version that the other gave");
    let mut of_b = by_b.respond();
    say(&mut of_b, "1", &[("x", "other", "one"), ("y", "1", "two")]);
    assert_eq!(told(&mut holder).await, ["y=two"], "what is equal is not sent, whatever it is called");
    // What is under its name on the pages is what it is now.
    let page = page(relay.admin.unwrap(), "/metrics").await;
    assert!(page.contains("\nxds_relay_upstream_connected{origin=\"up\"} 1\n"), "{page}");
    assert!(page.contains("\nxds_relay_upstream_connects_total{origin=\"up\"} 2\n"), "{page}");
}
