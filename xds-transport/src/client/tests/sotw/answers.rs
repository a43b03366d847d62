//! ACKs and NACKs: the nonce and the version they carry.

use super::*;

#[test]
fn rule_014_requests_carry_the_newest_nonce_of_their_stream() {
    let mut client = endpoints(&["a"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(client.sotw().unwrap().response_nonce, "n1");
    client.subscribe(EDS, &["b"]);
    assert_eq!(client.sotw().unwrap().response_nonce, "n1");
    client.reconnect();
    assert_eq!(client.sotw().unwrap().response_nonce, "");
}

#[test]
fn rule_015_the_version_is_the_last_accepted_one_and_survives_the_stream() {
    let mut client = endpoints(&["a"]);
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "");
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(client.sotw().unwrap().version_info, "v1");
    client.reject(&sotw(EDS, "v2", "n2", &[("a", "2")]), "a", "no");
    assert_eq!(client.sotw().unwrap().version_info, "v1");
    client.reconnect();
    let request = client.sotw().unwrap();
    assert_eq!((request.version_info.as_str(), request.error_detail), ("v1", None));
}

#[test]
fn rule_025_each_response_is_answered_once() {
    let mut client = endpoints(&["a"]);
    client.receive(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    assert!(client.poll().is_none());
    let update = client.update().unwrap();
    client.finish(&update, Verdict::Accept);
    let ack = client.sotw().unwrap();
    assert_eq!((ack.version_info.as_str(), ack.response_nonce.as_str()), ("v1", "n1"));
    assert_eq!(ack.resource_names, ["a"]);
    assert!(client.poll().is_none());
}

#[test]
fn rule_026_a_nack_has_the_version_before_and_the_nonce_of_what_it_refuses() {
    let mut client = endpoints(&["a"]);
    client.reject(&sotw(EDS, "v1", "n1", &[("a", "1")]), "a", "no");
    let nack = client.sotw().unwrap();
    assert_eq!((nack.version_info.as_str(), nack.response_nonce.as_str()), ("", "n1"));
    assert_eq!(nack.error_detail.unwrap().message, "a: no");
    client.accept(&sotw(EDS, "v2", "n2", &[("a", "2")]));
    client.sotw();
    client.reject(&sotw(EDS, "v3", "n3", &[("a", "3")]), "a", "no");
    let nack = client.sotw().unwrap();
    assert_eq!((nack.version_info.as_str(), nack.response_nonce.as_str()), ("v2", "n3"));
}

#[test]
fn a_refused_resource_is_offered_again() {
    let mut client = endpoints(&["a"]);
    client.reject(&sotw(EDS, "v1", "n1", &[("a", "1")]), "a", "no");
    assert_eq!(changed_names(&client.accept(&sotw(EDS, "v2", "n2", &[("a", "1")]))), ["a"]);
}

#[test]
fn what_a_full_state_repeats_is_counted_and_is_no_news() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a", "b"]);
    assert_eq!(client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")])).unchanged, 0);
    let update = client.accept(&sotw(CDS, "v2", "n2", &[("a", "1"), ("b", "2"), ("other", "1")]));
    assert_eq!((update.unchanged, changed_names(&update)), (1, vec!["b"]));
    let update = client.accept(&sotw(CDS, "v2", "n3", &[("a", "1"), ("b", "2")]));
    assert_eq!((update.unchanged, changed_names(&update)), (2, vec![]));
}
