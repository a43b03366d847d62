//! Rules of the SotW protocol.

use super::*;
use crate::wire::Duration as WireDuration;

const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";

fn clusters(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Sotw, CDS, interests)
}

fn endpoints(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Sotw, EDS, interests)
}

/// A relay that drops a name and wants it again may not have what its glob held meanwhile.
#[test]
fn rule_055_what_is_asked_for_anew_comes_again_also_where_a_glob_holds_it() {
    let [glob, member] = ["*", "a"].map(|id| format!("xdstp://auth/envoy.config.cluster.v3.Cluster/dir/{id}"));
    let [glob, member] = [glob.as_str(), member.as_str()];
    let mut client = clusters(&[member, glob]);
    client.accept(&sotw(CDS, "v1", "n1", &[(member, "1")]));
    while client.poll().is_some() {}
    client.unsubscribe(CDS, &[member]);
    client.subscribe(CDS, &[member]);
    while client.poll().is_some() {}
    let update = client.accept(&sotw(CDS, "v1", "n2", &[(member, "1")]));
    assert_eq!((changed_names(&update), update.repeated.len()), (vec![], 1));
    let update = client.accept(&sotw(CDS, "v1", "n3", &[(member, "1")]));
    assert_eq!(update.repeated.len(), 0);
}

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
fn a_refused_resource_is_offered_again() {
    let mut client = endpoints(&["a"]);
    client.reject(&sotw(EDS, "v1", "n1", &[("a", "1")]), "a", "no");
    assert_eq!(changed_names(&client.accept(&sotw(EDS, "v2", "n2", &[("a", "1")]))), ["a"]);
}

#[test]
fn rule_035_without_a_version_of_its_own_a_resource_has_the_hash_of_its_content() {
    let (mut one, mut other) = (endpoints(&["a"]), endpoints(&["a"]));
    let from_one = one.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    let from_other = other.accept(&sotw(EDS, "x7", "m9", &[("a", "1")]));
    assert_eq!(from_one.changed[0].resource.version, from_other.changed[0].resource.version);
    assert_eq!(from_one.changed[0].resource.version.as_str().len(), 32);

    let resource = Resource {
        name: "a".into(),
        version: "own".into(),
        resource: Some(body(EDS, "a", "2")),
        ..Resource::default()
    };
    let response = DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(EDS, "v2", "n2", &[]) };
    assert_eq!(changed(&one.accept(&response)), [("a", "own")]);
}

#[test]
fn rule_055_a_name_leaves_before_it_comes_again() {
    let mut client = endpoints(&["a", "b"]);
    client.unsubscribe(EDS, &["a"]);
    client.subscribe(EDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["b"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "b"]);
    assert!(client.poll().is_none());
}

#[test]
fn rule_025_what_was_left_out_to_be_asked_for_again_is_given_up_without_a_word() {
    let mut client = endpoints(&["a", "b"]);
    client.unsubscribe(EDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["b"]);
    client.subscribe(EDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "b"]);
    // The server may not have heard that `a` left: it leaves once more.
    client.accept(&sotw(EDS, "v1", "n1", &[("b", "1")]));
    assert_eq!(client.sotw().unwrap().resource_names, ["b"]);
    client.unsubscribe(EDS, &["a"]);
    assert!(client.poll().is_none());
}

