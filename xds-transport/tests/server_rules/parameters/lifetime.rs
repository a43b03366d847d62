//! Selected resources that live for a time.

use std::time::Duration;

use bytes::Bytes;
use xds_transport::server::Reception;
use xds_transport::wire::{Node, Status};

use super::*;

#[test]
fn what_lives_for_a_time_is_looked_after_once_it_was_accepted() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    let frame = Frame::of_message(&CLUSTERS.into(), &payload("cart", "1"));
    server.put_frame(CLUSTERS, "cart", "1", frame.with_wrapper(Bytes::new(), Some(Duration::from_secs(30)), false));
    let client_features = vec!["xds.config.supports-resource-ttl".to_owned()];
    let request = DeltaDiscoveryRequest {
        node: Node { client_features, ..Default::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![Locator::new("cart", client.selector("a=1")).encode(Dialect::Final).unwrap()],
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    let response_nonce = Response::from_delta_in(Dialect::Final, told.into_bytes()).unwrap().nonce;
    assert!(client.stream.poll_transmit(server.now, &mut server.cache).unwrap().is_none());
    let ack = DeltaDiscoveryRequest { type_url: CLUSTERS.into(), response_nonce, ..Default::default() };
    client.stream.handle_message(server.now, ack.encode_to_vec().into(), &mut server.cache).unwrap();
    assert!(client.stream.leaves_work(server.now, &server.cache), "when that is, is known since then");
    let due = client.stream.poll_timeout().unwrap();
    server.now = due;
    assert_eq!(client.poll(&mut server), ["cart@1"]);
}

/// The resources of these names, each of which lives for thirty seconds, as a client that knows TTLs is sent them.
fn living(server: &mut Server, client: &mut Client, names: &[&str]) -> String {
    for name in names {
        let frame = Frame::of_message(&CLUSTERS.into(), &payload(name, "1"));
        server.put_frame(CLUSTERS, name, "1", frame.with_wrapper(Bytes::new(), Some(Duration::from_secs(30)), false));
    }
    let client_features = vec!["xds.config.supports-resource-ttl".to_owned()];
    let locator = |name: &&str| Locator::new(*name, client.selector("a=1")).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        node: Node { client_features, ..Default::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: names.iter().map(locator).collect(),
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    Response::from_delta_in(Dialect::Final, told.into_bytes()).unwrap().nonce
}

#[test]
fn rule_031_what_is_refreshed_is_refused_by_its_nack() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    let answer = |server: &mut Server, client: &mut Client, response_nonce: &str, error_detail| {
        let (type_url, response_nonce) = (CLUSTERS.into(), response_nonce.to_owned());
        let answer = DeltaDiscoveryRequest { type_url, response_nonce, error_detail, ..Default::default() };
        client.stream.handle_message(server.now, answer.encode_to_vec().into(), &mut server.cache).unwrap();
    };
    let reception = |client: &Client| client.stream.sessions().next().unwrap().reception(&"cart".parse().unwrap());
    let nonce = living(&mut server, &mut client, &["cart"]);
    answer(&mut server, &mut client, &nonce, None);
    server.now += Duration::from_secs(10);
    let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    assert_eq!(reception(&client), Reception::Unanswered);
    let nonce = Response::from_delta_in(Dialect::Final, told.into_bytes()).unwrap().nonce;
    answer(&mut server, &mut client, &nonce, Some(Status { code: 3, message: "bad".into() }));
    assert_eq!(reception(&client), Reception::Refused { nonce: 2 });
}

#[test]
fn rule_111_what_lives_for_a_time_and_is_gone_is_not_looked_after() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    living(&mut server, &mut client, &["cart"]);
    assert!(client.stream.poll_timeout().is_some());
    server.remove(CLUSTERS, "cart");
    assert_eq!(client.poll(&mut server), ["-cart"]);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_111_what_came_with_something_bad_is_refreshed_alone_until_that_is_accepted() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    let response_nonce = living(&mut server, &mut client, &["bad", "good"]);
    let error_detail = Some(Status { code: 3, message: "bad".into() });
    let nack = DeltaDiscoveryRequest { type_url: CLUSTERS.into(), response_nonce, error_detail, ..Default::default() };
    client.stream.handle_message(server.now, nack.encode_to_vec().into(), &mut server.cache).unwrap();
    server.now += Duration::from_secs(10);
    assert_eq!(client.poll(&mut server), ["bad@1", "good@1"], "which of them, each alone can tell");
    server.now += Duration::from_secs(10);
    assert_eq!(client.poll(&mut server), ["bad@1 good@1"], "both were accepted");
}
