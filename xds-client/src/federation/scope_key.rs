//! Which scope a name belongs to.

use std::fmt;
use std::sync::Arc;

use xdstp_cache::{Selector, TypeUrl};

use crate::federation::node_group::NodeGroup;
use crate::federation::place::Place;

/// Which scope a name belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeKey {
    /// `xdstp:` names of one authority, in canonical spelling.
    Authority(String),
    /// What an origin, by position, has for one node group.
    Group(usize, NodeGroup),
    /// Old-style names of an origin that answers every node alike.
    EveryNode,
    /// What one stream does not share (rule 121).
    Private(u64),
    /// What who looks for a type finds in the document at a locator, in canonical spelling and without directives.
    Document(TypeUrl, String),
    /// What an origin, by position, has of one of these because a source that stands beside its names says so (TP1), whoever else
    /// has them.
    Adjacent(Box<Self>, usize),
    /// What of one of these is for who selects by this (TP2): its origin is asked with it, apart from others.
    Selected(Box<Self>, Arc<Selector>),
}

impl ScopeKey {
    /// The same for who selects by this, if by anything.
    #[must_use]
    pub(crate) fn selected(self, selector: Option<&Arc<Selector>>) -> Self {
        match selector {
            Some(selector) => Self::Selected(Box::new(self), selector.clone()),
            None => self,
        }
    }

    /// The same whoever selects by what, and whatever says where it is.
    pub fn of_all(&self) -> &Self {
        match self {
            Self::Selected(of, _) | Self::Adjacent(of, _) => of.of_all(),
            _ => self,
        }
    }

    /// By what its users select.
    pub fn selector(&self) -> Option<&Arc<Selector>> {
        match self {
            Self::Selected(_, selector) => Some(selector),
            _ => None,
        }
    }

    /// The authority whose names it holds.
    pub fn authority(&self) -> Option<&str> {
        match self.of_all() {
            Self::Authority(authority) => Some(authority),
            _ => None,
        }
    }

    /// Whether a scope of it that is of this origin is the scope of a place, for the one node group that the asking stream is of.
    pub(crate) fn is_at(&self, place: Place<'_>, of: usize) -> bool {
        match (self.of_all(), place) {
            (Self::Authority(own), Place::Authority { authority, .. }) => own == authority,
            (Self::Group(own, _), Place::Group { origin }) => *own == origin,
            // Another origin may be asked by node for names of an authority.
            (Self::EveryNode, Place::Group { origin }) => of == origin,
            _ => false,
        }
    }

    /// Whether a stream carries nothing but this scope, so that its wildcard means everything on it.
    pub(crate) fn has_own_stream(&self) -> bool {
        matches!(self.of_all(), Self::Group(..) | Self::Private(_))
    }
}

impl fmt::Display for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority(authority) => write!(f, "xdstp://{authority}"),
            Self::Group(_, group) => write!(f, "{group}"),
            Self::EveryNode => f.write_str("every node"),
            Self::Private(stream) => write!(f, "stream {stream}"),
            Self::Document(_, locator) => f.write_str(locator),
            Self::Adjacent(of, _) => write!(f, "{of} of an adjacent source"),
            Self::Selected(of, selector) => write!(f, "{of} {selector}"),
        }
    }
}
