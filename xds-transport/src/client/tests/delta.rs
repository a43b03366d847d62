//! Rules of the delta protocol.

use super::*;
use crate::wire::Duration as WireDuration;

fn client(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Delta, CDS, interests)
}

#[test]
fn rule_005_only_the_first_request_of_a_stream_names_the_node() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["*"]);
    client.subscribe(EDS, &["a"]);
    for _ in 0..2 {
        client.connect();
        let nodes: Vec<_> = std::iter::from_fn(|| client.delta()).map(|request| request.node.len()).collect();
        assert_eq!(nodes, [4, 0]);
        client.stream.disconnected(client.now);
    }
}

#[test]
fn rule_008_a_type_without_subscription_is_not_answered() {
    let mut client = client(&["*"]);
    client.receive(&delta(EDS, "n1", &[("a", "1")], &[]));
    assert!(client.update().is_none());
    assert!(client.poll().is_none());
}

#[test]
fn rule_009_an_unknown_type_is_not_answered() {
    let mut client = client(&["*"]);
    client.receive(&delta("type.example.com/bogus", "n1", &[("a", "1")], &[]));
    assert!(client.update().is_none());
    assert!(client.poll().is_none());
}

#[test]
fn rule_020_only_answers_carry_a_nonce() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["a"]);
    client.connect();
    assert_eq!(client.delta().unwrap().response_nonce, "");
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert_eq!(client.delta().unwrap().response_nonce, "n1");
    client.subscribe(CDS, &["b"]);
    assert_eq!(client.delta().unwrap().response_nonce, "");
}

