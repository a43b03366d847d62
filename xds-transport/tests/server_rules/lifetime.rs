//! TTLs: rules 111–114, 148.

mod over_delta;
mod over_sotw;
mod relayed;

use bytes::Bytes;
use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Resource;

use crate::support::{Client, ENDPOINTS, Server, payload, seconds};

const FEATURES: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];

fn put(server: &mut Server, of: &str, name: &str, version: &str, ttl: Option<u64>) {
    let frame = Frame::of_message(&of.into(), &payload(name, version));
    server.put_frame(of, name, version, frame.with_wrapper(Bytes::new(), ttl.map(seconds), false));
}

/// A delta client of a server that has one resource with a TTL of 30 seconds.
fn delta() -> (Server, Client) {
    let mut server = Server::origin();
    put(&mut server, ENDPOINTS, "a", "1", Some(30));
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    (server, client)
}

/// A delta client that refused one of two resources with a TTL of 30 seconds: which of them, each alone can tell.
fn refusing() -> (Server, Client) {
    let mut server = Server::origin();
    for name in ["bad", "good"] {
        put(&mut server, ENDPOINTS, name, "1", Some(30));
    }
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["bad", "good"]);
    client.nack(&mut server, ENDPOINTS);
    (server, client)
}

/// (name, version, seconds of TTL, whether it has a body) of what came last.
fn last(client: &Client) -> Vec<(String, String, Option<i64>, bool)> {
    let resources: Vec<Resource> = match client.delta.last() {
        Some(response) => response.resources.clone(),
        None => {
            let anys = &client.sotw.last().unwrap().resources;
            anys.iter().map(|any| Resource::decode(&*any.value).unwrap()).collect()
        }
    };
    let line = |one: Resource| (one.name, one.version, one.ttl.map(|ttl| ttl.seconds), one.resource.is_some());
    resources.into_iter().map(line).collect()
}

fn one(name: &str, version: &str, ttl: Option<i64>, body: bool) -> (String, String, Option<i64>, bool) {
    (name.into(), version.into(), ttl, body)
}
