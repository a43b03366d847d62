//! TTLs: rules 111–114, 148.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::Resource;
use xds_transport::{Frame, Put, TypeRules};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server, payload, seconds};

const FEATURES: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];

fn put(server: &mut Server, of: &str, name: &str, version: &str, ttl: Option<u64>) {
    let frame = Frame::of_message(&of.into(), &payload(name, version));
    server.put_frame(of, name, version, frame.with_wrapper(Bytes::new(), ttl.map(seconds), false));
}

/// A delta client of a server that has one resource with a TTL of 30 seconds.
fn delta() -> (Server, Client) {
    let mut server = Server::origin();
    put(&mut server, ENDPOINTS, "a", "1", Some(30));
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    (server, client)
}

/// A delta client that refused one of two resources with a TTL of 30 seconds: which of them, each alone can tell.
fn refusing() -> (Server, Client) {
    let mut server = Server::origin();
    for name in ["bad", "good"] {
        put(&mut server, ENDPOINTS, name, "1", Some(30));
    }
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["bad", "good"]);
    client.nack(&mut server, ENDPOINTS);
    (server, client)
}

/// (name, version, seconds of TTL, whether it has a body) of what came last.
fn last(client: &Client) -> Vec<(String, String, Option<i64>, bool)> {
    let resources: Vec<Resource> = match client.delta.last() {
        Some(response) => response.resources.clone(),
        None => {
            let anys = &client.sotw.last().unwrap().resources;
            anys.iter().map(|any| Resource::decode(&*any.value).unwrap()).collect()
        }
    };
    let line = |one: Resource| (one.name, one.version, one.ttl.map(|ttl| ttl.seconds), one.resource.is_some());
    resources.into_iter().map(line).collect()
}

fn one(name: &str, version: &str, ttl: Option<i64>, body: bool) -> (String, String, Option<i64>, bool) {
    (name.into(), version.into(), ttl, body)
}

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
fn rule_113_a_full_state_with_something_bad_is_refreshed() {
    let mut server = Server::with(CLUSTERS, &["bad"]);
    put(&mut server, CLUSTERS, "good", "1", Some(30));
    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    client.names(&mut server, CLUSTERS, &[]);
    client.nack(&mut server, CLUSTERS);
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server), ["C bad@1 good@1"], "or the good one would be over");
}

#[test]
fn rule_113_over_sotw_a_refresh_of_clusters_is_all_of_them_with_their_content() {
    let mut server = Server::with(CLUSTERS, &["b"]);
    put(&mut server, CLUSTERS, "a", "1", Some(30));
    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    client.names(&mut server, CLUSTERS, &[]);
    client.ack(&mut server, CLUSTERS);
    for _ in 0..5 {
        server.now += seconds(10);
        assert_eq!(client.poll(&mut server), ["C a@1 b@1"]);
        assert!(last(&client).iter().all(|(.., body)| *body));
        assert!(client.poll(&mut server).is_empty());
        assert_eq!(client.stream.poll_timeout(), None, "the ACK comes first");
        client.ack(&mut server, CLUSTERS);
    }
}

#[test]
fn rule_113_who_is_subscribed_to_nothing_is_refreshed_of_nothing() {
    let mut server = Server::origin();
    put(&mut server, CLUSTERS, "a", "1", Some(30));
    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    client.names(&mut server, CLUSTERS, &["a"]);
    assert!(client.names(&mut server, CLUSTERS, &[]).is_empty());
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_114_a_ttl_goes_over_sotw_only_where_that_was_chosen() {
    let mut server = Server::with(ENDPOINTS, &["b"]);
    put(&mut server, ENDPOINTS, "a", "1", Some(30));
    let mut client = Client::sotw().with_features(&FEATURES);
    client.names(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    assert_eq!(last(&client).iter().find(|one| one.2.is_some()), None);
    assert_eq!(client.stream.poll_timeout(), None);

    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    client.names(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    assert!(last(&client).contains(&one("a", "1", Some(30), true)));
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server), ["E a@1"]);
    assert_eq!(last(&client), [one("a", "1", Some(30), true)], "with its content, which arms every client's timer");
}

#[test]
fn rule_114_what_a_sotw_client_refused_is_not_refreshed() {
    let mut server = Server::origin();
    put(&mut server, ENDPOINTS, "a", "1", Some(30));
    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    client.names(&mut server, ENDPOINTS, &["a"]);
    client.nack(&mut server, ENDPOINTS);
    assert_eq!(client.stream.poll_timeout(), None);
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server), [""; 0], "it would be refused again (rule 23)");
}

