//! The order of one stream with full windows, split responses and types that always have news: rule 158.

use std::time::Duration;

use xds_transport::Frame;

use crate::support::{CLUSTERS, Client, ENDPOINTS, LISTENERS, ROUTES, Server, payload, seconds};

/// Clusters of about 10 KB: 1200 are 12 MB, and eight responses hold 208.
fn put_large(server: &mut Server, of: &str, names: impl Iterator<Item = usize>, version: &str) {
    for name in names {
        let name = format!("{name:04}");
        let frame = Frame::of_message(&of.into(), &payload(&name, &format!("{version} {}", "x".repeat(10_000))));
        server.put_frame(of, &name, version, frame);
    }
}

/// How many resources of a type a client was sent.
fn count(client: &Client, of: &str) -> usize {
    client.delta.iter().filter(|response| response.type_url == of).map(|response| response.resources.len()).sum()
}

#[test]
fn rule_158_listeners_and_routes_go_out_after_all_clusters_however_many() {
    let mut server = Server::origin();
    put_large(&mut server, CLUSTERS, 0..1200, "1");
    server.put(LISTENERS, "l", "1");
    server.put(ROUTES, "r", "1");
    server.put(ENDPOINTS, "0000", "1");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    assert_eq!(count(&client, CLUSTERS), 208);
    // Rule 123: endpoints never wait.
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["0000"]), ["E 0000@1"]);
    assert_eq!(client.subscribe(&mut server, LISTENERS, &[]), [""; 0]);
    assert_eq!(client.subscribe(&mut server, ROUTES, &["r"]), [""; 0]);
    // Over a slow link an ACK now and then shows that it gets on.
    let mut said = Vec::new();
    while count(&client, CLUSTERS) < 1200 {
        assert!(said.iter().all(|line: &String| line.starts_with('C')), "after {} clusters", count(&client, CLUSTERS));
        server.now += Duration::from_millis(900);
        said = client.ack(&mut server, CLUSTERS);
    }
    said.retain(|line| !line.starts_with('C'));
    assert_eq!(said, ["L l@1", "R r@1"]);
}

#[test]
fn rule_158_a_client_that_never_acknowledges_clusters_gets_its_routes_after_a_second() {
    let mut server = Server::origin();
    put_large(&mut server, CLUSTERS, 0..1200, "1");
    put_large(&mut server, ROUTES, 0..100, "1");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    assert_eq!(client.subscribe(&mut server, ROUTES, &["*"]), [""; 0]);
    let until = server.now + seconds(1);
    assert_eq!(client.stream.poll_timeout(), Some(until));
    server.now = until;
    client.poll(&mut server);
    assert_eq!(count(&client, ROUTES), 100, "in however many responses");
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_158_a_cluster_is_removed_after_the_route_that_waits_for_its_window() {
    let mut server = Server::with(CLUSTERS, &["old"]);
    server.put(ROUTES, "r", "0");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    client.subscribe(&mut server, ROUTES, &["r"]);
    client.ack(&mut server, CLUSTERS);
    for version in 1..8 {
        server.put(ROUTES, "r", &version.to_string());
        client.poll(&mut server);
    }
    server.remove(CLUSTERS, "old");
    server.put(ROUTES, "r", "new");
    assert_eq!(client.poll(&mut server), [""; 0]);
    // What is added meanwhile does not wait, and its stream is woken for it.
    server.woken.clear();
    server.put(CLUSTERS, "new", "1");
    assert_eq!(server.woken.len(), 1);
    assert_eq!(client.poll(&mut server), ["C new@1"]);
    assert_eq!(client.ack(&mut server, ROUTES), ["R r@new", "C -old"]);
}

/// It has the clusters, and acknowledges no route.
fn client_behind_a_full_window(server: &mut Server) -> Client {
    server.put(ROUTES, "r", "0");
    let mut client = Client::delta();
    client.subscribe(server, CLUSTERS, &[]);
    client.subscribe(server, ROUTES, &["r"]);
    for version in 1..9 {
        server.put(ROUTES, "r", &version.to_string());
        client.poll(server);
    }
    client
}

#[test]
fn rule_158_a_removal_waits_no_longer_than_a_second_for_a_window_that_stays_full() {
    let mut server = Server::with(CLUSTERS, &["old"]);
    let mut client = client_behind_a_full_window(&mut server);
    server.remove(CLUSTERS, "old");
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.now = client.stream.poll_timeout().unwrap();
    assert_eq!(client.poll(&mut server), ["C -old"]);
}

#[test]
fn rule_158_a_removal_that_joins_another_waits_as_long() {
    let mut server = Server::with(CLUSTERS, &["old", "other"]);
    let mut client = client_behind_a_full_window(&mut server);
    server.remove(CLUSTERS, "old");
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.now += Duration::from_millis(900);
    // The route that stops using it may still be behind the window.
    server.remove(CLUSTERS, "other");
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.now += Duration::from_millis(999);
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.now += Duration::from_millis(1);
    assert_eq!(client.poll(&mut server).concat(), "C -old -other");
}

#[test]
fn rule_158_over_sotw_a_cluster_is_removed_after_the_route_that_uses_it() {
    let mut server = Server::with(CLUSTERS, &["old", "other"]);
    server.put(ROUTES, "r", "1");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ROUTES, &["r"]);
    client.settle(&mut server);
    server.remove(CLUSTERS, "old");
    server.put(ROUTES, "r", "2");
    assert_eq!(client.poll(&mut server), ["R r@2", "C other@1"]);
    client.ack(&mut server, CLUSTERS);
    // With the route's window full, it waits; what is added does not, and has what is gone beside it.
    server.remove(CLUSTERS, "other");
    server.put(ROUTES, "r", "3");
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.woken.clear();
    server.put(CLUSTERS, "new", "1");
    assert_eq!(server.woken.len(), 1);
    assert_eq!(client.poll(&mut server), ["C new@1 other@1"]);
    assert_eq!(client.ack(&mut server, CLUSTERS), [""; 0]);
    assert_eq!(client.ack(&mut server, ROUTES), ["R r@3", "C new@1"]);
}

