//! Who the relay is on streams of `xdstp:` names.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{Locality, Node};
use xdstp_client::federation::towards_origin;

use crate::config::{self, Config};
use crate::struct_json::to_struct;

/// Encoded, as origins are told it.
pub(crate) fn own_node(config: &Config) -> Bytes {
    let config::Node { id, cluster, locality, metadata, .. } = &config.node;
    let (region, zone, sub_zone) = (locality.region.clone(), locality.zone.clone(), locality.sub_zone.clone());
    let node = Node {
        id: id.clone(),
        cluster: cluster.clone(),
        locality: Some(Locality { region, zone, sub_zone }).filter(|locality| *locality != Locality::default()),
        metadata: (!metadata.is_empty()).then(|| to_struct(metadata)),
        user_agent_name: "xds-relay".to_owned(),
        user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Node::default()
    };
    towards_origin(&Bytes::from(node.encode_to_vec()))
}