#[test]
fn rule_113_a_full_state_of_one_that_was_refused_is_not_refreshed() {
    let mut server = Server::origin();
    put(&mut server, CLUSTERS, "a", "1", Some(30));
    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    client.names(&mut server, CLUSTERS, &[]);
    client.nack(&mut server, CLUSTERS);
    assert_eq!(client.stream.poll_timeout(), None);
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server), [""; 0], "it would be refused again (rule 23)");
}

#[test]
fn rule_114_what_came_over_sotw_with_something_bad_is_refreshed_alone() {
    let mut server = Server::origin();
    for name in ["bad", "good"] {
        put(&mut server, ENDPOINTS, name, "1", Some(30));
    }
    let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
    assert_eq!(client.names(&mut server, ENDPOINTS, &["bad", "good"]), ["E bad@1 good@1"]);
    client.nack(&mut server, ENDPOINTS);
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server), ["E bad@1"]);
    assert_eq!(client.nack(&mut server, ENDPOINTS), ["E good@1"]);
    client.ack(&mut server, ENDPOINTS);
    server.now += seconds(10);
    assert_eq!(client.poll(&mut server), ["E good@1"]);
}

#[test]
fn rule_148_what_remains_of_a_ttl_is_passed_on_and_nothing_is_made_up() {
    let mut server = Server::relay();
    let start = server.now;
    let ttl = Some(seconds(60));
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1")).with_wrapper(Bytes::new(), ttl, false);
    server.put_frame(ENDPOINTS, "a", "1", frame.until(Some(start + seconds(60))));
    server.now += seconds(30);
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    assert_eq!(last(&client), [one("a", "1", Some(30), true)]);

    // The origin is silent, and so is the relay.
    let mut looks = 0;
    while let Some(due) = client.stream.poll_timeout().filter(|due| *due < start + seconds(45)) {
        server.now = due;
        assert!(client.poll(&mut server).is_empty());
        looks += 1;
        assert!(looks < 10);
    }
    // It speaks: the client is told at the next look.
    let held = server.cache.value_mut(&ENDPOINTS.into(), &"a".parse().unwrap()).unwrap();
    held.refresh(Some(seconds(60)), Some(start + seconds(105)));
    server.now = client.stream.poll_timeout().unwrap();
    assert!(server.now < start + seconds(60));
    assert_eq!(client.poll(&mut server).len(), 1);
    let remaining = (start + seconds(105) - server.now).as_secs() as i64;
    assert_eq!(last(&client), [one("a", "1", Some(remaining), false)]);
}

#[test]
fn rule_148_looking_for_news_ends_with_the_resource() {
    let mut server = Server::relay();
    let (start, ttl) = (server.now, Some(seconds(60)));
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1")).with_wrapper(Bytes::new(), ttl, false);
    server.put_frame(ENDPOINTS, "a", "1", frame.until(Some(start + seconds(60))));
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let mut looks = 0;
    while let Some(due) = client.stream.poll_timeout() {
        assert!(due < start + seconds(60));
        server.now = due;
        assert!(client.poll(&mut server).is_empty());
        looks += 1;
    }
    assert!(looks < 30, "{looks}");
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
fn rule_148_a_response_that_is_refused_says_nothing_of_what_was_only_looked_at() {
    let mut server = Server::relay();
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1"));
    let frame = frame.with_wrapper(Bytes::new(), Some(seconds(60)), false);
    server.put_frame(ENDPOINTS, "a", "1", frame.until(Some(server.now + seconds(60))));
    server.put(ENDPOINTS, "b", "1");
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    server.now = client.stream.poll_timeout().unwrap();
    assert!(client.poll(&mut server).is_empty(), "its origin is silent");
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(client.poll(&mut server), ["E b@2"]);
    client.nack(&mut server, ENDPOINTS);
    assert!(client.stream.poll_timeout().is_some(), "the client has it, and it may live on");
}
