//! Globs and the wildcard: when they are answered, complete or empty.

use super::*;

#[test]
fn rule_144_that_a_wildcard_is_as_it_was_is_no_answer_to_the_one_that_is_asked_for_again() {
    for at_once in [false, true] {
        let mut client = client(&["*", "a"]);
        client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
        client.reconnect();
        assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1"), ("b", "1")]));
        client.unsubscribe(CDS, &["*"]);
        if !at_once {
            assert_eq!(client.delta().unwrap().resource_names_unsubscribe, ["*"]);
        }
        client.subscribe(CDS, &["*"]);
        assert_eq!(client.delta().unwrap().resource_names_subscribe, ["*"]);
        // It crossed that.
        assert_eq!(complete(&client.accept(&delta(CDS, "n2", &[], &[]))), [""; 0]);
        assert_eq!(complete(&client.accept(&delta(CDS, "n3", &[], &[]))), ["*"]);
    }
}

#[test]
fn rule_086_a_wildcard_that_was_answered_and_is_asked_for_again_is_complete_when_it_is_empty() {
    for members in [&[("b", "1")][..], &[]] {
        let mut client = client(&["*", "a"]);
        client.accept(&delta(CDS, "n1", members, &[]));
        client.unsubscribe(CDS, &["*"]);
        while client.delta().is_some() {}
        client.subscribe(CDS, &["*"]);
        while client.delta().is_some() {}
        assert_eq!(complete(&client.accept(&delta(CDS, "n2", &[], &[]))), ["*"]);
    }
}

#[test]
fn rule_151_only_what_is_empty_is_complete() {
    let mut client = client(&["*", GLOB]);
    let update = client.accept(&delta(CDS, "n1", &[("a", "1"), (MEMBER_A, "1")], &[]));
    assert_eq!((answered(&update), complete(&update)), (vec!["*", GLOB], vec![]));
    assert!(complete(&client.accept(&delta(CDS, "n2", &[], &["a"]))).is_empty());
    assert_eq!(complete(&client.accept(&delta(CDS, "n3", &[], &[]))), ["*"]);
    assert_eq!(complete(&client.accept(&delta(CDS, "n4", &[], &[GLOB]))), [GLOB]);
}

#[test]
fn rule_099_the_url_of_a_glob_among_the_removed_says_that_it_is_empty() {
    let mut client = client(&[GLOB]);
    let update = client.accept(&delta(CDS, "n1", &[], &[GLOB]));
    assert_eq!((answered(&update), removed(&update)), (vec![GLOB], vec![]));

    let update = client.accept(&delta(CDS, "n2", &[(MEMBER_A, "1")], &[]));
    assert_eq!((answered(&update), changed(&update)), (vec![], vec![(MEMBER_A, "1")]));
    let update = client.accept(&delta(CDS, "n3", &[], &[GLOB]));
    assert_eq!(removed(&update), [MEMBER_A]);
}

#[test]
fn rule_099_what_comes_with_an_empty_glob_is_not_gone() {
    let mut client = client(&[GLOB]);
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1"), (MEMBER_B, "1")], &[]));
    client.reconnect();
    client.delta().unwrap();
    let update = client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[GLOB]));
    assert_eq!(removed(&update), [MEMBER_B]);
}

#[test]
fn a_glob_is_known_by_its_first_member_and_the_wildcard_by_its_first_response() {
    let mut client = client(&["*", GLOB, "a"]);
    let update = client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert_eq!(answered(&update), ["*"]);
    let update = client.accept(&delta(CDS, "n2", &[(MEMBER_A, "1")], &[]));
    assert_eq!(answered(&update), [GLOB]);
    let update = client.accept(&delta(CDS, "n3", &[(MEMBER_B, "1")], &[]));
    assert!(update.answered.is_empty());
}

#[test]
fn rule_054_unsubscribing_a_glob_forgets_what_it_alone_covered() {
    let mut client = client(&[GLOB, MEMBER_B]);
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1"), (MEMBER_B, "1")], &[]));
    client.unsubscribe(CDS, &[GLOB]);
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_B, "1")]));
}

#[test]
fn rule_086_an_empty_answer_before_the_wildcard_is_asked_for_anew_is_of_what_was_given_up() {
    let mut client = client(&["*", "a"]);
    client.unsubscribe(CDS, &["*"]);
    while client.delta().is_some() {}
    client.subscribe(CDS, &["*"]);
    assert_eq!(complete(&client.accept(&delta(CDS, "n1", &[], &[]))), [""; 0]);
    while client.delta().is_some() {}
    assert_eq!(complete(&client.accept(&delta(CDS, "n2", &[], &[]))), ["*"]);
}
