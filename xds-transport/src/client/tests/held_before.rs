//! What was held before there was any stream.

use super::*;
use crate::Frame;

fn before(of: &str, version: &str) -> xdstp_cache::Resource<Frame> {
    Frame::new(body(CDS, of, version).encode_to_vec().into()).into_resource(Some(version.into()))
}

fn hold(client: &mut Client, names: &[(&str, &str)], collections: &[&str]) {
    let held = names.iter().map(|(of, version)| (name(of), before(of, version))).collect();
    let collections = collections.iter().map(|text| interest_of(text)).collect();
    client.stream.apply(Command::Hold(CDS.into(), held, collections));
}

#[test]
fn rule_083_an_origin_is_told_its_versions_on_the_first_stream() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["*", "named", GLOB]);
    let held = [("a", "1"), ("b", "1"), ("named", "1"), (MEMBER_A, "1")];
    hold(&mut client, &held, &["*", GLOB]);
    client.connect();
    let first = client.delta().unwrap();
    assert_eq!(initial_versions(&first), owned(&[("a", "1"), ("b", "1"), ("named", "1"), (MEMBER_A, "1")]));
    let update = client.accept(&delta(CDS, "n1", &[("a", "1"), ("c", "1")], &["b"]));
    assert_eq!((changed(&update), removed(&update)), (vec![("c", "1")], vec!["b"]));
    assert_eq!(update.repeated.iter().map(|changed| changed.name.to_string()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn what_nobody_wants_is_not_held() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["a"]);
    hold(&mut client, &[("a", "1"), ("b", "1"), (MEMBER_A, "1")], &["*"]);
    client.connect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1")]));
}

#[test]
fn rule_083_members_of_what_was_not_answered_go_without_their_versions() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &[GLOB]);
    hold(&mut client, &[(MEMBER_A, "1")], &[]);
    client.connect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_A, "")]));
}

#[test]
fn rule_085_what_is_held_too_late_for_the_first_request_is_asked_for() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["x"]);
    client.subscribe(CDS, &[GLOB, "a"]);
    hold(&mut client, &[(MEMBER_A, "1"), ("a", "1")], &[GLOB]);
    let next = client.delta().unwrap();
    assert_eq!(next.resource_names_subscribe, [MEMBER_A, "a", GLOB]);
    assert!(next.initial_resource_versions.is_empty());
    let update = client.accept(&delta(CDS, "n1", &[], &[MEMBER_A]));
    assert_eq!(removed(&update), [MEMBER_A]);
}

#[test]
fn what_a_stream_brought_counts_before_it() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::subscribed(protocol, CDS, &["*"]);
        match protocol {
            Protocol::Delta => _ = client.accept(&delta(CDS, "n1", &[("a", "2")], &[])),
            Protocol::Sotw => _ = client.accept(&sotw(CDS, "2", "n1", &[("a", "1")])),
        }
        hold(&mut client, &[("a", "1")], &["*"]);
        client.reconnect();
        match client.poll() {
            Some(request) if protocol == Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(request).unwrap();
                assert_eq!(initial_versions(&request), owned(&[("a", "2")]));
            }
            request => assert_eq!(DiscoveryRequest::decode(request.unwrap()).unwrap().version_info, "2"),
        }
    }
}

#[test]
fn what_a_full_state_lacks_of_what_was_held_before_is_gone() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(CDS, &["*"]);
    hold(&mut client, &[("a", "1"), ("b", "1")], &["*"]);
    client.connect();
    // No version that the origin may take for its own.
    assert_eq!(client.sotw().unwrap().version_info, "?");
    let update = client.accept(&sotw(CDS, "7", "n1", &[("a", "1")]));
    assert_eq!(removed(&update), ["b"]);
}

/// A response that is on its way does not have it, and was written before it was asked for.
#[test]
fn rule_076_what_is_held_since_a_full_state_was_asked_for_is_not_missing_from_that() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["x"]);
    client.subscribe(CDS, &["a"]);
    hold(&mut client, &[("a", "1")], &[]);
    let update = client.accept(&sotw(CDS, "1", "n1", &[("x", "1")]));
    assert_eq!((update.changed.len(), update.removed.len()), (1, 0));
}

#[test]
fn what_another_origin_gave_since_is_asked_for_without_a_version() {
    let mut client = Client::subscribed(Protocol::Sotw, EDS, &["a", "b"]);
    client.accept(&sotw(EDS, "1", "n1", &[("a", "1"), ("b", "1")]));
    while client.poll().is_some() {}
    for forgets in [false, true] {
        if forgets {
            client.stream.apply(Command::Forget(EDS.into()));
        }
        client.reconnect();
        let first = client.sotw().unwrap();
        // What is held is not what it would be at any version that the origin gave.
        assert_eq!(first.version_info, if forgets { "?" } else { "1" });
    }
}

/// A name that a wildcard covers is held by either while the other is asked for anew.
#[test]
fn what_another_origin_gave_since_is_asked_for_without_a_version_whatever_asks_for_it() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*", "a"]);
    client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    client.stream.apply(Command::Forget(CDS.into()));
    for interest in ["*", "a"] {
        client.unsubscribe(CDS, &[interest]);
        client.subscribe(CDS, &[interest]);
    }
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "")]));
}
