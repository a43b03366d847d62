//! Which responses are answered, and what an ACK or a NACK says.

use super::*;

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
fn what_comes_once_more_answers_who_asked_once_more_and_is_no_answer_after_that() {
    let mut client = client(&["a"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    client.delta();
    client.subscribe(CDS, &["*"]);
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["*"]);
    // Both are there before there is a verdict on either.
    for nonce in ["n2", "n3"] {
        client.receive(&delta(CDS, nonce, &[("a", "1")], &[]));
    }
    let repeated = [client.update().unwrap(), client.update().unwrap()].map(|update| update.repeated.len());
    assert_eq!(repeated, [1, 0]);
}
