//! Nodes that may share what an origin has for one of them, and how an origin is told of a node.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::{Bytes, BytesMut};
use prost::Message;
use xds_transport::server::ASKS_FOR_OTHERS;
use xds_transport::wire::Node;
use xds_transport::wire::walk::{FieldValue, Fields};

/// A set of nodes that may share old-style resources.
#[derive(Clone, Debug)]
pub struct NodeGroup {
    key: Vec<u8>,
    label: String,
}

// By key alone, whatever the label says.
impl PartialEq for NodeGroup {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for NodeGroup {}

impl Hash for NodeGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl PartialOrd for NodeGroup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeGroup {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
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

    /// What nodes of the group have in common, and others have not.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl fmt::Display for NodeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// The node as the origin is told it: `client_features` about the transport are the business of who has the stream, so
/// only those honoured here remain; everything else stays byte for byte.
pub fn towards_origin(node: &Bytes) -> Bytes {
    const CLIENT_FEATURES: u32 = 10;
    const ABOUT_TRANSPORT: &[u8] = b"xds.config.";
    const HONOURED: [&str; 3] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl", ASKS_FOR_OTHERS];
    let mut out = BytesMut::with_capacity(node.len() + 32);
    let mut fields = Fields::of(node);
    while let Some(Ok((field, encoded))) = fields.next_encoded() {
        let about_transport = field.number == CLIENT_FEATURES
            && matches!(&field.value, FieldValue::Bytes(feature) if feature.starts_with(ABOUT_TRANSPORT));
        if !about_transport {
            out.extend_from_slice(encoded);
        }
    }
    let honoured = Node { client_features: HONOURED.map(Into::into).into(), ..Node::default() };
    out.extend_from_slice(&honoured.encode_to_vec());
    out.freeze()
}
