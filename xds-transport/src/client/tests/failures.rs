//! What the origin cannot or will not send: rules 77, 78, 118.

use super::*;
use crate::wire::Duration as WireDuration;

/// Codes of `google.rpc.Code`, and whether they are about the resource itself.
const CODES: [(i32, bool); 8] =
    [(14, false), (13, false), (2, false), (5, true), (7, true), (4, false), (8, false), (99, false)];

fn failed(update: &Update) -> Vec<(&str, i32)> {
    update.errors.iter().map(|(name, error)| (name.as_str(), error.code)).collect()
}

fn kept(update: &Update) -> Vec<&str> {
    update.kept.iter().map(ResourceName::as_str).collect()
}

#[test]
fn rule_118_over_delta_an_error_about_the_resource_removes_it_and_no_other_does() {
    for (code, gone) in CODES {
        // Beside the error, a removal for clients that ignore it (rule 117).
        for beside in [&[] as &[&str], &["a"]] {
            let mut client = Client::subscribed(Protocol::Delta, CDS, &["a"]);
            client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
            let response = delta(CDS, "n2", &[], beside);
            let update = client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error("a", code)], ..response });
            assert_eq!(failed(&update), [("a", code)]);
            let [(_, error)] = update.errors.as_slice() else { panic!("{update:?}") };
            assert_eq!(&*error.message, "because");
            assert_eq!((error.is_transient(), removed(&update)), (!gone, vec!["a"; usize::from(gone)]));
            while let Some(ack) = client.delta() {
                assert_eq!(ack.error_detail, None, "an error is no reason to refuse the response");
            }
            client.reconnect();
            assert_eq!(initial_versions(&client.delta().unwrap()).is_empty(), gone);
        }
    }
}

#[test]
fn rule_118_over_sotw_what_fails_for_a_time_is_not_deleted_by_its_absence() {
    for (code, gone) in CODES {
        let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a", "b"]);
        client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
        let response = sotw(CDS, "v2", "n2", &[("b", "1")]);
        let update = client.accept(&DiscoveryResponse { resource_errors: vec![error("a", code)], ..response });
        assert_eq!((failed(&update), removed(&update)), (vec![("a", code)], vec!["a"; usize::from(gone)]));
        // It is said once, and remembered.
        let update = client.accept(&sotw(CDS, "v3", "n3", &[("b", "2")]));
        assert!(failed(&update).is_empty() && removed(&update).is_empty());
        // Until the resource comes: then its absence is deletion again.
        client.accept(&sotw(CDS, "v4", "n4", &[("a", "2"), ("b", "2")]));
        assert_eq!(removed(&client.accept(&sotw(CDS, "v5", "n5", &[("b", "2")]))), ["a"]);
    }
}

#[test]
fn rule_118_what_failed_is_deleted_by_a_new_stream_that_says_nothing_of_it() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a", "b"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    let response = sotw(CDS, "v2", "n2", &[("b", "1")]);
    client.accept(&DiscoveryResponse { resource_errors: vec![error("a", 14)], ..response });
    client.reconnect();
    client.sotw();
    assert_eq!(removed(&client.accept(&sotw(CDS, "v3", "n1", &[("b", "1")]))), ["a"]);
}

#[test]
fn rule_118_an_error_stops_the_timer() {
    for (code, gone) in CODES {
        for interest in ["a", GLOB] {
            let mut client = Client::subscribed(Protocol::Sotw, CDS, &[interest]);
            client.advance(14);
            let response =
                DiscoveryResponse { resource_errors: vec![error(interest, code)], ..sotw(CDS, "", "n", &[]) };
            let update = client.accept(&response);
            assert_eq!(failed(&update), [(interest, code)]);
            // A glob is empty for sure when it does not exist; what fails for a time says nothing of it, nor does a refusal.
            let is_said = if interest == GLOB { code == 5 } else { gone };
            let said = [removed(&update), answered(&update)].concat();
            assert_eq!(said, vec![interest; usize::from(is_said)]);
            client.advance(60);
            assert!(client.update().is_none());
        }
    }
}

#[test]
fn errors_about_what_is_not_wanted_or_was_sent_are_dropped() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a"]);
    let errors = vec![error("a", 5), error("b", 5), error("*", 7), error("xdstp:bad", 5), ResourceError::default()];
    let update = client.accept(&DiscoveryResponse { resource_errors: errors, ..sotw(CDS, "v", "n", &[("a", "1")]) });
    assert_eq!((failed(&update), removed(&update), changed_names(&update)), (vec![], vec![], vec!["a"]));
    assert!(client.sotw().unwrap().error_detail.is_none());
}