#[test]
fn rule_055_a_full_state_that_holds_what_is_wanted_again_is_enough() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*", "a"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    client.sotw();
    client.unsubscribe(CDS, &["*"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["a"]);
    client.subscribe(CDS, &["*"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*", "a"]);
    client.accept(&sotw(CDS, "v2", "n2", &[("a", "1"), ("b", "1")]));
    assert_eq!(client.sotw().unwrap().resource_names, ["*", "a"], "without leaving once more");
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
fn rule_057_an_empty_list_with_the_nonce_ends_it_all() {
    let mut client = endpoints(&["a"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    client.sotw();
    client.unsubscribe(EDS, &["a"]);
    let request = client.sotw().unwrap();
    assert_eq!((request.resource_names.len(), request.response_nonce.as_str()), (0, "n1"));
    assert!(client.poll().is_none());
    client.reconnect();
    assert!(client.poll().is_none(), "rule 61");
}

#[test]
fn rule_058_requests_hold_every_name_once() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(EDS, &["a", "a", "b", "xdstp://x/T/g/*"]);
    client.connect();
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "b", "xdstp://x/T/g/*"]);
    client.subscribe(EDS, &["a"]);
    assert!(client.poll().is_none());
    client.unsubscribe(EDS, &["b"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "xdstp://x/T/g/*"]);
}

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

#[test]
fn rule_002_what_is_delta_only_is_refused_and_not_asked_for() {
    for of in [
        "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
    ] {
        let mut client = Client::new(Protocol::Sotw);
        client.subscribe(of, &["a", GLOB, "*"]);
        client.connect();
        for name in ["a", GLOB, "*"] {
            let update = client.update().unwrap();
            let [(failing, error)] = update.errors.as_slice() else { panic!("{update:?}") };
            assert_eq!((failing.as_str(), error.code, error.is_transient()), (name, 12, true));
            assert!(error.message.contains(of), "{error}");
            client.finish(&update, Verdict::Accept);
        }
        assert!(client.poll().is_none() && client.update().is_none());
        client.unsubscribe(of, &["a", GLOB, "*"]);
        client.subscribe(CDS, &["*"]);
        assert_eq!(client.sotw().unwrap().type_url, CDS);
        assert!(client.poll().is_none());

        let mut client = Client::subscribed(Protocol::Delta, of, &[]);
        client.subscribe(of, &["a"]);
        assert_eq!(client.delta().unwrap().resource_names_subscribe, ["a"]);
    }
}

#[test]
fn rule_066_absence_from_a_full_state_is_deletion() {
    for of in [CDS, LDS, SRDS] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &["*"]);
        let update = client.accept(&sotw(of, "v1", "n1", &[("a", "1"), ("b", "1"), ("c", "1")]));
        assert_eq!(answered(&update), ["*"]);
        let update = client.accept(&sotw(of, "v2", "n2", &[("a", "1"), ("c", "2")]));
        assert_eq!((changed_names(&update), removed(&update)), (vec!["c"], vec!["b"]));
        let update = client.accept(&sotw(of, "v3", "n3", &[]));
        assert_eq!(removed(&update), ["a", "c"]);
    }
}

