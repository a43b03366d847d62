//! Nonces, and requests that cross a response: rules 13, 16–19, 22, 38.

use std::collections::BTreeSet;

use prost::Message;
use xds_transport::wire::DiscoveryRequest;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server};

#[test]
fn rule_013_nonces_are_not_empty_and_never_repeat_on_a_stream() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["a"]);
    delta.subscribe(&mut server, ENDPOINTS, &["a"]);
    sotw.names(&mut server, CLUSTERS, &["a"]);
    sotw.names(&mut server, ENDPOINTS, &["a"]);
    for version in ["2", "3", "4"] {
        server.put(CLUSTERS, "a", version);
        server.put(ENDPOINTS, "a", version);
        delta.settle(&mut server);
        sotw.ack(&mut server, CLUSTERS);
        sotw.settle(&mut server);
    }
    let delta: Vec<_> = delta.delta.into_iter().map(|response| response.nonce).collect();
    let sotw: Vec<_> = sotw.sotw.into_iter().map(|response| response.nonce).collect();
    for nonces in [delta, sotw] {
        assert!(nonces.len() >= 6 && nonces.iter().all(|nonce| !nonce.is_empty()));
        assert_eq!(nonces.iter().collect::<BTreeSet<_>>().len(), nonces.len());
    }
}

#[test]
fn rule_016_sotw_does_not_answer_a_stale_nonce() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    let stale = client.nonce(ENDPOINTS);
    server.put(ENDPOINTS, "a", "2");
    assert_eq!(client.ack(&mut server, ENDPOINTS), ["E a@2"]);
    let request = sotw_request(&["a", "b"], &stale);
    client.try_send(&mut server, request).unwrap();
    assert!(client.poll(&mut server).is_empty());
    server.put(ENDPOINTS, "a", "3");
    assert!(client.poll(&mut server).is_empty(), "the stale request acknowledged nothing");
}

#[test]
fn rule_016_a_stale_nonce_changes_nothing_after_the_ack_either() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    let stale = client.nonce(ENDPOINTS);
    server.put(ENDPOINTS, "a", "2");
    client.ack(&mut server, ENDPOINTS);
    assert_eq!(client.ack(&mut server, ENDPOINTS), [""; 0]);
    // Nothing is on its way: whoever says this answers what is long answered, and nobody repeats its names.
    for nonce in [&*stale, "never", &format!("0{}", client.nonce(ENDPOINTS))] {
        client.try_send(&mut server, sotw_request(&["b"], nonce)).unwrap();
        assert_eq!(client.poll(&mut server), [""; 0], "{nonce:?}");
    }
    server.put(ENDPOINTS, "b", "2");
    server.put(ENDPOINTS, "a", "3");
    assert_eq!(client.poll(&mut server), ["E a@3"]);
}

#[test]
fn rule_018_a_request_without_nonce_is_stale_after_the_ack_too() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    assert_eq!(client.ack(&mut server, ENDPOINTS), [""; 0]);
    client.try_send(&mut server, sotw_request(&["a", "b"], "")).unwrap();
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(client.poll(&mut server), [""; 0], "b was not asked for");
    // Every type has a first request of its own.
    assert_eq!(client.names(&mut server, CLUSTERS, &["a"]), ["C"]);
}

#[test]
fn rule_022_over_delta_a_nonce_is_compared_byte_by_byte() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let nonce = client.nonce(ENDPOINTS);
    for odd in [format!("00{nonce}"), format!("+{nonce}"), format!("{nonce} ")] {
        client.ask(&mut server, &Ask { of: ENDPOINTS, nonce: &odd, ..Ask::default() });
    }
    assert_eq!(client.stream.sessions().next().unwrap().tally.acks, 0);
    client.ack(&mut server, ENDPOINTS);
    assert_eq!(client.stream.sessions().next().unwrap().tally.acks, 1);
}

#[test]
fn rule_017_names_in_a_stale_request_come_with_the_ack() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    // On its way while the response was: nonce-less, because the client has seen none.
    client.try_send(&mut server, sotw_request(&["a", "b"], "")).unwrap();
    assert!(client.poll(&mut server).is_empty());
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a", "b"]), ["E b@1"]);
}

#[test]
fn rule_017_a_name_that_left_in_a_stale_request_and_comes_back_with_the_ack_is_sent_again() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    let crossing = sotw_request(&["b"], &client.nonce(ENDPOINTS));
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(client.poll(&mut server), ["E b@2"]);
    client.try_send(&mut server, crossing).unwrap();
    assert!(client.poll(&mut server).is_empty());
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a", "b"]), ["E a@1"]);
}

#[test]
fn rule_018_before_the_first_response_a_request_supersedes_the_one_before() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.try_send(&mut server, sotw_request(&["a"], "")).unwrap();
    assert_eq!(client.names(&mut server, ENDPOINTS, &["b"]), ["E b@1"]);
    client.try_send(&mut server, sotw_request(&["a"], "")).unwrap();
    client.ack(&mut server, ENDPOINTS);
    server.put(ENDPOINTS, "a", "2");
    assert!(client.poll(&mut server).is_empty(), "a nonce-less request after a response is stale");
}

fn sotw_request(names: &[&str], nonce: &str) -> bytes::Bytes {
    let request = DiscoveryRequest {
        type_url: ENDPOINTS.into(),
        resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
        response_nonce: nonce.into(),
        ..Default::default()
    };
    request.encode_to_vec().into()
}

#[test]
fn rule_019_a_delta_nonce_never_gates_a_subscription() {
    let mut server = Server::with(ENDPOINTS, &["a", "b", "c"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let first = client.nonce(ENDPOINTS);
    server.put(ENDPOINTS, "a", "2");
    client.poll(&mut server);
    let of = ENDPOINTS;
    assert_eq!(client.ask(&mut server, &Ask { of, subscribe: &["b"], nonce: &first, ..Ask::default() }), ["E b@1"]);
    assert_eq!(client.ask(&mut server, &Ask { of, subscribe: &["c"], nonce: "never", ..Ask::default() }), ["E c@1"]);
    client.ask(&mut server, &Ask { of, unsubscribe: &["c"], nonce: &first, ..Ask::default() });
    server.put(ENDPOINTS, "c", "2");
    assert!(client.poll(&mut server).is_empty());
}

#[test]
fn rule_038_an_answer_to_an_older_subscription_is_not_sent() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut delta = Client::delta();
    delta.subscribe(&mut server, ENDPOINTS, &["a", "b"]);
    server.put(ENDPOINTS, "a", "2");
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(delta.unsubscribe(&mut server, ENDPOINTS, &["a"]), ["E b@2"]);
    let mut sotw = Client::sotw();
    sotw.names(&mut server, ENDPOINTS, &["a", "b"]);
    server.put(ENDPOINTS, "a", "3");
    assert!(sotw.names(&mut server, ENDPOINTS, &["b"]).is_empty());
}
