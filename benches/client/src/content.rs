//! What the origin says, encoded.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{Any, DeltaDiscoveryResponse, DiscoveryResponse, Resource};

/// The type of every resource: one whose SotW responses need not be complete.
pub const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// The length of a resource beside its name.
const FILLER: usize = 900;

/// The name of the resource that is `index`-th of all.
pub fn name(index: usize) -> String {
    format!("xdstp://bench.example/envoy.config.endpoint.v3.ClusterLoadAssignment/pool/{index:06}")
}

/// A response that has some of the resources as they are after `round`; its nonce is the round.
pub fn response(protocol: Protocol, indices: impl IntoIterator<Item = usize>, round: u64) -> Bytes {
    let any = |index| Any { type_url: TYPE_URL.into(), value: body(index, round) };
    let (type_url, nonce) = (TYPE_URL.to_owned(), round.to_string());
    match protocol {
        Protocol::Delta => {
            let resource = |index| Resource {
                name: name(index),
                version: nonce.clone(),
                resource: Some(any(index)),
                ..Resource::default()
            };
            let resources = indices.into_iter().map(resource).collect();
            DeltaDiscoveryResponse { type_url, nonce, resources, ..Default::default() }.encode_to_vec().into()
        }
        Protocol::Sotw => {
            let resources = indices.into_iter().map(any).collect();
            let version_info = nonce.clone();
            DiscoveryResponse { type_url, nonce, version_info, resources, ..Default::default() }.encode_to_vec().into()
        }
    }
}

/// A message with its name in field 1, as Envoy's types have it.
pub fn body(index: usize, round: u64) -> Bytes {
    let mut body = Vec::new();
    prost::encoding::string::encode(1, &name(index), &mut body);
    prost::encoding::uint64::encode(1000, &round, &mut body);
    prost::encoding::bytes::encode(1001, &vec![0x7f; FILLER], &mut body);
    body.into()
}