#[test]
fn rule_066_nothing_is_deleted_by_a_response_that_cannot_be_read_whole() {
    let mut client = clusters(&["*"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    let mut response = sotw(CDS, "v2", "n2", &[("a", "2")]);
    response.resources.push(Any { type_url: CDS.into(), value: Bytes::from_static(b"\xff") });
    let update = client.accept(&response);
    assert_eq!((changed_names(&update), removed(&update)), (vec!["a"], vec![]));
}

#[test]
fn rule_066_what_was_removed_while_away_is_removed() {
    let mut client = clusters(&["*"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    client.reconnect();
    assert_eq!(client.sotw().unwrap().version_info, "v1");
    let update = client.accept(&sotw(CDS, "v2", "n1", &[("a", "1")]));
    assert_eq!((changed_names(&update), removed(&update)), (vec![], vec!["b"]));
}

#[test]
fn rule_067_absence_from_other_types_means_nothing() {
    for of in [
        EDS,
        "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        "type.googleapis.com/envoy.service.runtime.v3.Runtime",
        "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
    ] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &["a", "b"]);
        client.accept(&sotw(of, "v1", "n1", &[("a", "1"), ("b", "1")]));
        let update = client.accept(&sotw(of, "v2", "n2", &[("b", "2")]));
        assert_eq!((changed_names(&update), removed(&update)), (vec!["b"], vec![]));
        let update = client.accept(&sotw(of, "v3", "n3", &[]));
        assert!(update.changed.is_empty() && update.removed.is_empty());
    }
}

#[test]
fn rule_068_what_is_absent_goes_when_nobody_wants_it_and_not_before() {
    let mut client = endpoints(&["a", "b"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    let update = client.accept(&sotw(EDS, "v2", "n2", &[("b", "2")]));
    assert!(update.removed.is_empty());
    client.advance(60);
    assert!(client.update().is_none());
    // Still held: it comes again as what it was.
    assert!(changed_names(&client.accept(&sotw(EDS, "v3", "n3", &[("a", "1")]))).is_empty());
    client.unsubscribe(EDS, &["a"]);
    client.subscribe(EDS, &["a"]);
    while client.poll().is_some() {}
    assert_eq!(changed_names(&client.accept(&sotw(EDS, "v4", "n4", &[("a", "1")]))), ["a"], "dropped, so it is new");
}

#[test]
fn rule_081_a_resource_of_another_type_than_its_response_is_refused() {
    let mut client = endpoints(&["a", "b"]);
    let mut response = sotw(EDS, "v1", "n1", &[("a", "1")]);
    response.resources.push(body(CDS, "b", "1"));
    assert_eq!(changed_names(&client.accept(&response)), ["a"]);
    assert!(client.sotw().unwrap().error_detail.unwrap().message.starts_with("b: "));
}

#[test]
fn rule_081_over_sotw_a_wrapper_is_of_the_type_inside_it() {
    let resource = |of: &str, name: &str| Resource {
        name: name.into(),
        version: "1".into(),
        resource: Some(body(of, name, "1")),
        ..Resource::default()
    };
    for of in [CDS, EDS] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &["right", "wrong", "twice"]);
        let other = if of == CDS { EDS } else { CDS };
        // What is wrapped twice is, inside its wrapper, of another type too.
        let twice = Resource { resource: Some(wrapped(&resource(of, "twice"))), ..resource(of, "twice") };
        let resources = [resource(of, "right"), resource(other, "wrong"), twice];
        let resources = resources.iter().map(wrapped).collect();
        let update = client.accept(&DiscoveryResponse { resources, ..sotw(of, "v1", "n1", &[]) });
        assert_eq!(changed(&update), [("right", "1")]);
        assert_eq!(update.rejected.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["wrong", "twice"]);
        let nack = client.sotw().unwrap();
        let words = nack.error_detail.unwrap().message;
        assert!(words.contains(other) && words.contains(RESOURCE_TYPE_URL), "{words}");
        assert_eq!((nack.version_info.as_str(), nack.response_nonce.as_str()), ("", "n1"));
    }
}

#[test]
fn rule_138_silence_is_told_once_and_a_late_answer_counts() {
    for (of, interest) in [(EDS, "a"), (CDS, "a"), (CDS, GLOB)] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &[interest]);
        client.advance(14);
        assert!(client.update().is_none());
        client.advance(1);
        let update = client.update().unwrap();
        assert_eq!([missing(&update), answered(&update)].concat(), [interest]);
        client.advance(60);
        assert!(client.update().is_none(), "once");
        let late = if interest == "a" { "a" } else { MEMBER_A };
        assert_eq!(changed_names(&client.accept(&sotw(of, "v1", "n1", &[(late, "1")]))), [late]);
        client.advance(60);
        assert!(client.update().is_none(), "only at the start");
    }
}

