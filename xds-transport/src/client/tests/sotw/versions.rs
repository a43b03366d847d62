//! Which version a request names: one that says of what is wanted that it is held.

use super::*;
use crate::wire::Duration as WireDuration;

/// Who names no version is taken for one that holds nothing.
#[test]
fn rule_151_who_accepted_nothing_as_a_whole_and_holds_something_names_a_version() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a", "b"]);
    client.reject(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]), "a", "no");
    assert_eq!(client.sotw().unwrap().version_info, "", "rule 26");
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "?");
}

#[test]
fn rule_087_a_version_of_names_is_not_named_for_everything() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a", "b"]);
    client.unsubscribe(CDS, &["a"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    client.stream.disconnected(client.now);
    client.subscribe(CDS, &["*"]);
    client.unsubscribe(CDS, &["b"]);
    client.connect();
    assert_eq!(client.sotw().unwrap().version_info, "");
}

#[test]
fn rule_087_a_version_of_what_was_given_up_is_not_named() {
    let mut client = clusters(&["*"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    client.unsubscribe(CDS, &["*"]);
    client.subscribe(CDS, &["*"]);
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "");
}

#[test]
fn rule_151_who_gave_up_all_it_held_names_no_version() {
    let mut client = endpoints(&["a"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    client.sotw();
    client.unsubscribe(EDS, &["a"]);
    client.sotw();
    client.stream.disconnected(client.now);
    client.subscribe(EDS, &["b"]);
    client.connect();
    assert_eq!(client.sotw().unwrap().version_info, "");
    // On one stream, too.
    let mut client = endpoints(&["a"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    client.sotw();
    client.unsubscribe(EDS, &["a"]);
    client.subscribe(EDS, &["b"]);
    assert_eq!(client.sotw().unwrap().version_info, "");
}

/// At the version it named the server would send nothing, as to who has it all.
#[test]
fn rule_087_a_version_of_what_ran_out_is_not_named() {
    let mut client = clusters(&["*"]);
    let resource = Resource {
        name: "a".into(),
        resource: Some(body(CDS, "a", "1")),
        ttl: Some(WireDuration { seconds: 10, nanos: 0 }),
        ..Resource::default()
    };
    client.accept(&DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(CDS, "v1", "n1", &[]) });
    assert_eq!(client.sotw().unwrap().version_info, "v1");
    client.advance(10);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);
    client.reconnect();
    assert_ne!(client.sotw().unwrap().version_info, "v1");
}

/// A server that is told no version may send a piece of its answer as the full state, which deletes the rest.
#[test]
fn rule_151_who_holds_something_names_a_version_even_if_that_is_of_something_else() {
    let mut client = clusters(&["a", GLOB]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    client.unsubscribe(CDS, &[GLOB]);
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "v1?");
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(client.sotw().unwrap().version_info, "v1");
}

/// Rule 87: an origin may say nothing to who asks for everything at the version it has.
#[test]
fn rule_150_a_relay_asks_for_everything_without_a_version_so_that_it_is_answered() {
    let mut client = Client::new(Protocol::Sotw);
    client.stream = client.stream.with_silence(Silence::IsNoAnswer);
    client.subscribe(CDS, &["*"]);
    client.connect();
    client.sotw();
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(client.sotw().unwrap().version_info, "v1", "an ACK");
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "");
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!((changed_names(&update), complete(&update)), (vec![], vec!["*"]));
}

#[test]
fn rule_087_a_version_does_not_count_once_a_name_beside_the_wildcard_is_left() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*", "xdstp://x/T/d/1"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("xdstp://x/T/d/1", "1")]));
    client.unsubscribe(CDS, &["xdstp://x/T/d/1"]);
    client.reconnect();
    // The wildcard of the origin may end before it: whoever has all of v1 would be sent nothing, and keep it.
    assert_eq!(client.sotw().unwrap().version_info, "v1?");
}

#[test]
fn rule_087_a_version_that_is_accepted_after_its_names_were_left_says_nothing_of_what_is_held() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a"]);
    client.receive(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    let update = client.update().unwrap();
    client.unsubscribe(CDS, &["a"]);
    client.subscribe(CDS, &["*"]);
    client.finish(&update, Verdict::Accept);
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "", "who has all of v1 would be sent nothing, and a is not held");
}

#[test]
fn rule_087_a_version_that_crossed_a_change_says_nothing_of_what_is_wanted_now() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["a"]);
    client.subscribe(CDS, &["*"]);
    client.unsubscribe(CDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    let answer = client.sotw().unwrap();
    assert_eq!((answer.response_nonce.as_str(), answer.version_info.as_str()), ("n1", ""), "or all of v1 is not sent");
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "v1?");
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    assert_eq!(client.sotw().unwrap().version_info, "v1");
    // What is wanted was not even said yet.
    client.subscribe(CDS, &["xdstp://x/T/d/1"]);
    client.accept(&sotw(CDS, "v2", "n2", &[("a", "1")]));
    assert_eq!(client.sotw().unwrap().version_info, "");
}

/// At that version a server would send nothing to who asks for everything.
#[test]
fn rule_087_a_version_is_not_named_once_part_of_a_refused_response_is_in_use() {
    let refused = |resources: &[(&str, &str)]| {
        let mut client = clusters(&["*"]);
        client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
        client.reject(&sotw(CDS, "v2", "n2", resources), "c", "no");
        let nack = std::iter::from_fn(|| client.sotw()).last().unwrap();
        assert_eq!((nack.version_info.as_str(), nack.error_detail.is_some()), ("v1", true), "rule 26");
        client.reconnect();
        client
    };
    // Rule 15: what is held is of that version still.
    let same = &[("a", "1"), ("b", "1"), ("c", "1")];
    assert_eq!(refused(same).sotw().unwrap().version_info, "v1");
    assert_eq!(refused(&[("a", "2"), ("b", "1"), ("c", "1")]).sotw().unwrap().version_info, "v1?");
    let mut client = refused(&[("a", "1"), ("c", "1")]);
    assert_eq!(client.sotw().unwrap().version_info, "v1?");
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "v1");
}
