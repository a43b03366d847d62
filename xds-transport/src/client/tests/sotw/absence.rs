//! What a response leaves out: where that is deletion, and where it says nothing.

use super::*;

const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";

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

/// Who has it from elsewhere has it no longer: that it is not there was surely said after it was asked for.
#[test]
fn rule_076_what_a_full_state_lacks_that_was_read_before_it_was_written_is_told_apart() {
    let mut client = clusters(&["a", "b"]);
    client.subscribe(CDS, &["c"]);
    client.sotw();
    // It may have been written before `c` was read.
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!((lacking(&update), update.removed.len()), (vec!["b"], 0));
    client.sotw();
    let update = client.accept(&sotw(CDS, "v2", "n2", &[("a", "1")]));
    assert_eq!(lacking(&update), ["c"], "and `b` once");
    client.sotw();
    assert!(lacking(&client.accept(&sotw(CDS, "v3", "n3", &[]))).is_empty(), "what came before is removed");
}

/// The server may write a response when it has read that, and not yet that they are asked for again.
#[test]
fn rule_076_what_left_and_was_asked_for_again_is_not_lacking() {
    let mut client = clusters(&["a", "b"]);
    client.accept(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    client.sotw();
    for names in [&["a"][..], &["a", "b"]] {
        client.unsubscribe(CDS, &["b"]);
        client.subscribe(CDS, &["b"]);
        assert_eq!(client.sotw().unwrap().resource_names, ["a"]);
        assert_eq!(client.sotw().unwrap().resource_names, ["a", "b"]);
        let resources: Vec<_> = names.iter().map(|name| (*name, "1")).collect();
        let update = client.accept(&sotw(CDS, "v2", "n2", &resources));
        assert!(lacking(&update).is_empty() && update.removed.is_empty(), "{update:?}");
        client.sotw();
    }
}

#[test]
fn rule_076_what_no_response_came_for_need_not_leave_to_be_sent() {
    let mut client = clusters(&["a", "b"]);
    client.unsubscribe(CDS, &["b"]);
    client.subscribe(CDS, &["b"]);
    assert!(client.sotw().is_none(), "rule 25: it would say nothing");
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!(lacking(&update), ["b"]);
}

/// What cannot be read may be it, and what fails for a time may be there.
#[test]
fn rule_076_what_may_be_there_is_not_lacking() {
    let mut client = clusters(&["a", "b", "c"]);
    let mut response = sotw(CDS, "v1", "n1", &[("a", "1")]);
    response.resources.push(Any { type_url: CDS.into(), value: Bytes::from_static(b"\xff") });
    assert!(lacking(&client.accept(&response)).is_empty());
    client.sotw();
    let mut response = sotw(CDS, "v2", "n2", &[("a", "1")]);
    response.resource_errors.push(error("b", 14));
    assert_eq!(lacking(&client.accept(&response)), ["c"]);
}
