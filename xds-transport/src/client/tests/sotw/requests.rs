//! Which names a request lists, and how one that is asked for again leaves first.

use super::*;

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
fn requests_of_a_stream_go_in_the_order_of_types() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(EDS, &["a"]);
    client.subscribe(CDS, &["*"]);
    client.connect();
    let types: Vec<_> = std::iter::from_fn(|| client.sotw()).map(|request| request.type_url).collect();
    assert_eq!(types, [CDS, EDS]);
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
