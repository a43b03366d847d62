//! Who asks origins: the relay itself, and what is said of others.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::config::fields::{LOCALITY_FIELDS, NODE_FIELDS};
use crate::config::{self, Locality};
use crate::yaml::{Error, Node};

/// Who the relay is.
pub(super) fn relay_node(node: &Node) -> Result<config::Node, Error> {
    node.expect_fields(NODE_FIELDS)?;
    let default = config::Node::default();
    Ok(config::Node {
        id: node.field("id", owned_text)?.unwrap_or(default.id),
        cluster: node.field("cluster", owned_text)?.unwrap_or(default.cluster),
        locality: node.field("locality", locality)?.unwrap_or_default(),
        metadata: node.field("metadata", metadata)?.unwrap_or_default(),
    })
}

/// Any fields.
pub(super) fn metadata(node: &Node) -> Result<Map<String, Value>, Error> {
    Map::deserialize(node)
}

fn locality(node: &Node) -> Result<Locality, Error> {
    node.expect_fields(LOCALITY_FIELDS)?;
    let part = |key| Ok(node.field(key, owned_text)?.unwrap_or_default());
    Ok(Locality { region: part("region")?, zone: part("zone")?, sub_zone: part("sub_zone")? })
}

fn owned_text(node: &Node) -> Result<String, Error> {
    node.text().map(str::to_owned)
}
