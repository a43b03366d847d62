//! Heartbeats, and what is refreshed alone: rules 111, 112, 133.

use std::time::Duration;

use xds_transport::server::Reception;
use xds_transport::{Put, TypeRules};

use super::*;
use crate::support::{Ask, CLUSTERS};

#[test]
fn rule_111_what_lives_for_a_time_is_refreshed_in_time() {
    let (mut server, mut client) = delta();
    let first = server.now;
    for n in 1..=20 {
        client.ack(&mut server, ENDPOINTS);
        let due = client.stream.poll_timeout().unwrap();
        assert!(due <= first + seconds(10 * n), "a third of the TTL at the most");
        server.now = due - Duration::from_nanos(1);
        assert!(client.poll(&mut server).is_empty());
        server.now = due;
        assert_eq!(client.poll(&mut server).len(), 1);
        assert_eq!(last(&client), [one("a", "1", Some(30), false)]);
    }
}

#[test]
fn rule_111_a_new_ttl_counts_from_then_on_and_none_ends_it() {
    let (mut server, mut client) = delta();
    put(&mut server, ENDPOINTS, "a", "2", Some(3));
    assert_eq!(client.poll(&mut server), ["E a@2"]);
    assert_eq!(client.stream.poll_timeout(), Some(server.now + seconds(1)));
    put(&mut server, ENDPOINTS, "a", "3", None);
    client.poll(&mut server);
    assert_eq!(last(&client), [one("a", "3", None, true)]);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_111_odd_ttls_are_no_trouble() {
    for ttl in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX, seconds(i64::MAX as u64)] {
        let mut server = Server::origin();
        let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1"));
        server.put_frame(ENDPOINTS, "a", "1", frame.with_wrapper(Bytes::new(), Some(ttl), false));
        let mut client = Client::delta().with_features(&FEATURES);
        assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
        let due = client.stream.poll_timeout();
        assert!(due.is_none_or(|due| due >= server.now + Duration::from_millis(10)), "{ttl:?}");
    }
}

#[test]
fn rule_111_what_a_client_brought_along_is_refreshed_too() {
    let mut server = Server::origin();
    put(&mut server, CLUSTERS, "a", "1", Some(30));
    let mut client = Client::delta().with_features(&FEATURES);
    client.ask(&mut server, &Ask { of: CLUSTERS, subscribe: &["a"], holds: &[("a", "1")], ..Ask::default() });
    assert_eq!(last(&client), [one("a", "1", Some(30), false)]);
}

#[test]
fn rule_112_a_heartbeat_has_the_version_that_was_sent_and_no_body() {
    let (mut server, mut client) = delta();
    assert_eq!(last(&client), [one("a", "1", Some(30), true)]);
    server.now += seconds(10);
    client.poll(&mut server);
    assert_eq!(last(&client), [one("a", "1", Some(30), false)]);
    // What changed meanwhile is sent instead, what is gone is removed, what was left or refused is forgotten.
    server.now += seconds(10);
    put(&mut server, ENDPOINTS, "a", "2", Some(30));
    client.poll(&mut server);
    assert_eq!(last(&client), [one("a", "2", Some(30), true)]);
    client.nack(&mut server, ENDPOINTS);
    server.now += seconds(10);
    assert!(client.poll(&mut server).is_empty(), "the client does not have it");
    put(&mut server, ENDPOINTS, "a", "3", Some(30));
    client.settle(&mut server);
    client.unsubscribe(&mut server, ENDPOINTS, &["a"]);
    server.now += seconds(10);
    assert!(client.poll(&mut server).is_empty());
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_084_what_is_refreshed_whole_is_on_its_way_like_what_is_put() {
    for takes_the_ttl_back in [false, true] {
        let (mut server, mut client) = (Server::origin(), Client::delta().with_features(&FEATURES));
        put(&mut server, CLUSTERS, "a", "1", Some(30));
        client.subscribe(&mut server, CLUSTERS, &["*"]);
        client.ack(&mut server, CLUSTERS);
        let a = "a".parse().unwrap();
        if takes_the_ttl_back {
            server.cache.value_mut(&CLUSTERS.into(), &a).unwrap().refresh(None, None);
            server.now += seconds(10);
        } else {
            server.now += seconds(31);
        }
        assert_eq!(client.poll(&mut server), ["C a@1"]);
        let reception = |client: &Client| client.stream.sessions().next().unwrap().reception(&a);
        assert_eq!(reception(&client), Reception::Unanswered);
        client.unsubscribe(&mut server, CLUSTERS, &["*"]);
        server.remove(CLUSTERS, "a");
        assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C -a"]);
        assert_eq!(reception(&client), Reception::Accepted);
    }
}

#[test]
fn rule_112_no_heartbeat_waits_behind_responses_that_nobody_reads() {
    let (mut server, mut client) = delta();
    for version in 2..20 {
        put(&mut server, ENDPOINTS, "a", &version.to_string(), Some(30));
        client.poll(&mut server);
    }
    assert_eq!(client.stream.poll_timeout(), None, "nothing can be sent");
    server.now += seconds(60);
    client.settle(&mut server);
    assert_eq!(last(&client), [one("a", "19", Some(30), true)]);
    assert!(client.stream.poll_timeout().is_some());
}

#[test]
fn rule_111_what_came_with_something_bad_is_refreshed_and_what_is_bad_is_not() {
    let (mut server, mut client) = refusing();
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server).len(), 2);
    let told: Vec<_> = client.delta.iter().rev().take(2).rev().map(|response| &response.resources[..]).collect();
    let names: Vec<_> = told.iter().flat_map(|one| one.iter().map(|one| &*one.name)).collect();
    assert_eq!((told.len(), names), (2, vec!["bad", "good"]));
    let nonces: Vec<_> = client.delta.iter().rev().take(2).rev().map(|response| response.nonce.clone()).collect();
    let error = Some("not here");
    client.ask(&mut server, &Ask { of: ENDPOINTS, nonce: &nonces[0], error, ..Ask::default() });
    client.ask(&mut server, &Ask { of: ENDPOINTS, nonce: &nonces[1], ..Ask::default() });
    for _ in 0..3 {
        server.now += seconds(10);
        assert_eq!(client.poll(&mut server).len(), 1);
        assert_eq!(last(&client), [one("good", "1", Some(30), false)]);
        client.ack(&mut server, ENDPOINTS);
    }
}

