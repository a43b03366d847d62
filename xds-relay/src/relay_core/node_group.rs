//! Who may share old-style resources: the node group of a client.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use sha2::{Digest, Sha256};
use xds_transport::wire::walk::Fields;
use xds_transport::wire::{Node, Value, value};

use crate::config::NodeField;

/// Decides which nodes may share old-style resources. What is in one group is never served to another.
pub trait NodeGrouping: Send + Sync + 'static {
    /// The group of a node.
    fn group(&self, node: &Node) -> NodeGroup;
}

/// A set of nodes that may share old-style resources.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeGroup {
    key: Vec<u8>,
    label: String,
}

impl NodeGroup {
    /// A group: nodes with equal keys share it. The label is for people.
    pub fn new(key: Vec<u8>, label: String) -> Self {
        Self { key, label }
    }

    /// What the group is called on admin pages and in logs.
    pub fn label(&self) -> &str {
        &self.label
    }
}

impl fmt::Display for NodeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Every distinct node is its own group: safe, and shares nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct EveryNode;

impl NodeGrouping for EveryNode {
    fn group(&self, node: &Node) -> NodeGroup {
        // Maps are ordered in `Node`, and the order of a client's extensions says nothing: equal nodes encode alike.
        let mut ordered = node.clone();
        ordered.extensions.sort_by(|a, b| (&a.category, &a.name).cmp(&(&b.category, &b.name)));
        ordered.client_features.sort();
        let digest = Sha256::digest(ordered.encode_to_vec());
        let short: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let name = if node.id.is_empty() { "(no id)" } else { &node.id };
        NodeGroup::new(digest.to_vec(), format!("{name} {short}"))
    }
}

/// Nodes that agree in some of their parts share a group (`share_by`).
#[derive(Clone, Debug)]
pub struct ShareBy(Vec<NodeField>);

impl ShareBy {
    /// Nodes must agree in all of `fields`.
    pub fn new(fields: Vec<NodeField>) -> Self {
        Self(fields)
    }
}

impl NodeGrouping for ShareBy {
    fn group(&self, node: &Node) -> NodeGroup {
        let mut key = Vec::new();
        let mut label = Vec::new();
        for field in &self.0 {
            let part = part_of(node, field);
            // Absent and empty differ, and no value runs into the next.
            match &part {
                None => key.put_u8(0),
                Some(part) => {
                    key.put_u8(1);
                    key.put_u64(part.len() as u64);
                    key.extend_from_slice(part);
                }
            }
            let shown = part.map_or("-".into(), |part| String::from_utf8_lossy(&part).into_owned());
            label.push(format!("{field}={shown}"));
        }
        NodeGroup::new(key, label.join(" "))
    }
}

fn part_of(node: &Node, field: &NodeField) -> Option<Vec<u8>> {
    let locality = node.locality.clone().unwrap_or_default();
    match field {
        NodeField::Id => Some(node.id.clone().into_bytes()),
        NodeField::Cluster => Some(node.cluster.clone().into_bytes()),
        NodeField::Locality => Some([locality.region, locality.zone, locality.sub_zone].join("/").into_bytes()),
        NodeField::Region => Some(locality.region.into_bytes()),
        NodeField::Zone => Some(locality.zone.into_bytes()),
        NodeField::SubZone => Some(locality.sub_zone.into_bytes()),
        NodeField::Metadata(path) => {
            let mut fields = node.metadata.as_ref().map(|metadata| &metadata.fields);
            let mut found: Option<&Value> = None;
            for key in path {
                found = fields?.get(key);
                fields = match found.and_then(|value| value.kind.as_ref()) {
                    Some(value::Kind::StructValue(inner)) => Some(&inner.fields),
                    _ => None,
                };
            }
            Some(match found?.kind.as_ref()? {
                value::Kind::StringValue(text) => text.clone().into_bytes(),
                value::Kind::BoolValue(flag) => flag.to_string().into_bytes(),
                value::Kind::NumberValue(number) => number.to_string().into_bytes(),
                _ => found?.encode_to_vec(),
            })
        }
    }
}

/// The node as the origin is told it: `client_features` about the transport are the relay's own
/// business, so only those it honours remain; everything else stays byte for byte.
pub(crate) fn towards_origin(node: &Bytes) -> Bytes {
    const CLIENT_FEATURES: u32 = 10;
    const HONOURED: &str = "xds.config.resource-in-sotw";
    let mut out = BytesMut::with_capacity(node.len() + 32);
    let mut fields = Fields::of(node.clone());
    loop {
        let before = fields.rest().clone();
        let Some(Ok(field)) = fields.next() else { break };
        let raw = before.slice(..before.len() - fields.rest().len());
        let about_transport = field.number == CLIENT_FEATURES && contains(&raw, b"xds.config.");
        if !about_transport {
            out.extend_from_slice(&raw);
        }
    }
    let honoured = Node { client_features: vec![HONOURED.into()], ..Node::default() };
    out.extend_from_slice(&honoured.encode_to_vec());
    out.freeze()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