#[test]
fn rule_158_over_sotw_a_removal_waits_a_second_at_most() {
    let mut server = Server::with(CLUSTERS, &["old", "other"]);
    server.put(ROUTES, "r", "1");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.ack(&mut server, CLUSTERS);
    client.names(&mut server, ROUTES, &["r"]);
    server.remove(CLUSTERS, "old");
    server.put(ROUTES, "r", "2");
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.now = client.stream.poll_timeout().unwrap();
    assert_eq!(client.poll(&mut server), ["C other@1"]);
    assert_eq!(client.ack(&mut server, ROUTES), ["R r@2"]);
}

#[test]
fn rule_158_a_removal_does_not_wait_for_ever_for_a_type_that_always_has_news() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::with(CLUSTERS, &["old", "other"]);
        server.put(ROUTES, "r", "0");
        client.want(&mut server, CLUSTERS, &[]);
        client.want(&mut server, ROUTES, &["r"]);
        client.settle(&mut server);
        server.remove(CLUSTERS, "old");
        let mut said = Vec::new();
        for version in 1..=200 {
            server.put(ROUTES, "r", &version.to_string());
            said.push(client.poll_one(&mut server).unwrap());
            client.drop_ack(&mut server, ROUTES);
            server.now += Duration::from_millis(10);
        }
        let told = said.iter().position(|line| line.starts_with('C')).unwrap();
        assert!((100..105).contains(&told), "{told}");
    }
}

#[test]
fn rule_108_an_unknown_cluster_is_told_at_once_whatever_others_say() {
    let mut server = Server::with(CLUSTERS, &["known", "gone"]);
    server.put(ROUTES, "r", "0");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    client.subscribe(&mut server, ROUTES, &["r"]);
    client.settle(&mut server);
    server.remove(CLUSTERS, "gone");
    server.put(ROUTES, "r", "1");
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["on-demand"]), ["C -on-demand", "R r@1", "C -gone"]);
    // It was there once, and the client has it.
    server.put(CLUSTERS, "on-demand", "1");
    client.poll(&mut server);
    server.remove(CLUSTERS, "on-demand");
    server.put(ROUTES, "r", "2");
    assert_eq!(client.poll(&mut server), ["R r@2", "C -on-demand"]);
}

#[test]
fn rule_158_why_a_cluster_is_not_there_is_told_at_once_and_with_it_that_it_is_not() {
    let mut server = Server::with(CLUSTERS, &["known"]);
    server.put(ROUTES, "r", "0");
    server.fail(CLUSTERS, "on-demand", 7);
    server.fail(CLUSTERS, "held", 14);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    client.subscribe(&mut server, ROUTES, &["r"]);
    client.settle(&mut server);
    server.put(ROUTES, "r", "1");
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["on-demand"]), ["C -on-demand !on-demand:7", "R r@1"]);
    // An error that takes something away waits, and one beside a resource does not.
    client.subscribe(&mut server, CLUSTERS, &["known"]);
    server.put(CLUSTERS, "on-demand", "1");
    client.settle(&mut server);
    server.fail(CLUSTERS, "known", 14);
    server.fail(CLUSTERS, "on-demand", 5);
    server.put(ROUTES, "r", "2");
    assert_eq!(client.poll(&mut server), ["C !known:14", "R r@2", "C -on-demand !on-demand:5"]);
}

#[test]
fn rule_158_that_a_glob_is_empty_is_told_at_once() {
    let mut server = Server::with(CLUSTERS, &["known"]);
    server.put(ROUTES, "r", "0");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    client.subscribe(&mut server, ROUTES, &["r"]);
    client.settle(&mut server);
    server.put(ROUTES, "r", "1");
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["xdstp://x/T/d/*"]), ["C -xdstp://x/T/d/*", "R r@1"]);
}

#[test]
fn rule_158_over_sotw_the_first_answer_says_at_once_why_a_cluster_is_not_there() {
    let mut server = Server::origin();
    server.put(ROUTES, "r", "0");
    server.fail(CLUSTERS, "on-demand", 7);
    let mut client = Client::sotw();
    client.names(&mut server, ROUTES, &["r"]);
    client.settle(&mut server);
    server.put(ROUTES, "r", "1");
    assert_eq!(client.names(&mut server, CLUSTERS, &["on-demand"]), ["C !on-demand:7", "R r@1"]);
}