#[test]
fn rule_111_a_refresh_that_is_refused_says_nothing_of_what_was_sent_since() {
    let (mut server, mut client) = refusing();
    server.now += seconds(10);
    client.poll(&mut server);
    assert_eq!(last(&client), [one("good", "1", Some(30), false)]);
    let refused = client.nonce(ENDPOINTS);
    client.subscribe(&mut server, ENDPOINTS, &["good"]);
    assert_eq!(last(&client), [one("good", "1", Some(30), true)]);
    client.ask(&mut server, &Ask { of: ENDPOINTS, nonce: &refused, error: Some("let go"), ..Ask::default() });
    client.ack(&mut server, ENDPOINTS);
    server.now += seconds(10);
    client.poll(&mut server);
    assert!(last(&client).contains(&one("good", "1", Some(30), false)));
}

#[test]
fn rule_112_what_a_client_let_go_before_the_heartbeat_came_is_sent_again() {
    let (mut server, mut client) = delta();
    client.ack(&mut server, ENDPOINTS);
    server.now += seconds(10);
    client.poll(&mut server);
    client.nack(&mut server, ENDPOINTS);
    assert_eq!(last(&client), [one("a", "1", Some(30), true)]);
    // If that is refused too, it is the resource.
    client.nack(&mut server, ENDPOINTS);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_111_what_is_over_at_the_client_is_sent_again() {
    let (mut server, mut client) = delta();
    client.ack(&mut server, ENDPOINTS);
    server.now += seconds(31);
    client.poll(&mut server);
    assert_eq!(last(&client), [one("a", "1", Some(30), true)], "a heartbeat would be refused");
}

#[test]
fn rule_111_another_ttl_of_the_same_content_is_told() {
    let mut server = Server::origin();
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    for ttl in [Some(30), Some(60), None] {
        let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1"));
        let frame = frame.with_wrapper(Bytes::new(), ttl.map(|ttl| seconds(ttl as u64)), false);
        let (rules, name) = (TypeRules::envoy(), "a".parse().unwrap());
        let resource = frame.into_resource(Some("1".into()));
        for told in [1, 0] {
            let mut edit = server.cache.edit(server.now);
            edit.put_checked(&rules, &ENDPOINTS.into(), &name, resource.clone()).unwrap();
            server.woken.extend(edit.finish());
            assert_eq!(client.poll(&mut server).len(), told, "once");
        }
        assert_eq!(last(&client), [one("a", "1", ttl, true)]);
    }
}

#[test]
fn rule_111_what_is_refreshed_alone_is_so_until_it_is_answered() {
    let (mut server, mut client) = refusing();
    for _ in 0..2 {
        server.now += seconds(10);
        assert_eq!(client.poll(&mut server).len(), 2);
    }
}

#[test]
fn rule_133_heartbeats_beyond_what_a_response_holds_go_in_the_next() {
    let mut server = Server::origin();
    // Each a quarter of what a response holds: 15 bytes go with a name.
    let names: Vec<_> = (0..5).map(|n| format!("{n}{}", "x".repeat(64 * 1024 - 16))).collect();
    names.iter().for_each(|name| put(&mut server, ENDPOINTS, name, "1", Some(30)));
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &names.iter().map(String::as_str).collect::<Vec<_>>());
    client.settle(&mut server);
    client.delta.clear();
    server.now += seconds(10);
    client.poll(&mut server);
    let counts: Vec<_> = client.delta.iter().map(|response| response.resources.len()).collect();
    assert_eq!(counts, [4, 1]);
}

#[test]
fn nothing_comes_along_with_what_is_refreshed_alone() {
    let (mut server, mut client) = refusing();
    put(&mut server, ENDPOINTS, "sure", "1", Some(30));
    client.subscribe(&mut server, ENDPOINTS, &["sure"]);
    client.ack(&mut server, ENDPOINTS);
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server).len(), 3);
    let told = client.delta.iter().rev().take(3).rev();
    let names: Vec<Vec<_>> = told.map(|one| one.resources.iter().map(|one| &*one.name).collect()).collect();
    assert_eq!(names, [["bad"], ["good"], ["sure"]]);
}
