//! Which scope is which, over restarts and changes of the configuration: versions mean nothing to another origin than the one
//! that gave them, nor has a group of nodes anything of another.

use crate::config::{Config, OriginKind};
use crate::relay_core::NodeGrouping;
use crate::state::format::ScopeId;
use xdstp_client::federation::ScopeKey;

#[derive(Clone, Debug)]
pub(crate) struct Identities {
    /// By position: none of what is not asked, but read.
    origins: Vec<Option<String>>,
    /// How nodes are grouped: without it, groups of the same key may be others.
    grouping: Option<String>,
    /// Who the relay is.
    node: String,
}

impl Identities {
    pub(crate) fn new(config: &Config, grouping: &dyn NodeGrouping) -> Self {
        let origin = |origin: &crate::config::Origin| match &origin.kind {
            OriginKind::Server { servers, protocol } => {
                let servers = servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                Some(format!("{} {servers} {} {:?}", origin.name, protocol.as_str(), origin.xdstp))
            }
            OriginKind::Files { .. } | OriginKind::Embedded => None,
        };
        Self {
            origins: config.origins.iter().map(origin).collect(),
            grouping: grouping.identity(),
            node: format!("{:?}", config.node),
        }
    }

    /// What a scope is kept as, if it is.
    pub(crate) fn of(&self, key: &ScopeKey, origin: usize) -> Option<ScopeId> {
        let origin = self.origins.get(origin)?.as_ref()?.as_bytes();
        match key {
            ScopeKey::Authority(authority) => {
                Some(ScopeId::of(&[b"authority", origin, self.node.as_bytes(), authority.as_bytes()]))
            }
            ScopeKey::Group(_, group) => {
                let grouping = self.grouping.as_ref()?.as_bytes();
                Some(ScopeId::of(&[b"group", origin, grouping, group.key()]))
            }
            // What is selected of a scope is asked for anew.
            ScopeKey::EveryNode | ScopeKey::Private(_) | ScopeKey::Selected(..) => None,
        }
    }
}
