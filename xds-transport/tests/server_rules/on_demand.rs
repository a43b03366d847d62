//! What a client asks for when it needs it: rules 105–108.

use prost::Message;
use xds_transport::Frame;
use xds_transport::server::Reception;
use xds_transport::wire::Resource;

use crate::support::{Ask, CLUSTERS, Client, Server, payload};

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

/// A virtual host, and the domains that a client may ask for it by.
fn put_host(server: &mut Server, name: &str, version: &str, aliases: &[&str]) {
    let wrapper = Resource { aliases: aliases.iter().map(|alias| (*alias).into()).collect(), ..Resource::default() };
    let frame = Frame::of_message(&HOSTS.into(), &payload(name, version));
    server.put_frame(HOSTS, name, version, frame.with_wrapper(wrapper.encode_to_vec().into(), None, false));
}

#[test]
fn rule_105_who_asks_for_an_alias_is_sent_the_resource_it_stands_for() {
    let mut server = Server::origin();
    put_host(&mut server, "rc/shop", "1", &["rc/shop.example", "rc/www"]);
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, HOSTS, &["rc/shop.example"]), [format!("{HOSTS} rc/shop@1")]);
    let sent = &client.delta.last().unwrap().resources[0];
    assert_eq!((sent.name.as_str(), sent.aliases.len()), ("rc/shop", 2));
    put_host(&mut server, "rc/shop", "2", &["rc/shop.example"]);
    assert_eq!(client.poll(&mut server), [format!("{HOSTS} rc/shop@2")]);
    client.unsubscribe(&mut server, HOSTS, &["rc/shop.example"]);
    put_host(&mut server, "rc/shop", "3", &["rc/shop.example"]);
    assert_eq!(client.poll(&mut server), [""; 0]);
}

