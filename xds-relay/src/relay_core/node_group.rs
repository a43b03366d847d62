//! Who may share old-style resources: the node group of a client.

use bytes::BufMut;
use prost::Message;
use sha2::{Digest, Sha256};
use xds_transport::server::NodeError;
use xds_transport::wire::{Node, Value, value};
use xdstp_cache::TypeUrl;
use xdstp_client::federation::NodeGroup;

use crate::api::RuleExplained;
use crate::config::NodeField;
use crate::hex::hex;
use crate::node_text::metadata_at;
use crate::relay_core::client_node::ClientNode;

/// Decides which nodes may share old-style resources. What is in one group is never served to another.
///
/// ```
/// use xds_relay::relay_core::{ClientNode, EveryNode, NodeGroup, NodeGrouping};
/// use xds_transport::server::NodeError;
///
/// /// Nodes of a tenant share; who has none shares with nobody, and staging is not served.
/// struct ByTenant;
///
/// impl NodeGrouping for ByTenant {
///     fn group(&self, node: &ClientNode) -> Result<NodeGroup, NodeError> {
///         match node.message().cluster.split_once('/') {
///             Some(("staging", _)) => Err(NodeError::new("staging has a relay of its own")),
///             Some((tenant, _)) => Ok(NodeGroup::new(tenant.into(), tenant.to_owned())),
///             None => EveryNode.group(node),
///         }
///     }
/// }
/// ```
pub trait NodeGrouping: Send + Sync + 'static {
    /// The group of a node.
    ///
    /// # Errors
    /// When the node must not join any group: its stream ends with this reason (rule 154).
    fn group(&self, node: &ClientNode) -> Result<NodeGroup, NodeError>;

    /// What tells this from other ways to group nodes: where it is equal, equal keys are of the same nodes. Without it nothing of
    /// any group is kept over a restart.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Whether a node may be in other groups for other types: then [`group_for`](Self::group_for) says in which.
    fn goes_by_type(&self) -> bool {
        false
    }

    /// The group of a node for one type; without one, its stream shares nothing of the type with any other.
    ///
    /// # Errors
    /// When it is to have nothing of the type: its stream ends with this reason.
    fn group_for(&self, node: &ClientNode, type_url: &TypeUrl) -> Result<Option<NodeGroup>, NodeError> {
        let _ = type_url;
        self.group(node).map(Some)
    }

    /// What of a type the group of a node [for it](Self::group_for) is for.
    fn covers(&self, node: &ClientNode, type_url: &TypeUrl) -> Covers {
        let _ = (node, type_url);
        Covers::All
    }

    /// What became of each rule that could have been for a node that asks for a name of a type, or without one for all of it, where
    /// there are rules.
    fn explain(&self, node: &ClientNode, type_url: &TypeUrl, name: Option<&str>) -> Vec<RuleExplained> {
        let _ = (node, type_url, name);
        Vec::new()
    }
}

/// What of a type a group is for.
#[non_exhaustive]
pub enum Covers {
    /// Whatever a node asks for.
    All,
    /// Nothing: each name that is asked for is refused, for this reason.
    Nothing(String),
    /// Some names.
    Some {
        /// Whether a name is one of these, or `*`, which stands for all there is; else for which reason not.
        has: Box<HasName>,
        /// What becomes of what is none.
        rest: Rest,
    },
}

/// Whether a name is of a group, or the reason why not.
pub type HasName = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// What becomes of what a node asks for, and its group for the type is not for.
pub enum Rest {
    /// It is refused by name.
    Refused,
    /// It is for this group, or without one shares nothing with any other stream.
    Group(Option<NodeGroup>),
}

/// Every distinct node is its own group: safe, and shares nothing. Nodes are distinct that differ in any field, known
/// here or not, but not in the order of what has none: see [`ClientNode::canonical`].
#[derive(Clone, Copy, Debug, Default)]
pub struct EveryNode;

impl NodeGrouping for EveryNode {
    fn identity(&self) -> Option<String> {
        Some("every node".to_owned())
    }

    fn group(&self, node: &ClientNode) -> Result<NodeGroup, NodeError> {
        let digest = Sha256::digest(node.canonical()?);
        let short = hex(digest.get(..4).unwrap_or_default());
        let id = &node.message().id;
        let name = if id.is_empty() { "(no id)" } else { id };
        Ok(NodeGroup::new(digest.to_vec(), format!("{name} {short}")))
    }
}

/// Nodes that agree in some of their parts share a group (`share_by`). A node that lacks one of them, or has it empty,
/// is a group of its own, as its label says: having nothing in common is no agreement.
#[derive(Clone, Debug)]
pub struct ShareBy(Vec<NodeField>);

impl ShareBy {
    /// Nodes must agree in all of `fields`.
    pub fn new(fields: Vec<NodeField>) -> Self {
        Self(fields)
    }
}

impl NodeGrouping for ShareBy {
    fn identity(&self) -> Option<String> {
        let fields: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        Some(format!("share_by {fields:?}"))
    }

    fn group(&self, node: &ClientNode) -> Result<NodeGroup, NodeError> {
        // The keys of the two kinds of group differ in their first byte.
        let mut key = vec![SHARED];
        let mut label = Vec::new();
        for field in &self.0 {
            let parts = parts_of(node.message(), field);
            if parts.iter().all(|part| part.content.is_empty()) {
                let alone = EveryNode.group(node)?;
                let key = [&[ALONE], alone.key()].concat();
                return Ok(NodeGroup::new(key, format!("{alone}, shares with nobody: it has no {field}")));
            }
            // No value runs into the next.
            for part in &parts {
                key.put_u64(part.content.len() as u64);
                key.extend_from_slice(&part.content);
            }
            let shown: Vec<_> = parts.iter().map(|part| part.shown.as_str()).collect();
            label.push(format!("{field}={}", shown.join("/")));
        }
        Ok(NodeGroup::new(key, label.join(" ")))
    }
}

const SHARED: u8 = 0;
const ALONE: u8 = 1;

/// What nodes must agree in, and how people read it. Without content where the node lacks it.
#[derive(Default)]
struct Part {
    content: Vec<u8>,
    shown: String,
}

impl Part {
    fn text(text: &str) -> Self {
        Self { content: text.as_bytes().to_vec(), shown: text.to_owned() }
    }

    /// A number is not the text that looks like it, and an empty text is one.
    fn value(value: &Value) -> Self {
        let shown = match &value.kind {
            None => String::new(),
            Some(value::Kind::StringValue(text)) => text.clone(),
            Some(value::Kind::BoolValue(flag)) => flag.to_string(),
            Some(value::Kind::NumberValue(number)) => number.to_string(),
            Some(_) => "{..}".to_owned(),
        };
        Self { content: value.encode_to_vec(), shown }
    }
}

fn parts_of(node: &Node, field: &NodeField) -> Vec<Part> {
    let locality = node.locality.clone().unwrap_or_default();
    match field {
        NodeField::Id => vec![Part::text(&node.id)],
        NodeField::Cluster => vec![Part::text(&node.cluster)],
        NodeField::Locality => [locality.region, locality.zone, locality.sub_zone].map(|part| Part::text(&part)).into(),
        NodeField::Region => vec![Part::text(&locality.region)],
        NodeField::Zone => vec![Part::text(&locality.zone)],
        NodeField::SubZone => vec![Part::text(&locality.sub_zone)],
        NodeField::Metadata(path) => vec![metadata_at(node, path).map(Part::value).unwrap_or_default()],
    }
}