#[test]
fn rule_077_what_is_deleted_stays_in_use_where_that_was_chosen() {
    for keep in [false, true] {
        let says = |update: &Update| {
            assert_eq!(kept(update), vec!["a"; usize::from(keep)]);
            assert_eq!(removed(update), vec!["a"; usize::from(!keep)]);
        };
        let mut client = Client::new(Protocol::Delta);
        if keep {
            client.stream = client.stream.keep_deleted();
        }
        client.subscribe(CDS, &["a", "b"]);
        client.connect();
        client.poll();
        client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
        says(&client.accept(&delta(CDS, "n2", &[], &["a"])));
        let again = client.accept(&delta(CDS, "n3", &[], &["a"]));
        assert!(kept(&again).is_empty(), "told once");
        assert_eq!(removed(&client.accept(&delta(CDS, "n4", &[], &["b"]))), ["b"], "nothing is held of it");
        let back = client.accept(&delta(CDS, "n5", &[("a", "2")], &[]));
        assert_eq!(changed(&back), [("a", "2")]);
        says(&client.accept(&delta(CDS, "n6", &[], &["a"])));

        let mut client = Client::new(Protocol::Sotw);
        if keep {
            client.stream = client.stream.keep_deleted();
        }
        client.subscribe(CDS, &["a", "b"]);
        client.connect();
        client.poll();
        client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
        says(&client.accept(&sotw(CDS, "v2", "n2", &[("b", "1")])));
        let again = client.accept(&sotw(CDS, "v3", "n3", &[("b", "2")]));
        assert!(kept(&again).is_empty() && removed(&again).is_empty());
        // Nobody wants it: nothing is kept.
        client.unsubscribe(CDS, &["a"]);
        assert!(removed(&client.accept(&sotw(CDS, "v4", "n4", &[("b", "3")]))).is_empty());
    }
}

#[test]
fn rule_077_errors_about_the_resource_keep_it_too_and_the_end_of_its_ttl_does_not() {
    for code in [5, 7] {
        let mut client = Client::new(Protocol::Delta);
        client.stream = client.stream.keep_deleted();
        client.subscribe(CDS, &["a"]);
        client.connect();
        client.poll();
        let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
        response.resources[0].ttl = Some(crate::wire::Duration { seconds: 30, nanos: 0 });
        client.accept(&response);
        let response = delta(CDS, "n2", &[], &["a"]);
        let update = client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error("a", code)], ..response });
        assert_eq!((failed(&update), kept(&update), removed(&update)), (vec![("a", code)], vec!["a"], vec![]));
        client.advance(30);
        assert_eq!(removed(&client.update().unwrap()), ["a"]);
    }
}

#[test]
fn rule_078_a_bad_value_leaves_the_good_one_before_in_use() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["a"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    // Unreadable, and then readable but of no use to the client.
    let mut bad = delta(CDS, "n2", &[("a", "2")], &[]);
    bad.resources[0].resource = Some(body(EDS, "a", ""));
    let update = client.accept(&bad);
    assert_eq!((update.rejected[0].name.as_str(), changed(&update), removed(&update)), ("a", vec![], vec![]));
    client.reject(&delta(CDS, "n3", &[("a", "3")], &[]), "a", "no");
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1")]), "what is in use is what is named");

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    let update = client.reject(&sotw(CDS, "v2", "n2", &[("a", "2")]), "a", "no");
    assert!(removed(&update).is_empty());
    assert!(changed_names(&client.accept(&sotw(CDS, "v3", "n3", &[("a", "1")]))).is_empty(), "it never left");
}

#[test]
fn of_what_a_refusal_took_away_no_version_is_named_to_the_next_stream() {
    let drop = || Command::Drop(CDS.into(), vec!["a".parse().unwrap()]);
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["a", "b"]);
    client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    client.reject(&delta(CDS, "n2", &[("a", "2")], &[]), "a", "no");
    client.stream.apply(drop());
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", ""), ("b", "1")]));
    // It is as it was before: who took it away has none.
    let update = client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert_eq!(update.changed.len() + update.repeated.len(), 1);

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    client.reject(&sotw(CDS, "v2", "n2", &[("a", "2")]), "a", "no");
    client.stream.apply(drop());
    assert_eq!(client.sotw().unwrap().version_info, "v1", "a NACK names what was accepted");
    client.reconnect();
    assert_ne!(client.sotw().unwrap().version_info, "v1");
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(update.changed.len() + update.repeated.len(), 1);
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "v1");
}

#[test]
fn rule_118_that_an_error_is_over_is_told_though_the_resource_is_as_it_was() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a", "b"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    let response = sotw(CDS, "v2", "n2", &[("b", "1")]);
    client.accept(&DiscoveryResponse { resource_errors: vec![error("a", 14)], ..response });
    let update = client.accept(&sotw(CDS, "v3", "n3", &[("a", "1"), ("b", "1")]));
    assert_eq!(changed_names(&update), ["a"]);
    assert!(update.changed[0].touched);
    assert!(changed_names(&client.accept(&sotw(CDS, "v3", "n4", &[("a", "1"), ("b", "1")]))).is_empty(), "once");
}