#[test]
fn equal_content_at_a_new_version_is_no_change() {
    let mut client = endpoints(&["a", "b"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    let update = client.accept(&sotw(EDS, "v2", "n2", &[("a", "1"), ("b", "2")]));
    assert_eq!(changed_names(&update), ["b"]);
}

#[test]
fn rule_124_what_comes_again_unasked_at_its_version_is_a_touch() {
    let mut client = endpoints(&["a"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    let update = client.accept(&sotw(EDS, "v1", "n2", &[("a", "1")]));
    assert!(update.changed[0].touched);

    while client.poll().is_some() {}
    client.subscribe(EDS, &["b"]);
    client.sotw();
    let update = client.accept(&sotw(EDS, "v1", "n3", &[("a", "1"), ("b", "1")]));
    assert_eq!(changed_names(&update), ["b"], "an answer to our own request");
}

#[test]
fn rule_074_a_name_is_absent_fifteen_seconds_after_it_was_asked_for() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(EDS, &["a", "b"]);
    client.advance(60);
    assert_eq!(client.stream.poll_timeout(), None, "not sent");
    client.connect();
    assert_eq!(client.stream.poll_timeout(), None, "not sent");
    client.sotw();
    assert_eq!(client.stream.poll_timeout(), Some(client.now + Duration::from_secs(15)));
    client.accept(&sotw(EDS, "v1", "n1", &[("b", "1")]));
    client.advance(14);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(missing(&client.update().unwrap()), ["a"]);
    client.advance(60);
    assert!(client.update().is_none());

    let update = client.accept(&sotw(EDS, "v2", "n2", &[("a", "1")]));
    assert_eq!(changed_names(&update), ["a"], "late is not never");
}

#[test]
fn rule_074_the_timer_stops_with_the_stream_and_does_not_run_for_what_is_cached() {
    let mut client = endpoints(&["a", "b"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("b", "1")]));
    client.stream.disconnected(client.now);
    assert_eq!(client.stream.poll_timeout(), None);
    client.advance(60);
    assert!(client.update().is_none());
    client.connect();
    client.sotw();
    client.advance(15);
    assert_eq!(missing(&client.update().unwrap()), ["a"]);
}

#[test]
fn rule_074_silence_says_nothing_of_what_came_and_has_its_verdict_late() {
    for seconds in [1, 20] {
        let mut client = endpoints(&["a"]);
        client.receive(&sotw(EDS, "v1", "n1", &[("a", "1")]));
        let update = client.update().unwrap();
        client.reconnect();
        client.sotw();
        client.advance(seconds);
        client.finish(&update, Verdict::Accept);
        client.advance(20);
        assert!(client.update().is_none());
    }
}

#[test]
fn rule_074_a_name_asked_for_anew_has_its_full_time() {
    let mut client = endpoints(&["a", "b"]);
    client.advance(10);
    client.unsubscribe(EDS, &["a"]);
    client.sotw();
    client.subscribe(EDS, &["a"]);
    client.sotw();
    client.advance(5);
    assert_eq!(missing(&client.update().unwrap()), ["b"]);
    client.advance(10);
    assert_eq!(missing(&client.update().unwrap()), ["a"]);
}

#[test]
fn rule_075_a_response_stops_the_timer_even_if_it_is_invalid() {
    let mut client = endpoints(&["a"]);
    client.advance(14);
    let broken = Resource { name: "a".into(), resource: Some(body(CDS, "a", "")), ..Resource::default() };
    let response = DiscoveryResponse { resources: vec![wrapped(&broken)], ..sotw(EDS, "v1", "n1", &[]) };
    assert_eq!(client.accept(&response).rejected.len(), 1);
    client.advance(60);
    assert!(client.update().is_none());
}

#[test]
fn rule_076_a_response_older_than_the_request_deletes_nothing() {
    let mut client = clusters(&["a"]);
    client.subscribe(CDS, &["b"]);
    client.sotw();
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert!(update.removed.is_empty());
    client.advance(15);
    assert_eq!(missing(&client.update().unwrap()), ["b"]);
}

/// What could not be used was seen all the same; what is not asked for any more was not.
#[test]
fn rule_076_what_was_refused_is_gone_when_a_full_state_lacks_it() {
    for given_up in [false, true] {
        let mut client = clusters(&["a", "b"]);
        client.reject(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]), "a", "no");
        client.sotw();
        if given_up {
            client.unsubscribe(CDS, &["a"]);
            client.sotw();
        }
        let update = client.accept(&sotw(CDS, "v2", "n2", &[("b", "1")]));
        assert_eq!(removed(&update).len(), usize::from(!given_up), "{:?}", update.removed);
        assert!(client.accept(&sotw(CDS, "v3", "n3", &[("b", "2")])).removed.is_empty(), "once");
    }
}

#[test]
fn rule_102_members_of_a_glob_come_and_go_with_the_full_state() {
    let mut client = clusters(&[GLOB]);
    let update = client.accept(&sotw(CDS, "v1", "n1", &[(MEMBER_A, "1"), (MEMBER_B, "1"), ("plain", "1")]));
    assert_eq!((changed_names(&update), answered(&update)), (vec![MEMBER_A, MEMBER_B], vec![GLOB]));
    let update = client.accept(&sotw(CDS, "v2", "n2", &[]));
    assert_eq!(removed(&update), [MEMBER_A, MEMBER_B]);
}

#[test]
fn rule_102_an_empty_glob_is_known_by_a_full_state_or_by_time() {
    let mut client = clusters(&[GLOB]);
    let update = client.accept(&sotw(CDS, "v1", "n1", &[]));
    assert_eq!((answered(&update), complete(&update)), (vec![GLOB], vec![GLOB]));

    let mut client = endpoints(&[GLOB]);
    client.accept(&sotw(EDS, "v1", "n1", &[]));
    client.advance(15);
    let update = client.update().unwrap();
    assert_eq!((answered(&update), complete(&update), removed(&update)), (vec![GLOB], vec![], vec![]));
    client.reconnect();
    client.sotw();
    client.advance(15);
    assert!(client.update().is_none(), "known from the stream before");
}