#[test]
fn rule_105_an_alias_of_what_is_removed_is_an_alias_of_nothing() {
    let mut server = Server::origin();
    put_host(&mut server, "rc/shop", "1", &["rc/shop.example"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["rc/shop.example"]);
    server.remove(HOSTS, "rc/shop");
    client.poll(&mut server);
    let response = client.delta.last().unwrap();
    assert_eq!(response.removed_resources, ["rc/shop"]);
    let [Resource { name, resource: None, .. }] = response.resources.as_slice() else { panic!("{response:?}") };
    assert_eq!(name, "rc/shop.example");
}

#[test]
fn rule_084_what_a_client_holds_by_an_alias_is_not_sent_again() {
    let mut server = Server::origin();
    put_host(&mut server, "rc/shop", "1", &["rc/shop.example"]);
    let ask = Ask { of: HOSTS, subscribe: &["rc/shop.example"], holds: &[("rc/shop", "1")], ..Ask::default() };
    let mut client = Client::delta();
    assert_eq!(client.ask(&mut server, &ask), [""; 0]);
    put_host(&mut server, "rc/shop", "2", &["rc/shop.example"]);
    assert_eq!(client.poll(&mut server), [format!("{HOSTS} rc/shop@2")]);
}

#[test]
fn rule_084_a_resource_whose_alias_was_left_while_it_is_on_its_way_is_told_as_gone_to_who_asks_for_everything() {
    for left in [&["rc/www"][..], &["rc/www", "rc/shop.example"], &["rc/www", "rc/shop"]] {
        let mut server = Server::origin();
        put_host(&mut server, "rc/shop", "1", &["rc/shop.example", "rc/www"]);
        let mut client = Client::delta();
        client.subscribe(&mut server, HOSTS, left);
        for alias in left {
            assert_eq!(client.unsubscribe(&mut server, HOSTS, &[alias]), [""; 0]);
        }
        server.remove(HOSTS, "rc/shop");
        assert_eq!(client.subscribe(&mut server, HOSTS, &["*"]), [format!("{HOSTS} -rc/shop")], "{left:?}");

        // Who had read it before it left does not hold it.
        put_host(&mut server, "rc/shop", "2", left);
        client.unsubscribe(&mut server, HOSTS, &["*"]);
        client.subscribe(&mut server, HOSTS, left);
        client.ack(&mut server, HOSTS);
        client.unsubscribe(&mut server, HOSTS, left);
        server.remove(HOSTS, "rc/shop");
        let anew = client.subscribe(&mut server, HOSTS, &["*"]).concat();
        assert!(!anew.contains("rc/shop"), "{anew}");
    }
}

/// It is what the other name asks for: the answer says whether that was refused.
#[test]
fn rule_031_what_is_wanted_by_another_name_than_the_one_that_was_left_is_refused_by_its_nack() {
    let mut server = Server::origin();
    put_host(&mut server, "rc/shop", "1", &["rc/www"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["rc/www", "rc/shop"]);
    client.unsubscribe(&mut server, HOSTS, &["rc/www"]);
    client.nack(&mut server, HOSTS);
    let session = client.stream.sessions().next().unwrap();
    assert_eq!(session.reception(&"rc/shop".parse().unwrap()), Reception::Refused { nonce: 1 });
}

#[test]
fn rule_106_a_virtual_host_that_is_not_there_is_an_alias_of_nothing() {
    let mut server = Server::origin();
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["rc/missing"]);
    let response = client.delta.last().unwrap();
    assert_eq!(response.removed_resources, [""; 0]);
    let [Resource { name, aliases, resource: None, version, .. }] = response.resources.as_slice() else {
        panic!("{response:?}")
    };
    assert_eq!((name.as_str(), aliases.as_slice()), ("rc/missing", ["rc/missing".to_owned()].as_slice()));
    assert!(!version.is_empty());
    // What is created later is sent, and what the client has is removed as everything else is.
    server.put(HOSTS, "rc/missing", "1");
    assert_eq!(client.poll(&mut server), [format!("{HOSTS} rc/missing@1")]);
    server.remove(HOSTS, "rc/missing");
    assert_eq!(client.poll(&mut server), [format!("{HOSTS} -rc/missing")]);
}

/// Only what a client has is removed: what it left it does not have any more.
#[test]
fn rule_106_a_virtual_host_that_was_left_is_an_alias_of_nothing_when_it_is_asked_for_again() {
    let mut server = Server::with(HOSTS, &["rc/a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["rc/a"]);
    client.unsubscribe(&mut server, HOSTS, &["rc/a"]);
    server.remove(HOSTS, "rc/a");
    client.subscribe(&mut server, HOSTS, &["rc/a"]);
    let response = client.delta.last().unwrap();
    assert_eq!((response.resources.len(), response.removed_resources.len()), (1, 0), "{response:?}");
}

#[test]
fn rule_106_a_virtual_host_that_goes_before_one_of_its_aliases_is_left_is_removed() {
    let mut server = Server::origin();
    put_host(&mut server, "rc/shop", "1", &["rc/shop.example", "rc/www"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["rc/shop.example", "rc/www"]);
    client.ack(&mut server, HOSTS);
    server.remove(HOSTS, "rc/shop");
    client.unsubscribe(&mut server, HOSTS, &["rc/www"]);
    client.poll(&mut server);
    assert_eq!(client.delta.last().unwrap().removed_resources, ["rc/shop"]);
}

#[test]
fn rule_106_a_virtual_host_that_the_client_brought_along_is_removed() {
    let mut server = Server::origin();
    let ask = Ask { of: HOSTS, subscribe: &["rc/gone"], holds: &[("rc/gone", "1")], ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), [format!("{HOSTS} -rc/gone")]);
}

#[test]
fn rule_106_a_virtual_host_that_is_on_its_way_when_it_is_left_is_removed() {
    let mut server = Server::with(HOSTS, &["rc/a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["*", "rc/a"]);
    client.unsubscribe(&mut server, HOSTS, &["*", "rc/a"]);
    server.remove(HOSTS, "rc/a");
    client.subscribe(&mut server, HOSTS, &["*"]);
    let response = client.delta.last().unwrap();
    assert_eq!((response.removed_resources.as_slice(), response.resources.len()), (&["rc/a".to_owned()][..], 0));
}

#[test]
fn rule_106_the_alias_is_one_resource_whatever_the_length_of_its_name() {
    for length in [1, 100, 200, 20_000] {
        let name = "x".repeat(length);
        let mut client = Client::delta();
        client.subscribe(&mut Server::origin(), HOSTS, &[&name, "rc/b"]);
        let names: Vec<_> =
            client.delta[0].resources.iter().map(|one| (one.name.len(), one.aliases[0].len())).collect();
        assert_eq!(names.iter().map(|(name, _)| name).max(), Some(&length.max(4)));
        assert!(names.len() == 2 && names.iter().all(|(name, alias)| name == alias));
        assert_eq!(client.delta[0].encoded_len() as u64, client.stream.sessions().next().unwrap().tally.bytes);
    }
}

#[test]
fn rule_107_virtual_hosts_are_named_by_route_configuration_and_host() {
    let names = ["rc/h", "a/b/h:80", "rc/*.example.com"];
    let mut server = Server::with(HOSTS, &names);
    for name in names {
        assert_eq!(Client::delta().subscribe(&mut server, HOSTS, &[name]), [format!("{HOSTS} {name}@1")]);
    }
}

#[test]
fn rule_107_the_first_request_for_no_virtual_host_is_answered_at_once() {
    let mut server = Server::with(HOSTS, &["rc/h"]);
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, HOSTS, &[]), [format!("{HOSTS} rc/h@1")]);
    assert_eq!(Client::delta().subscribe(&mut Server::origin(), HOSTS, &[]), [HOSTS]);
    server.put(HOSTS, "rc/later", "1");
    assert_eq!(client.poll(&mut server), [format!("{HOSTS} rc/later@1")]);
}

#[test]
fn rule_108_an_unknown_cluster_is_removed_at_once_and_sent_when_it_comes() {
    let mut server = Server::with(CLUSTERS, &["known"]);
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &[]), ["C known@1"]);
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["on-demand"]), ["C -on-demand"]);
    server.put(CLUSTERS, "on-demand", "1");
    assert_eq!(client.poll(&mut server), ["C on-demand@1"]);
}
