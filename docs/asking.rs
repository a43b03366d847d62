//! A client for the book's servers.

use std::net::TcpListener;

use xdstp_client::{Client, Endpoint, Event, Watch};

use crate::envoy::Cluster;

/// One where nobody listens.
///
/// # Panics
/// There is none.
pub fn free_address() -> String {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.unwrap_or_else(|error| panic!("{error}")).to_string()
}

/// Asks for a cluster until it comes.
///
/// # Panics
/// It is no address.
pub async fn is_served(address: &str, name: &str) -> Watch<Cluster> {
    let endpoint = Endpoint::new(address).unwrap_or_else(|error| panic!("{error}"));
    let mut watch = Client::connect(endpoint).watch_as::<Cluster>(name);
    while !matches!(watch.changed().await, Event::Put { .. }) {}
    watch
}