/// A full state may have been written before the request was read that asks for more.
#[test]
fn rule_151_a_full_state_that_may_be_older_than_the_request_is_not_complete() {
    let mut client = clusters(&["a"]);
    client.subscribe(CDS, &["*", GLOB]);
    client.sotw();
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!((answered(&update), complete(&update)), (vec!["*", GLOB], vec![]));
    client.sotw();
    let update = client.accept(&sotw(CDS, "v2", "n2", &[("a", "1"), ("b", "1")]));
    assert_eq!((answered(&update), complete(&update)), (vec![], vec!["*", GLOB]));
}

#[test]
fn rule_150_to_a_relay_silence_is_no_answer_and_a_response_without_the_name_is_one_late() {
    for of in [EDS, CDS] {
        let mut client = Client::new(Protocol::Sotw);
        client.stream = client.stream.with_silence(Silence::IsNoAnswer);
        client.subscribe(of, &["a", "b"]);
        client.connect();
        client.sotw();
        client.advance(3600);
        assert!(client.update().is_none());
        assert_eq!(client.stream.poll_timeout(), None);
        client.accept(&sotw(of, "v1", "n1", &[("b", "1")]));
        client.sotw();
        client.advance(14);
        assert!(client.update().is_none());
        client.advance(1);
        assert_eq!(missing(&client.update().unwrap()), ["a"]);
        client.advance(60);
        assert!(client.update().is_none());
    }
}

#[test]
fn rule_150_to_a_relay_nothing_is_absent_while_bytes_come_that_may_be_its_answer() {
    for (silence, expected) in [(Silence::IsNoAnswer, 28), (Silence::IsAbsence, 15)] {
        let mut client = Client::new(Protocol::Sotw);
        client.stream = client.stream.with_silence(silence);
        client.subscribe(CDS, &["a", "b"]);
        client.connect();
        client.sotw();
        client.accept(&sotw(CDS, "v1", "n1", &[("b", "1")]));
        client.sotw();
        let absent = (1..60).find_map(|second| {
            client.advance(1);
            if second <= 13 {
                client.stream.received(client.now);
            }
            client.update().map(|update| (second, update.missing))
        });
        assert_eq!(absent, Some((expected, vec!["a".parse().unwrap()])));
    }
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
fn rule_150_to_a_relay_no_time_answers_a_collection() {
    for (of, glob) in [(EDS, GLOB), (CDS, GLOB), (EDS, "*")] {
        let mut client = Client::new(Protocol::Sotw);
        client.stream = client.stream.with_silence(Silence::IsNoAnswer);
        client.subscribe(of, &["a", glob]);
        client.connect();
        client.sotw();
        client.advance(3600);
        assert!(client.update().is_none());
        // Nor after a response that holds nothing of it.
        client.accept(&sotw(of, "v1", "n1", &[("a", "1")]));
        client.advance(3600);
        assert!(client.update().is_none());
    }
}

#[test]
fn rule_115_a_resource_expires_without_a_word() {
    let mut client = endpoints(&["a"]);
    let ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    let resource = Resource { name: "a".into(), resource: Some(body(EDS, "a", "1")), ttl, ..Resource::default() };
    let response = DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(EDS, "v1", "n1", &[]) };
    assert_eq!(changed_names(&client.accept(&response)), ["a"]);
    client.sotw();
    client.advance(20);
    let heartbeat = Resource { resource: None, ..resource };
    let response = DiscoveryResponse { resources: vec![wrapped(&heartbeat)], ..sotw(EDS, "v1", "n2", &[]) };
    assert_eq!(client.accept(&response).refreshed, [(name("a"), Duration::from_secs(30))]);
    client.sotw();
    client.advance(29);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);
    assert!(client.poll().is_none());
}

#[test]
fn requests_of_a_stream_go_in_the_order_of_types() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(EDS, &["a"]);
    client.subscribe(CDS, &["*"]);
    client.connect();
    let types: Vec<_> = std::iter::from_fn(|| client.sotw()).map(|request| request.type_url).collect();
    assert_eq!(types, [CDS, EDS]);
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

#[test]
fn rule_055_what_left_and_is_wanted_again_is_not_asked_for_anew_once_it_came() {
    let mut client = endpoints(&["a", "b"]);
    client.unsubscribe(EDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["b"]);
    client.subscribe(EDS, &["a"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "b"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "b"], "the server has surely seen it");
    assert!(client.poll().is_none());
}