#[test]
fn rule_118_over_delta_a_new_stream_is_asked_for_what_failed() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["a", "xdstp://x/T/d/*"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    let errors = vec![error("a", 14), error("xdstp://x/T/d/1", 14)];
    client.accept(&DeltaDiscoveryResponse { resource_errors: errors, ..delta(CDS, "n2", &[], &[]) });
    client.reconnect();
    // Without a version: that the error is over, only the resource says, or that it is gone.
    let asked = initial_versions(&client.delta().unwrap());
    assert_eq!(asked, [("a".to_owned(), String::new()), ("xdstp://x/T/d/1".to_owned(), String::new())]);
    client.accept(&delta(CDS, "n3", &[("a", "1")], &["xdstp://x/T/d/1"]));
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), [("a".to_owned(), "1".to_owned())]);
}

#[test]
fn rule_117_to_a_wildcard_alone_no_error_takes_what_is_there() {
    // It was asked for by a glob that is left meanwhile.
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    let response = delta(CDS, "n2", &[], &[]);
    let update = client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error("a", 7)], ..response });
    assert!(failed(&update).is_empty() && removed(&update).is_empty());
    // An error that spares the resource counts, or the removal beside it would.
    let response = delta(CDS, "n3", &[], &["a"]);
    let update = client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error("a", 14)], ..response });
    assert_eq!((failed(&update), removed(&update)), (vec![("a", 14)], vec![]));
}

#[test]
fn rule_118_that_a_glob_does_not_fail_any_more_is_heard_on_a_new_stream() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB]);
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[]));
    let response = delta(CDS, "n2", &[], &[]);
    client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error(GLOB, 14)], ..response });
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_A, "")]), "to be sent again");
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[]));
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_A, "1")]));

    // That something else is left says nothing of it.
    let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB, "a"]);
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[]));
    let response = delta(CDS, "n2", &[], &[]);
    client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error(GLOB, 14)], ..response });
    client.unsubscribe(CDS, &["a"]);
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[(MEMBER_A, "")]));

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &[GLOB]);
    let full_state = sotw(CDS, "v1", "n1", &[(MEMBER_A, "1")]);
    client.accept(&full_state);
    client.accept(&DiscoveryResponse { resource_errors: vec![error(GLOB, 14)], ..full_state.clone() });
    assert_eq!(changed_names(&client.accept(&full_state)), [""; 0], "it may fail still");
    client.reconnect();
    client.sotw();
    assert_eq!(changed_names(&client.accept(&full_state)), [MEMBER_A]);
    assert_eq!(changed_names(&client.accept(&full_state)), [""; 0]);
}

#[test]
fn rule_111_a_new_stream_is_asked_for_what_lives_for_a_time() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    client.accept(&response);
    client.reconnect();
    // Without a version: the origin may have taken the TTL back.
    assert_eq!(initial_versions(&client.delta().unwrap()), [("a".to_owned(), String::new())]);

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*"]);
    let ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    let resource = Resource { name: "a".into(), resource: Some(body(CDS, "a", "1")), ttl, ..Resource::default() };
    client.accept(&DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(CDS, "v1", "n1", &[]) });
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "v1?");
}

#[test]
fn rule_111_over_sotw_that_a_ttl_is_taken_back_is_told() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*"]);
    let ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    let mut resource = Resource { name: "a".into(), resource: Some(body(CDS, "a", "1")), ttl, ..Resource::default() };
    client.accept(&DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(CDS, "v1", "n1", &[]) });
    resource.ttl = None;
    let update =
        client.accept(&DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(CDS, "v1", "n2", &[]) });
    assert_eq!(changed_names(&update), ["a"]);
    client.advance(60);
    assert!(client.update().is_none());
}

#[test]
fn rule_115_what_is_over_is_not_what_was_sent_anew() {
    for used in [true, false] {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &["a"]);
        let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
        response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
        client.accept(&response);
        client.receive(&delta(CDS, "n2", &[("a", "2")], &[]));
        let newer = client.update().unwrap();
        client.advance(30);
        assert!(client.update().is_none(), "its user is about to say whether it uses the newer one");
        assert_eq!(client.stream.poll_timeout(), None, "and nothing is due before");
        let verdict = match used {
            true => Verdict::Accept,
            false => Verdict::Reject { reasons: vec![Rejected::new("a", "bad")] },
        };
        client.finish(&newer, verdict);
        client.advance(0);
        assert_eq!(client.update().map(|update| removed(&update) == ["a"]), (!used).then_some(true));
    }
}
