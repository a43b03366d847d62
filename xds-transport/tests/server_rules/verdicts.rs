//! ACK and NACK: rules 21–24, 27, 31.

use prost::Message;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Status};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server, seconds};

#[test]
fn rule_021_a_nack_is_an_error_detail_whatever_its_code() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["a"]);
    sotw.names(&mut server, CLUSTERS, &["a"]);
    delta.nack(&mut server, CLUSTERS);
    sotw.nack(&mut server, CLUSTERS);
    for client in [&delta, &sotw] {
        let view = client.stream.sessions().next().unwrap();
        assert_eq!((view.tally.acks, view.tally.nacks), (0, 1));
        let nack = view.tally.last_nack.as_ref().unwrap();
        assert_eq!((nack.message.as_str(), nack.at), ("bad", server.now));
    }
    // A code of 0 beside a message is a NACK too; the version says nothing.
    let request = DiscoveryRequest {
        version_info: "unchanged".into(),
        type_url: CLUSTERS.into(),
        resource_names: vec!["a".into()],
        response_nonce: sotw.nonce(CLUSTERS),
        error_detail: Some(Status { code: 0, message: "b".into() }),
        ..Default::default()
    };
    server.put(CLUSTERS, "a", "2");
    sotw.poll(&mut server);
    let request = DiscoveryRequest { response_nonce: sotw.nonce(CLUSTERS), ..request };
    sotw.try_send(&mut server, request.encode_to_vec().into()).unwrap();
    assert_eq!(sotw.stream.sessions().next().unwrap().tally.nacks, 2);
}

#[test]
fn rule_022_one_sotw_request_is_ack_and_change_of_names() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a", "b"]), ["E b@1"]);
    assert_eq!(client.stream.sessions().next().unwrap().tally.acks, 1);
}

#[test]
fn rule_022_a_delta_ack_may_change_the_subscription() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let nonce = client.nonce(ENDPOINTS);
    let ask = Ask { of: ENDPOINTS, subscribe: &["b"], nonce: &nonce, ..Ask::default() };
    assert_eq!(client.ask(&mut server, &ask), ["E b@1"]);
    assert_eq!(client.stream.sessions().next().unwrap().tally.acks, 1);
}

#[test]
fn rule_023_what_was_rejected_is_not_sent_again_until_it_changes() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    for mut client in [Client::delta(), Client::sotw()] {
        server.put(CLUSTERS, "a", "1");
        client.want(&mut server, CLUSTERS, &[]);
        assert!(client.nack(&mut server, CLUSTERS).is_empty());
        server.now += seconds(5);
        assert!(client.poll(&mut server).is_empty());
        server.put(CLUSTERS, "a", "2");
        assert_eq!(client.poll(&mut server).len(), 1);
        assert!(client.poll(&mut server).is_empty());
    }
    // By name, as gRPC asks, too.
    for mut client in [Client::delta(), Client::sotw()] {
        client.want(&mut server, CLUSTERS, &["a", "b"]);
        assert!(client.nack(&mut server, CLUSTERS).is_empty());
        assert!(client.poll(&mut server).is_empty());
        server.put(CLUSTERS, "b", "2");
        assert_eq!(client.poll(&mut server).len(), 1);
        server.remove(CLUSTERS, "b");
        server.put(CLUSTERS, "b", "1");
    }
}

#[test]
fn rule_024_a_nack_of_what_is_old_already_is_answered_with_what_is_new() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut sotw = Client::sotw();
    sotw.names(&mut server, CLUSTERS, &["a"]);
    server.put(CLUSTERS, "a", "2");
    assert!(sotw.poll(&mut server).is_empty());
    assert_eq!(sotw.nack(&mut server, CLUSTERS), ["C a@2"]);
    let mut delta = Client::delta();
    delta.subscribe(&mut server, CLUSTERS, &["a"]);
    server.put(CLUSTERS, "a", "3");
    assert_eq!(delta.nack(&mut server, CLUSTERS), ["C a@3"]);
}

#[test]
fn rule_027_an_error_detail_of_any_code_is_a_nack() {
    for code in [13, 3, 99, -1, 0] {
        let mut server = Server::with(CLUSTERS, &["a"]);
        let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
        delta.subscribe(&mut server, CLUSTERS, &["a"]);
        sotw.names(&mut server, CLUSTERS, &["a"]);
        let (type_url, error_detail) = (CLUSTERS.into(), Some(Status { code, message: "no".into() }));
        let response_nonce = delta.nonce(CLUSTERS);
        let request = DeltaDiscoveryRequest { type_url, error_detail, response_nonce, ..Default::default() };
        delta.try_send(&mut server, request.encode_to_vec().into()).unwrap();
        let DeltaDiscoveryRequest { type_url, error_detail, .. } = request;
        let (response_nonce, resource_names) = (sotw.nonce(CLUSTERS), vec!["a".into()]);
        let request = DiscoveryRequest { type_url, error_detail, response_nonce, resource_names, ..Default::default() };
        sotw.try_send(&mut server, request.encode_to_vec().into()).unwrap();
        for client in [&delta, &sotw] {
            let tally = client.stream.sessions().next().unwrap().tally.clone();
            assert_eq!((tally.acks, tally.nacks), (0, 1), "{code}");
        }
    }
}

#[test]
fn rule_031_an_accepted_resource_of_a_rejected_response_is_sent_only_when_it_changes() {
    let mut server = Server::with(CLUSTERS, &["good", "bad"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["good", "bad"]);
    assert!(client.nack(&mut server, CLUSTERS).is_empty());
    server.put(CLUSTERS, "good", "1");
    assert!(client.poll(&mut server).is_empty());
    server.put(CLUSTERS, "good", "2");
    assert_eq!(client.poll(&mut server), ["C good@2"]);
}
