//! What is not there: removed, not found, or not answered.

use super::*;

#[test]
fn rule_072_the_removal_of_something_unknown_is_acknowledged() {
    let mut client = client(&["a"]);
    let update = client.accept(&delta(CDS, "n1", &[], &["never-seen"]));
    assert!(update.removed.is_empty());
    let ack = client.delta().unwrap();
    assert_eq!((ack.response_nonce.as_str(), ack.error_detail), ("n1", None));
}

#[test]
fn rule_073_a_removed_resource_stays_subscribed_and_has_no_version() {
    let mut client = client(&["a", "b"]);
    client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    let update = client.accept(&delta(CDS, "n2", &[], &["a"]));
    assert_eq!(removed(&update), ["a"]);
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a", "b"]);
    assert_eq!(initial_versions(&request), owned(&[("b", "1")]));
}

#[test]
fn rule_150_to_a_relay_silence_is_no_answer() {
    let mut client = Client::new(Protocol::Delta);
    client.stream = client.stream.with_silence(Silence::IsNoAnswer);
    client.subscribe(CDS, &["a", "*", GLOB]);
    client.connect();
    client.delta();
    client.accept(&delta(CDS, "n1", &[("b", "1")], &[]));
    client.delta();
    assert_eq!(client.stream.poll_timeout(), None);
    client.advance(3600);
    assert!(client.update().is_none());
}

/// go-control-plane says nothing of names that it does not have.
#[test]
fn rule_074_a_name_that_a_delta_server_is_silent_about_is_absent() {
    let mut client = client(&["a", "b", "gone", "failing", "refused", "*", GLOB]);
    assert_eq!(client.stream.poll_timeout(), Some(client.now + Duration::from_secs(15)));
    client.accept(&delta(CDS, "n1", &[("b", "1")], &["gone"]));
    let mut response = delta(CDS, "n2", &[("refused", "1")], &[]);
    response.resources[0].resource = Some(body(EDS, "refused", ""));
    response.resource_errors = vec![error("failing", 14)];
    client.accept(&response);
    client.advance(15);
    let update = client.update().unwrap();
    assert_eq!((missing(&update), removed(&update), answered(&update)), (vec!["a"], vec![], vec![]));
    client.advance(60);
    assert!(client.update().is_none(), "once");
    assert_eq!(changed(&client.accept(&delta(CDS, "n3", &[("a", "1")], &[]))), [("a", "1")]);
    client.reconnect();
    client.delta();
    client.advance(15);
    assert_eq!(missing(&client.update().unwrap()), ["failing", "gone", "refused"], "only what is not held");
}

#[test]
fn rule_106_an_alias_without_a_resource_is_not_there() {
    let mut client = client(&["rc/host"]);
    let mut response = delta(CDS, "n1", &[("rc/host", "1")], &[]);
    response.resources[0].aliases = vec!["rc/host".into()];
    response.resources[0].resource = None;
    assert_eq!(removed(&client.accept(&response)), ["rc/host"]);
}

#[test]
fn rule_117_not_found_is_a_removal() {
    let mut client = client(&["a"]);
    for beside in [&[] as &[&str], &["a"]] {
        let mut response = delta(CDS, "n1", &[], beside);
        response.resource_errors = vec![error("a", 5)];
        let update = client.accept(&response);
        assert_eq!((removed(&update), update.errors.len()), (vec!["a"], 1));
    }
}
