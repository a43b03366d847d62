//! Resources that are wanted by another name than theirs: rule 105.

use super::*;

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

fn client(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Delta, HOSTS, interests)
}

/// A response with one resource, and what it may be asked for by.
fn host(nonce: &str, name: &str, version: &str, aliases: &[&str]) -> DeltaDiscoveryResponse {
    let mut response = delta(HOSTS, nonce, &[(name, version)], &[]);
    response.resources[0].aliases = aliases.iter().map(|alias| (*alias).into()).collect();
    response
}

#[test]
fn rule_105_a_resource_is_wanted_by_its_aliases() {
    let mut client = client(&["rc/a", "rc/b"]);
    let update = client.accept(&host("n1", "rc/host", "1", &["rc/a", "rc/other"]));
    assert_eq!(changed(&update), [("rc/host", "1")]);
    let update = client.accept(&host("n2", "rc/unasked", "1", &["rc/other"]));
    assert_eq!(changed(&update), []);
    let update = client.accept(&delta(HOSTS, "n3", &[], &["rc/host"]));
    assert_eq!(removed(&update), ["rc/host"]);
    let update = client.accept(&delta(HOSTS, "n4", &[], &["rc/host"]));
    assert_eq!(removed(&update), [""; 0], "it is not known by any wanted name any more");
}

#[test]
fn rule_105_what_was_wanted_by_an_alias_goes_with_it() {
    let mut client = client(&["rc/a", "rc/b"]);
    client.accept(&host("n1", "rc/host", "1", &["rc/a", "rc/b"]));
    client.unsubscribe(HOSTS, &["rc/a"]);
    client.reconnect();
    assert_eq!(client.delta().unwrap().initial_resource_versions.len(), 1, "by the other it is held");
    client.unsubscribe(HOSTS, &["rc/b"]);
    client.subscribe(HOSTS, &["rc/c"]);
    client.reconnect();
    assert_eq!(client.delta().unwrap().initial_resource_versions.len(), 0);
}

#[test]
fn rule_101_what_is_held_by_an_alias_is_named_when_it_reconnects() {
    let mut client = client(&["rc/a"]);
    client.accept(&host("n1", "rc/host", "1", &["rc/a"]));
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["rc/a"]);
    assert_eq!(request.initial_resource_versions[0].as_ref(), b"\x0a\x07rc/host\x12\x011");
    // Sent again because it was asked for, it is no news.
    let update = client.accept(&host("n2", "rc/host", "1", &["rc/a"]));
    assert_eq!(changed(&update), []);
}

#[test]
fn rule_105_an_alias_belongs_to_the_last_resource_that_claims_it() {
    let mut client = client(&["rc/a"]);
    client.accept(&host("n1", "rc/one", "1", &["rc/a"]));
    let update = client.accept(&host("n2", "rc/two", "1", &["rc/a"]));
    assert_eq!((changed(&update), removed(&update)), (vec![("rc/two", "1")], vec!["rc/one"]));
    // Without the alias nothing asks for it.
    let update = client.accept(&host("n3", "rc/two", "2", &[]));
    assert_eq!((changed(&update), removed(&update)), (vec![], vec!["rc/two"]));
}

#[test]
fn rule_105_an_alias_is_no_resource() {
    let mut client = client(&["rc/a"]);
    client.accept(&host("n1", "rc/a", "1", &[]));
    let update = client.accept(&host("n2", "rc/host", "1", &["rc/a"]));
    assert_eq!((changed(&update), removed(&update)), (vec![("rc/host", "1")], vec!["rc/a"]));
    let update = client.accept(&host("n3", "rc/a", "2", &[]));
    assert_eq!((changed(&update), removed(&update)), (vec![("rc/a", "2")], vec!["rc/host"]));
}

#[test]
fn rule_099_an_alias_that_nobody_wants_keeps_no_member_of_a_glob_that_is_empty() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB]);
    let mut response = delta(CDS, "n1", &[(MEMBER_A, "1")], &[]);
    response.resources[0].aliases = vec!["another".into()];
    client.accept(&response);
    assert_eq!(removed(&client.accept(&delta(CDS, "n2", &[], &[GLOB]))), [MEMBER_A]);
}

#[test]
fn rule_099_what_is_wanted_otherwise_too_stays_when_its_glob_is_empty() {
    for other in ["*", MEMBER_A, "another"] {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB, other]);
        let mut response = delta(CDS, "n1", &[(MEMBER_A, "1")], &[]);
        response.resources[0].aliases = vec!["another".into()];
        client.accept(&response);
        assert_eq!(removed(&client.accept(&delta(CDS, "n2", &[], &[GLOB]))), [""; 0], "{other}");
    }
}

#[test]
fn rule_106_an_alias_that_stands_for_nothing_takes_what_it_stood_for_along() {
    let mut client = client(&["rc/a"]);
    client.accept(&host("n1", "rc/host", "1", &["rc/a"]));
    let mut nothing = host("n2", "rc/a", "2", &["rc/a"]);
    nothing.resources[0].resource = None;
    assert_eq!(removed(&client.accept(&nothing)), ["rc/a", "rc/host"]);
}

/// Who holds it is not answered: the origin sends it again.
#[test]
fn rule_150_what_a_name_asked_for_since_may_stand_for_is_brought_along_without_its_version() {
    for later in ["rc/host", "rc/b"] {
        let mut client = client(&["rc/a"]);
        client.accept(&host("n1", "rc/host", "1", &["rc/a", "rc/b"]));
        client.subscribe(HOSTS, &[later]);
        client.reconnect();
        assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("rc/host", "")]), "{later}");
        let update = client.accept(&host("n1", "rc/host", "1", &["rc/a", "rc/b"]));
        assert_eq!(update.repeated.len(), 1, "{later}");
        client.reconnect();
        assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("rc/host", "1")]), "{later}");
    }
}

#[test]
fn rule_105_what_loses_an_alias_and_brings_another_is_not_gone() {
    let mut client = client(&["rc/a"]);
    client.accept(&host("n1", "rc/one", "1", &["rc/a"]));
    client.subscribe(HOSTS, &["rc/b"]);
    while client.poll().is_some() {}
    let mut response = host("n2", "rc/two", "1", &["rc/a"]);
    response.resources.extend(host("n2", "rc/one", "2", &["rc/b"]).resources);
    let update = client.accept(&response);
    assert_eq!((changed(&update), removed(&update)), (vec![("rc/two", "1"), ("rc/one", "2")], vec![]));
}

/// A request has some thousands of names at most, and what they stand for goes with the first.
#[test]
fn rule_105_an_alias_is_asked_for_with_the_version_of_what_it_stands_for() {
    let mut client = Client::new(Protocol::Delta);
    let names: Vec<_> = (0..5000).map(|at| format!("rc/{at:04}")).collect();
    let texts: Vec<_> = names.iter().map(String::as_str).collect();
    client.subscribe(HOSTS, &texts);
    client.connect();
    while client.poll().is_some() {}
    client.accept(&host("1", "rc/canonical", "v", &["rc/4999"]));
    client.reconnect();
    let first = client.delta().unwrap();
    let held: Vec<_> = initial_versions(&first).into_iter().map(|(name, _)| name).collect();
    assert_eq!(held, ["rc/canonical"]);
    assert!(first.resource_names_subscribe.contains(&"rc/4999".to_owned()));
    assert!(first.resource_names_subscribe.len() < 3000);
}
