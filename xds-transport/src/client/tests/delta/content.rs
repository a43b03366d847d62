//! Which resources of a response are taken, and which of them are changes.

use super::*;

#[test]
fn rule_062_what_was_not_asked_for_is_dropped_and_acknowledged() {
    let mut client = client(&["a"]);
    let update = client.accept(&delta(CDS, "n1", &[("a", "1"), ("extra", "1")], &[]));
    assert_eq!(changed(&update), [("a", "1")]);
    assert!(client.delta().unwrap().error_detail.is_none());
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1")]));
}

#[test]
fn rule_062_what_comes_before_the_collection_was_asked_for_anew_was_sent_for_what_was_left() {
    for (collection, member) in [("*", "a"), ("xdstp://x/T/d/*", "xdstp://x/T/d/1")] {
        let mut client = client(&["other"]);
        client.unsubscribe(CDS, &[collection]);
        client.subscribe(CDS, &[collection]);
        let update = client.accept(&delta(CDS, "n1", &[(member, "1")], &[]));
        assert_eq!(changed(&update), []);
        assert_eq!(client.delta().unwrap().response_nonce, "n1");
        assert_eq!(client.delta().unwrap().resource_names_subscribe, [collection]);
        let update = client.accept(&delta(CDS, "n2", &[(member, "1")], &[]));
        assert_eq!(changed(&update), [(member, "1")]);
    }
}

#[test]
fn rule_070_what_comes_before_its_name_was_asked_for_is_used_as_its_answer_says_what_becomes_of_it() {
    // Not every server sends a name anew that it has sent for a wildcard.
    let mut client = client(&["*"]);
    client.subscribe(CDS, &["a"]);
    client.unsubscribe(CDS, &["*"]);
    let update = client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    assert_eq!(changed(&update), [("a", "1")]);
}

#[test]
fn rule_081_a_resource_of_another_type_than_its_response_is_refused() {
    let mut client = client(&["*"]);
    let mut response = delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]);
    response.resources[1].resource = Some(body(EDS, "b", ""));
    let update = client.accept(&response);
    assert_eq!((changed(&update), update.rejected[0].name.as_str()), (vec![("a", "1")], "b"));
    assert!(client.delta().unwrap().error_detail.unwrap().message.contains("ClusterLoadAssignment"));
}

#[test]
fn rule_081_over_delta_a_wrapper_is_not_wrapped_again() {
    let mut client = client(&["*"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].resource = Some(wrapped(&response.resources[0]));
    let update = client.accept(&response);
    assert_eq!((changed(&update), update.rejected[0].name.as_str()), (vec![], "a"));
}

#[test]
fn rule_124_what_comes_again_unasked_is_a_touch() {
    let mut client = client(&["*", "a"]);
    let update = client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert!(!update.changed[0].touched);
    let update = client.accept(&delta(CDS, "n2", &[("a", "1")], &[]));
    assert!(update.changed[0].touched);

    // An answer to our own request is no touch, and nothing new.
    client.reconnect();
    while client.poll().is_some() {}
    let update = client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert!(update.changed.is_empty());
    let update = client.accept(&delta(CDS, "n2", &[("a", "1")], &[]));
    assert!(update.changed[0].touched);
}

#[test]
fn new_content_at_an_old_version_is_a_change() {
    let mut client = client(&["a"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    let mut response = delta(CDS, "n2", &[("a", "1")], &[]);
    response.resources[0].resource = Some(body(CDS, "a", "other"));
    let update = client.accept(&response);
    assert_eq!((changed(&update), update.changed[0].touched), (vec![("a", "1")], false));
}