#[test]
fn rule_025_each_response_is_answered_once() {
    let mut client = client(&["*"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    client.accept(&delta(CDS, "n2", &[("a", "2")], &[]));
    client.reject(&delta(CDS, "n3", &[("a", "3")], &[]), "a", "no");
    let answers: Vec<_> = std::iter::from_fn(|| client.delta()).collect();
    assert_eq!(answers.iter().map(|ack| ack.response_nonce.as_str()).collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    assert_eq!(answers.iter().map(|ack| ack.error_detail.is_some()).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn answers_go_before_new_subscriptions() {
    let mut client = client(&["a"]);
    client.subscribe(CDS, &["b"]);
    client.subscribe(EDS, &["c"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    let nonces: Vec<_> = std::iter::from_fn(|| client.delta()).map(|request| request.response_nonce).collect();
    assert_eq!(nonces, ["n1", "", ""]);
}

#[test]
fn an_answer_waits_for_its_verdict() {
    let mut client = client(&["a"]);
    client.receive(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert!(client.poll().is_none());
    let update = client.update().unwrap();
    client.finish(&update, Verdict::Accept);
    client.finish(&update, Verdict::Accept);
    assert_eq!(client.delta().unwrap().response_nonce, "n1");
    assert!(client.poll().is_none());
}

#[test]
fn rule_027_a_nack_says_that_an_argument_was_invalid() {
    let mut client = client(&["*"]);
    client.reject(&delta(CDS, "n1", &[("a", "1")], &[]), "a", "no");
    assert_eq!(client.delta().unwrap().error_detail.unwrap().code, 3);
}

#[test]
fn rule_028_the_text_of_a_nack_is_bounded() {
    let mut client = client(&["*"]);
    client.reject(&delta(CDS, "n1", &[("a", "1")], &[]), "a", &"é".repeat(1 << 20));
    let error = client.delta().unwrap().error_detail.unwrap();
    assert!(error.message.len() <= 8192 && error.message.len() > 8000);
    assert!(error.message.ends_with("...(truncated)"));
}

#[test]
fn rule_029_valid_resources_of_a_refused_response_are_used() {
    let mut client = client(&["*"]);
    let mut response = delta(CDS, "n1", &[("good", "1"), ("bad", "1")], &[]);
    response.resources[1].resource = Some(body(EDS, "bad", ""));
    let update = client.accept(&response);
    assert_eq!(changed(&update), [("good", "1")]);
    let nack = client.delta().unwrap();
    assert_eq!(nack.response_nonce, "n1");
    assert!(nack.error_detail.unwrap().message.starts_with("bad: "), "refused although the verdict was to accept");
}

#[test]
fn rule_030_versions_of_a_refused_response_are_not_named() {
    let mut client = client(&["*"]);
    client.accept(&delta(CDS, "n1", &[("good", "1"), ("other", "1")], &[]));
    client.reject(&delta(CDS, "n2", &[("good", "2"), ("bad", "2")], &[]), "bad", "no");
    client.reconnect();
    // The name is: or its removal while we are away would never be told.
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("good", ""), ("other", "1")]));
}

#[test]
fn rule_030_what_a_refused_response_brought_is_replaced_by_what_came_before_it() {
    let mut client = client(&["*"]);
    client.accept(&delta(CDS, "n1", &[("good", "1")], &[]));
    client.reject(&delta(CDS, "n2", &[("good", "2"), ("bad", "2")], &[]), "bad", "no");
    let update = client.accept(&delta(CDS, "n3", &[("good", "1")], &[]));
    assert!(!update.changed[0].touched);
}

#[test]
fn rule_032_a_nack_names_all_that_failed() {
    let mut client = client(&["*"]);
    client.receive(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    let update = client.update().unwrap();
    let reasons = vec![Rejected::new("a", "too red"), Rejected::new("b", "too blue")];
    client.finish(&update, Verdict::Reject { reasons });
    assert_eq!(client.delta().unwrap().error_detail.unwrap().message, "a: too red; b: too blue");
}

#[test]
fn a_thousand_subscribes_are_one_request() {
    let mut client = client(&["a"]);
    for n in 0..1000 {
        client.subscribe(CDS, &[&format!("n{n}")]);
    }
    assert_eq!(client.delta().unwrap().resource_names_subscribe.len(), 1000);
    assert!(client.poll().is_none());
}

#[test]
fn rule_059_the_first_request_lists_everything_and_later_ones_the_difference() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["b", "a", "a"]);
    client.connect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a", "b"]);
    assert!(request.resource_names_unsubscribe.is_empty());
    assert!(client.poll().is_none());

    client.subscribe(CDS, &["c"]);
    client.unsubscribe(CDS, &["a"]);
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["c"]);
    assert_eq!(request.resource_names_unsubscribe, ["a"]);

    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["b", "c"]);
    assert!(request.resource_names_unsubscribe.is_empty());
}

#[test]
fn rule_059_remove_then_add_is_add_and_add_then_remove_is_nothing() {
    let mut client = client(&["a"]);
    client.unsubscribe(CDS, &["a"]);
    client.subscribe(CDS, &["a"]);
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a"]);
    assert!(request.resource_names_unsubscribe.is_empty());

    client.subscribe(CDS, &["b"]);
    client.unsubscribe(CDS, &["b"]);
    assert!(client.poll().is_none());
}

#[test]
fn rule_060_the_wildcard_alone_is_an_empty_first_request() {
    let mut client = client(&["*"]);
    client.reconnect();
    let request = client.delta().unwrap();
    assert!(request.resource_names_subscribe.is_empty() && request.resource_names_unsubscribe.is_empty());

    client.subscribe(CDS, &["x"]);
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["x"]);
    client.reconnect();
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["*", "x"]);
    client.unsubscribe(CDS, &["*"]);
    assert_eq!(client.delta().unwrap().resource_names_unsubscribe, ["*"]);
}

#[test]
fn rule_060_types_without_the_legacy_form_name_the_wildcard() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(EDS, &["*"]);
    client.connect();
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["*"]);
}

#[test]
fn rule_061_a_type_without_subscriptions_is_not_opened_again() {
    let mut client = client(&["a"]);
    client.unsubscribe(CDS, &["a"]);
    assert_eq!(client.delta().unwrap().resource_names_unsubscribe, ["a"]);
    client.reconnect();
    assert!(client.poll().is_none());
}

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
fn rule_151_only_what_is_empty_is_complete() {
    let mut client = client(&["*", GLOB]);
    let update = client.accept(&delta(CDS, "n1", &[("a", "1"), (MEMBER_A, "1")], &[]));
    assert_eq!((answered(&update), complete(&update)), (vec!["*", GLOB], vec![]));
    assert!(complete(&client.accept(&delta(CDS, "n2", &[], &["a"]))).is_empty());
    assert_eq!(complete(&client.accept(&delta(CDS, "n3", &[], &[]))), ["*"]);
    assert_eq!(complete(&client.accept(&delta(CDS, "n4", &[], &[GLOB]))), [GLOB]);
}

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

