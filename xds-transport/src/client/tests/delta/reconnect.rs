//! What a new stream is told of what is held, and what of the old one is over.

use super::*;

#[test]
fn rule_151_the_first_request_asks_the_fate_of_what_others_hold() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &[GLOB, "named"]);
    let undecided = |names: &[&str]| Command::Undecided(CDS.into(), names.iter().map(|text| name(text)).collect());
    client.stream.apply(undecided(&[MEMBER_A, MEMBER_B, "named", "elsewhere"]));
    client.connect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_A, ""), (MEMBER_B, "")]));
    client.stream.apply(undecided(&[MEMBER_B]));
    let update = client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[MEMBER_B]));
    assert_eq!((changed(&update), removed(&update)), (vec![(MEMBER_A, "1")], vec![MEMBER_B]));
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_A, "1")]), "asked once");
}

#[test]
fn rule_083_the_first_request_names_all_accepted_versions() {
    let mut client = client(&["*", "named", "dropped"]);
    let all = [("a", "1"), ("dropped", "2"), ("named", "3")];
    client.accept(&delta(CDS, "n1", &all, &[]));
    client.unsubscribe(CDS, &["dropped"]);
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["*", "named"]);
    assert_eq!(initial_versions(&request), owned(&all));
    assert!(client.poll().is_none());

    client.subscribe(CDS, &["later"]);
    assert!(client.delta().unwrap().initial_resource_versions.is_empty());
}

#[test]
fn rule_083_versions_are_recorded_by_verdicts_that_come_after_the_stream_ended() {
    let mut client = client(&["a"]);
    client.receive(&delta(CDS, "n1", &[("a", "1")], &[]));
    let update = client.update().unwrap();
    client.stream.disconnected(client.now);
    client.finish(&update, Verdict::Accept);
    client.connect();
    let request = client.delta().unwrap();
    assert_eq!((request.response_nonce.as_str(), initial_versions(&request)), ("", owned(&[("a", "1")])));
    assert!(client.poll().is_none());
}

#[test]
fn rule_084_what_was_removed_while_away_is_removed() {
    let mut client = client(&["*"]);
    client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1"), ("b", "1")]));
    let update = client.accept(&delta(CDS, "n1", &[], &["b"]));
    assert_eq!(removed(&update), ["b"]);
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1")]));
}

#[test]
fn rule_088_nothing_of_a_stream_survives_it() {
    let mut client = client(&["a"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    client.subscribe(CDS, &["b"]);
    client.unsubscribe(CDS, &["a"]);
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!((request.response_nonce.as_str(), request.resource_names_subscribe), ("", vec!["b".to_owned()]));
    assert!(client.poll().is_none(), "neither the old ACK nor the unsubscribe");
}

#[test]
fn rule_101_members_of_globs_are_named_with_their_versions() {
    let mut client = client(&[GLOB]);
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1"), (MEMBER_B, "1")], &[]));
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, [GLOB]);
    assert_eq!(initial_versions(&request), owned(&[(MEMBER_A, "1"), (MEMBER_B, "1")]));
    let update = client.accept(&delta(CDS, "n1", &[], &[MEMBER_B]));
    assert_eq!(removed(&update), [MEMBER_B]);
}
