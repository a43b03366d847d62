//! Envoy's own messages are resources as they are.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Instant;

use prost::Message as _;
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::envoy::envoy_types::pb::envoy::config::listener::v3::FilterChain;
use xdstp_client::envoy::{
    Cluster, ClusterLoadAssignment, Listener, RouteConfiguration, Runtime, ScopedRouteConfiguration, Secret,
    TypedExtensionConfig, VirtualHost,
};
use xdstp_client::test::Network;
use xdstp_client::{Client, Event, Resource};

#[test]
fn a_listener_is_watched_as_envoy_has_it() {
    let network = Network::new(Instant::now());
    let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    let client = Client::builder(bootstrap).transport(network.clone()).build().unwrap();
    let filter_chains = vec![FilterChain { name: "https".into(), ..FilterChain::default() }];
    let listener = Listener { name: "edge".into(), filter_chains, ..Listener::default() };
    network.server("xds:1").put(&Listener::type_url(), "edge", "1", &listener.encode_to_vec());

    let mut watch = client.watch_as::<Listener>("edge");
    network.settle();
    let Some(Event::Put { resource, .. }) = watch.try_next() else { panic!("it is there") };
    assert_eq!(*resource, listener);
    // Field 1 is the name, and this is no text.
    network.server("xds:1").put(&Listener::type_url(), "edge", "2", b"\x0a\x01\xff");
    network.settle();
    assert!(matches!(watch.try_next(), Some(Event::Ambient { error: Some(_), .. })));
}

#[test]
fn resources_have_the_type_urls_of_envoy() {
    let all = [
        Cluster::type_url(),
        ClusterLoadAssignment::type_url(),
        Listener::type_url(),
        RouteConfiguration::type_url(),
        ScopedRouteConfiguration::type_url(),
        VirtualHost::type_url(),
        TypedExtensionConfig::type_url(),
        Secret::type_url(),
        Runtime::type_url(),
    ];
    let names = [
        "envoy.config.cluster.v3.Cluster",
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "envoy.config.listener.v3.Listener",
        "envoy.config.route.v3.RouteConfiguration",
        "envoy.config.route.v3.ScopedRouteConfiguration",
        "envoy.config.route.v3.VirtualHost",
        "envoy.config.core.v3.TypedExtensionConfig",
        "envoy.extensions.transport_sockets.tls.v3.Secret",
        "envoy.service.runtime.v3.Runtime",
    ];
    assert_eq!(all, names.map(|name| format!("type.googleapis.com/{name}")));
}
