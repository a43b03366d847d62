//! Rules that were read, ready to be applied.

use std::collections::HashSet;
use std::sync::Arc;

use super::pattern::Pattern;
use super::template::Template;

/// A piece of the key: what the rules come to that match.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug)]
pub(super) struct Rule {
    /// Where it begins in the file, from 1.
    pub(super) line: usize,
    pub(super) condition: Match,
    pub(super) result: Outcome,
}

/// Which requests a rule is for.
#[derive(Debug)]
pub(super) enum Match {
    Any,
    All(Vec<Self>),
    /// Any of them.
    Or(Vec<Self>),
    Not(Box<Self>),
    /// These, and what they are called in v3.
    Type(HashSet<String>),
    Field(NodeField, StringMatch),
    /// Region, zone and sub-zone: all that is said must match.
    Locality([Option<StringMatch>; 3]),
    Metadata(Vec<String>, ValueMatch),
}

/// A text of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeField {
    Id,
    Cluster,
    Region,
    Zone,
    SubZone,
}

impl NodeField {
    /// As protobuf calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Cluster => "cluster",
            Self::Region => "region",
            Self::Zone => "zone",
            Self::SubZone => "sub_zone",
        }
    }
}

/// The parts of a locality, in their order.
pub(super) const LOCALITY: [NodeField; 3] = [NodeField::Region, NodeField::Zone, NodeField::SubZone];

/// An empty one matches nothing, not even an empty text.
#[derive(Debug)]
pub(super) enum StringMatch {
    Exact(String),
    Regex(Arc<Pattern>),
}

#[derive(Debug)]
pub(super) enum ValueMatch {
    Text(StringMatch),
    Bool(bool),
}

/// What a rule that matches comes to.
#[derive(Debug)]
pub(super) enum Outcome {
    Text(String),
    /// One after the other.
    All(Vec<Self>),
    Field(NodeField, Action),
    /// Region, zone and sub-zone, as far as they are asked for.
    Locality([Option<Action>; 3]),
    Metadata(Vec<String>, Action),
    /// A resource name, counted from 0.
    Name(usize, Arc<Action>),
}

/// What is made of a text.
#[derive(Debug)]
pub(super) enum Action {
    Exact,
    Replace(Arc<Pattern>, Template),
}