#[test]
fn rule_036_the_version_of_the_system_is_not_echoed() {
    let mut client = client(&["a"]);
    for (nonce, system) in [("n1", "first"), ("n2", "second")] {
        let response = delta(CDS, nonce, &[("a", "1")], &[]);
        let update = client.accept(&DeltaDiscoveryResponse { system_version_info: system.into(), ..response });
        assert_eq!(update.version, system, "people may see it");
        let ack = client.poll().unwrap();
        assert!(!ack.windows(system.len()).any(|part| part == system.as_bytes()));
    }
    client.reconnect();
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "1")]));
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
fn rule_104_directives_never_reach_the_wire() {
    let member = "xdstp://auth/envoy.config.cluster.v3.Cluster/dir/a";
    for reference in [format!("{member}#entry=x"), format!("{member}#alt=xdstp://other/T/y,entry=x")] {
        assert!(ResourceName::parse(&reference).is_err(), "no interest can be made of it as it is");
        let name = xdstp_uri::Locator::parse(&reference).unwrap().to_name().unwrap();
        let mut client = Client::new(Protocol::Delta);
        client.stream.apply(Command::Subscribe(CDS.into(), name.into()));
        client.connect();
        assert_eq!(client.delta().unwrap().resource_names_subscribe, [member]);
    }
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
fn rule_111_a_resource_that_comes_again_lives_anew() {
    let mut client = client(&["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    let update = client.accept(&response);
    assert_eq!(update.changed[0].resource.value.expires(), Some(client.now + Duration::from_secs(30)));
    // An answer to our own request changes nothing but this.
    client.advance(20);
    client.reconnect();
    while client.poll().is_some() {}
    let update = client.accept(&response);
    assert!(update.changed.is_empty());
    assert_eq!(update.refreshed, [(name("a"), Duration::from_secs(30))]);
    client.advance(29);
    assert!(client.update().is_none());
    // Without a TTL it lives on.
    response.resources[0].ttl = None;
    client.accept(&response);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_112_a_heartbeat_puts_the_end_off() {
    let mut client = client(&["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    client.accept(&response);
    client.advance(20);
    let mut heartbeat = response.clone();
    heartbeat.resources[0].resource = None;
    let update = client.accept(&heartbeat);
    assert_eq!(update.refreshed, [(name("a"), Duration::from_secs(30))]);
    assert!(update.changed.is_empty());
    client.advance(20);
    assert!(client.update().is_none());

    heartbeat.resources[0].version = "2".into();
    while client.poll().is_some() {}
    client.accept(&heartbeat);
    assert!(client.delta().unwrap().error_detail.is_some(), "a heartbeat for a version never sent");
}

#[test]
fn rule_115_a_resource_expires_without_a_word_and_stays_subscribed() {
    let mut client = client(&["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    client.accept(&response);
    while client.poll().is_some() {}
    client.advance(29);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);
    assert_eq!(client.stream.poll_timeout(), None);
    assert!(client.poll().is_none());
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a"]);
    assert!(request.initial_resource_versions.is_empty());
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

#[test]
fn a_message_that_is_no_response_ends_the_stream() {
    let mut client = client(&["a"]);
    assert!(client.stream.handle_message(client.now, Bytes::from_static(b"\xff\xff")).is_err());
}

#[test]
fn a_server_that_never_reads_is_not_remembered_for_ever() {
    let mut client = client(&["a"]);
    let response: Bytes = delta(CDS, "n", &[], &[]).encode_to_vec().into();
    let mut unread = 0;
    while client.stream.handle_message(client.now, response.clone()).is_ok() {
        let update = client.update().unwrap();
        client.finish(&update, Verdict::Accept);
        unread += 1;
        assert!(unread < 10_000);
    }
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
