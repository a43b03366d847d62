//! The wildcard: an empty list, or a name among others, and how it is given up.

use super::*;

#[test]
fn rule_043_the_wildcard_is_an_empty_list_until_names_were_sent() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(CDS, &["*"]);
    client.connect();
    assert!(client.sotw().unwrap().resource_names.is_empty());
    client.subscribe(CDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*", "a"]);
    client.unsubscribe(CDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    client.unsubscribe(CDS, &["*"]);
    assert!(client.sotw().unwrap().resource_names.is_empty());
}

#[test]
fn rule_040_the_legacy_wildcard_is_named_before_it_can_be_given_up() {
    let mut client = clusters(&["*"]);
    client.unsubscribe(CDS, &["*"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    assert!(client.sotw().unwrap().resource_names.is_empty());
    assert!(client.poll().is_none());
}

/// A response crossed the list that ended it: that is dropped, and the wildcard is named and given up once more.
#[test]
fn rule_055_a_wildcard_that_is_asked_for_again_is_seen_to_leave_first() {
    let mut client = clusters(&["*"]);
    client.unsubscribe(CDS, &["*"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    assert!(client.sotw().unwrap().resource_names.is_empty());
    client.receive(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    client.subscribe(CDS, &["*"]);
    assert!(client.sotw().unwrap().resource_names.is_empty(), "or nothing would be sent");
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    assert!(client.poll().is_none());
    assert_eq!(changed_names(&client.accept(&sotw(CDS, "v1", "n2", &[("a", "1")]))), ["a"]);
}

/// A server drops what does not answer its newest response (rule 16): as far as it knows, no names were ever sent.
#[test]
fn rule_040_names_that_a_response_crossed_have_not_ended_the_wildcard() {
    let mut client = clusters(&["*"]);
    client.accept(&sotw(CDS, "v1", "n1", &[]));
    client.sotw();
    client.subscribe(CDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*", "a"]);
    client.unsubscribe(CDS, &["*", "a"]);
    assert!(client.sotw().unwrap().resource_names.is_empty());
    client.receive(&sotw(CDS, "v2", "n2", &[("b", "1")]));
    let requests: Vec<_> = std::iter::from_fn(|| client.sotw()).collect();
    let said = |request: &DiscoveryRequest| (request.resource_names.join(" "), request.response_nonce.clone());
    assert_eq!(requests.iter().map(said).collect::<Vec<_>>(), owned(&[("*", "n2"), ("", "n2")]));
}
