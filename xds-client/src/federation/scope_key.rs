//! Which scope a name belongs to.

use std::fmt;

use crate::federation::node_group::NodeGroup;
use crate::federation::place::Place;

/// Which scope a name belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKey {
    /// `xdstp:` names of one authority, in canonical spelling.
    Authority(String),
    /// What an origin, by position, has for one node group.
    Group(usize, NodeGroup),
    /// Old-style names of an origin that answers every node alike.
    EveryNode,
    /// What one stream does not share (rule 121).
    Private(u64),
}

impl ScopeKey {
    /// The authority whose names it holds.
    pub fn authority(&self) -> Option<&str> {
        match self {
            Self::Authority(authority) => Some(authority),
            _ => None,
        }
    }

    /// Whether it is the scope of a place, for the one node group that the asking stream is of.
    pub(crate) fn is_at(&self, place: Place<'_>) -> bool {
        match (self, place) {
            (Self::Authority(own), Place::Authority { authority, .. }) => own == authority,
            (Self::Group(own, _), Place::Group { origin }) => *own == origin,
            (Self::EveryNode, Place::Group { .. }) => true,
            _ => false,
        }
    }

    /// Whether a stream carries nothing but this scope, so that its wildcard means everything on it.
    pub(crate) fn has_own_stream(&self) -> bool {
        matches!(self, Self::Group(..) | Self::Private(_))
    }
}

impl fmt::Display for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority(authority) => write!(f, "xdstp://{authority}"),
            Self::Group(_, group) => write!(f, "{group}"),
            Self::EveryNode => f.write_str("every node"),
            Self::Private(stream) => write!(f, "stream {stream}"),
        }
    }
}
