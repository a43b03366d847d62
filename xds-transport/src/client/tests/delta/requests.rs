//! What requests list.

use super::*;

#[test]
fn rule_005_only_the_first_request_of_a_stream_names_the_node() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["*"]);
    client.subscribe(EDS, &["a"]);
    for _ in 0..2 {
        client.connect();
        let nodes: Vec<_> = std::iter::from_fn(|| client.delta()).map(|request| request.node.len()).collect();
        assert_eq!(nodes, [4, 0]);
        client.stream.disconnected(client.now);
    }
}

#[test]
fn a_thousand_subscribes_are_one_request() {
    let mut client = client(&["a"]);
    for n in 0..1000 {
        client.subscribe(CDS, &[&format!("n{n}")]);
    }
    assert_eq!(client.delta().unwrap().resource_names_subscribe.len(), 1000);
    assert!(client.poll().is_none());
}

#[test]
fn rule_059_the_first_request_lists_everything_and_later_ones_the_difference() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(CDS, &["b", "a", "a"]);
    client.connect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a", "b"]);
    assert!(request.resource_names_unsubscribe.is_empty());
    assert!(client.poll().is_none());

    client.subscribe(CDS, &["c"]);
    client.unsubscribe(CDS, &["a"]);
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["c"]);
    assert_eq!(request.resource_names_unsubscribe, ["a"]);

    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["b", "c"]);
    assert!(request.resource_names_unsubscribe.is_empty());
}

#[test]
fn rule_059_remove_then_add_is_add_and_add_then_remove_is_nothing() {
    let mut client = client(&["a"]);
    client.unsubscribe(CDS, &["a"]);
    client.subscribe(CDS, &["a"]);
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a"]);
    assert!(request.resource_names_unsubscribe.is_empty());

    client.subscribe(CDS, &["b"]);
    client.unsubscribe(CDS, &["b"]);
    assert!(client.poll().is_none());
}

#[test]
fn rule_060_the_wildcard_alone_is_an_empty_first_request() {
    let mut client = client(&["*"]);
    client.reconnect();
    let request = client.delta().unwrap();
    assert!(request.resource_names_subscribe.is_empty() && request.resource_names_unsubscribe.is_empty());

    client.subscribe(CDS, &["x"]);
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["x"]);
    client.reconnect();
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["*", "x"]);
    client.unsubscribe(CDS, &["*"]);
    assert_eq!(client.delta().unwrap().resource_names_unsubscribe, ["*"]);
}

#[test]
fn rule_060_types_without_the_legacy_form_name_the_wildcard() {
    let mut client = Client::new(Protocol::Delta);
    client.subscribe(EDS, &["*"]);
    client.connect();
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["*"]);
}

#[test]
fn rule_061_a_type_without_subscriptions_is_not_opened_again() {
    let mut client = client(&["a"]);
    client.unsubscribe(CDS, &["a"]);
    assert_eq!(client.delta().unwrap().resource_names_unsubscribe, ["a"]);
    client.reconnect();
    assert!(client.poll().is_none());
}

#[test]
fn rule_104_directives_never_reach_the_wire() {
    let member = "xdstp://auth/envoy.config.cluster.v3.Cluster/dir/a";
    for reference in [format!("{member}#entry=x"), format!("{member}#alt=xdstp://other/T/y,entry=x")] {
        assert!(ResourceName::parse(&reference).is_err(), "no interest can be made of it as it is");
        let name = xdstp_uri::Locator::parse(&reference).unwrap().to_name().unwrap();
        let mut client = Client::new(Protocol::Delta);
        client.stream.apply(Command::Subscribe(CDS.into(), name.into()));
        client.connect();
        assert_eq!(client.delta().unwrap().resource_names_subscribe, [member]);
    }
}

#[test]
fn what_was_left_before_it_was_asked_for_opens_no_type() {
    let mut client = Client::new(Protocol::Delta);
    client.connect();
    client.subscribe(CDS, &["a"]);
    client.unsubscribe(CDS, &["a"]);
    assert!(client.poll().is_none(), "a first request without names asks for everything");
    client.subscribe(CDS, &["b"]);
    assert_eq!(client.delta().unwrap().resource_names_subscribe, ["b"]);
}
