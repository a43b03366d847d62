//! What a client asks for when it needs it: rules 106–108.

use prost::Message;
use xds_transport::wire::Resource;

use crate::support::{Ask, CLUSTERS, Client, Server};

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

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

#[test]
fn rule_106_a_virtual_host_that_the_client_brought_along_is_removed() {
    let mut server = Server::origin();
    let ask = Ask { of: HOSTS, subscribe: &["rc/gone"], holds: &[("rc/gone", "1")], ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), [format!("{HOSTS} -rc/gone")]);
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
