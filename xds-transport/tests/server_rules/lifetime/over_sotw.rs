//! TTLs where a response is a full state: rules 113, 114.

use super::*;
use crate::support::CLUSTERS;

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
