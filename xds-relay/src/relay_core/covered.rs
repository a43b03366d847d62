//! Of which group what a stream asks for is, where that goes by names as well.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use xds_transport::server::NodeError;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::{NodeGroup, OfGroup};

use crate::lock::lock;
use crate::relay_core::client_node::ClientNode;
use crate::relay_core::node_group::{Covers, NodeGrouping, Rest};

/// What groups of a stream's node are for, by type and origin.
#[derive(Default)]
pub(crate) struct Covered(Mutex<BTreeMap<(TypeUrl, usize), OfType>>);

struct OfType {
    covers: Covers,
    /// Whether all of it is of the group for the rest: what is asked for first says so, as a type of a stream is of one group at
    /// an origin. None before that.
    apart: Option<bool>,
}

impl Covered {
    /// The group of what is asked for, none where it is to share with no other stream.
    pub(crate) fn group_for(
        &self,
        grouping: &dyn NodeGrouping,
        node: &Bytes,
        asked: &OfGroup<'_>,
    ) -> Result<Option<NodeGroup>, NodeError> {
        let node = ClientNode::decode(node.clone())?;
        let mut types = lock(&self.0);
        let of = types
            .entry((asked.type_url.clone(), asked.origin))
            .or_insert_with(|| OfType { covers: grouping.covers(&node, asked.type_url), apart: None });
        if let Covers::Some { has, rest: Rest::Group(group) } = &of.covers {
            // What has a key may be kept apart as well. What has none may not be shared.
            if *of.apart.get_or_insert_with(|| has(asked.name).is_err()) {
                return Ok(group.clone());
            }
        }
        drop(types);
        grouping.group_for(&node, asked.type_url)
    }

    /// Why what is asked for is of no group.
    pub(crate) fn refuses(&self, grouping: &dyn NodeGrouping, node: &Bytes, asked: &OfGroup<'_>) -> Option<String> {
        let mut types = lock(&self.0);
        let key = (asked.type_url.clone(), asked.origin);
        if !types.contains_key(&key) {
            // One that is none ends its stream.
            let covers = grouping.covers(&ClientNode::decode(node.clone()).ok()?, asked.type_url);
            types.insert(key.clone(), OfType { covers, apart: None });
        }
        let OfType { covers, apart } = types.get(&key)?;
        match covers {
            Covers::All => None,
            Covers::Nothing(why) => Some(why.clone()),
            Covers::Some { has, rest: Rest::Refused } => has(asked.name).err(),
            Covers::Some { has, rest: Rest::Group(_) } if *apart == Some(false) && !asked.is_alike => {
                let why = has(asked.name).err()?;
                Some(format!("{why}; and on this stream the type is shared by name already"))
            }
            Covers::Some { .. } => None,
        }
    }

    /// The node is another.
    pub(crate) fn forget(&self) {
        lock(&self.0).clear();
    }
}
