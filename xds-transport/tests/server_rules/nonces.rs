//! Nonces, versions, ACK and NACK: rules 13, 16–19, 21–24, 27, 31, 33–38.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

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
    use prost::Message;
    let request = xds_transport::wire::DiscoveryRequest {
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
    use prost::Message;
    let request = xds_transport::wire::DiscoveryRequest {
        version_info: "unchanged".into(),
        type_url: CLUSTERS.into(),
        resource_names: vec!["a".into()],
        response_nonce: sotw.nonce(CLUSTERS),
        error_detail: Some(xds_transport::wire::Status { code: 0, message: "b".into() }),
        ..Default::default()
    };
    server.put(CLUSTERS, "a", "2");
    sotw.poll(&mut server);
    let request = xds_transport::wire::DiscoveryRequest { response_nonce: sotw.nonce(CLUSTERS), ..request };
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
        server.now += crate::support::seconds(5);
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
    use prost::Message;
    use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Status};
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

#[test]
fn rule_033_a_sotw_version_changes_with_the_content_and_only_with_it() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut versions = Vec::new();
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    for change in 0..3 {
        match change {
            0 => server.put(CLUSTERS, "a", "2"),
            1 => server.remove(CLUSTERS, "b"),
            _ => server.put(CLUSTERS, "b", "2"),
        }
        client.ack(&mut server, CLUSTERS);
    }
    versions.extend(client.sotw.iter().map(|response| response.version_info.clone()));
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), 4, "{versions:?}");
    // Rule 34: the same content has the same version on another server, in whatever order it came.
    let mut replica = Server::with(CLUSTERS, &["b", "a"]);
    let mut client = Client::sotw();
    client.names(&mut replica, CLUSTERS, &[]);
    assert_eq!(client.sotw[0].version_info, versions[0]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn rule_033_equal_versions_are_equal_contents(
        changes in prop::collection::vec((0..3_usize, prop::option::of(0..3_u8)), 1..30),
    ) {
        let mut server = Server::origin();
        let mut client = Client::sotw();
        client.names(&mut server, CLUSTERS, &[]);
        let mut contents = BTreeMap::new();
        for (name, version) in changes {
            match version {
                Some(version) => server.put(CLUSTERS, ["a", "b", "c"][name], &version.to_string()),
                None => server.remove(CLUSTERS, ["a", "b", "c"][name]),
            }
            client.settle(&mut server);
            let last = client.sotw.last().unwrap();
            let mut bodies: Vec<_> = last.resources.iter().map(|any| any.value.clone()).collect();
            bodies.sort();
            let content = contents.entry(last.version_info.clone()).or_insert_with(|| bodies.clone());
            prop_assert_eq!(&*content, &bodies);
        }
        let distinct: BTreeSet<_> = contents.values().collect();
        prop_assert_eq!(distinct.len(), contents.len(), "and equal contents are equal versions");
    }
}

#[test]
fn rule_034_the_hash_over_a_type_is_part_of_the_contract() {
    let mut server = Server::origin();
    server.put(CLUSTERS, "a", "2");
    server.put(CLUSTERS, "b", "2");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    assert_eq!(client.sotw[0].version_info, "48652f5a1a8a2175735c1616ae768564");
}

#[test]
fn rule_034_the_version_an_origin_gave_is_passed_on() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    server.cache.set_type_version(&CLUSTERS.into(), Some("origin-5".into()));
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    assert_eq!(client.sotw[0].version_info, "origin-5");
}

#[test]
fn rule_035_versions_survive_a_change_of_replica() {
    let frame = || xds_transport::Frame::of_message(&CLUSTERS.into(), b"same");
    let resource = frame().into_resource(None);
    assert_eq!(resource, frame().into_resource(None));
    let version = resource.version.clone();
    let mut replica = Server::origin();
    let mut edit = replica.cache.edit(replica.now);
    edit.put(&CLUSTERS.into(), &"a".parse().unwrap(), resource);
    let _ = edit.finish();
    let mut client = Client::delta();
    let holds = &[("a", version.as_str())];
    assert_eq!(client.ask(&mut replica, &Ask { of: CLUSTERS, holds, ..Ask::default() }), ["C"]);
}

#[test]
fn rule_035_the_content_hash_is_part_of_the_contract() {
    let frame = xds_transport::Frame::of_message(&"t/T".into(), b"body");
    assert_eq!(frame.into_resource(None).version.as_str(), "d97ae0cd71a60053b323113f3e2d9a21");
}

#[test]
fn rule_036_a_version_of_the_whole_is_nothing_to_delta() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    for version in ["1", "2"] {
        server.cache.set_type_version(&CLUSTERS.into(), Some(version.into()));
        assert!(client.poll(&mut server).is_empty());
        assert!(client.ack(&mut server, CLUSTERS).is_empty());
    }
}

#[test]
fn rule_037_equal_content_is_not_sent() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["*"]);
    sotw.names(&mut server, CLUSTERS, &[]);
    sotw.ack(&mut server, CLUSTERS);
    server.woken.clear();
    server.put(CLUSTERS, "a", "1");
    assert!(server.woken.is_empty());
    assert!(delta.poll(&mut server).is_empty() && sotw.poll(&mut server).is_empty());
}

#[test]
fn rule_037_a_removal_of_what_never_was_changes_nothing() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["*"]);
    delta.ack(&mut server, CLUSTERS);
    sotw.names(&mut server, CLUSTERS, &[]);
    sotw.ack(&mut server, CLUSTERS);
    server.remove(CLUSTERS, "b");
    assert!(sotw.poll(&mut server).is_empty());
    // A client that was away may hold it (rule 100), and is told once.
    assert_eq!(delta.poll(&mut server), ["C -b"]);
    delta.ack(&mut server, CLUSTERS);
    server.remove(CLUSTERS, "b");
    assert!(delta.poll(&mut server).is_empty() && sotw.poll(&mut server).is_empty());
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
