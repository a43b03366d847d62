//! What is told of drift: of what clients are served, and their origin has otherwise.

use serde::{Deserialize, Serialize};

use super::clients::ClientCounts;

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriftQuery {
    /// Of the origin of this name.
    pub origin: String,
    /// Of this type: a type URL or its end; or a [short name](super::type_url), where it is read.
    #[serde(rename = "type", deserialize_with = "super::any_of")]
    pub type_url: Option<String>,
    /// Of this authority, or this node group by its label.
    pub scope: Option<String>,
}

/// What an origin said on streams of their own, beside what is served of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drifts {
    /// The origin's name.
    pub origin: String,
    /// [`MOST_SCOPES`](super::MOST_SCOPES) of them at most.
    pub scopes: Vec<ScopeDrift>,
    /// How many others it feeds: each can be asked for by itself.
    pub more_scopes: usize,
    /// Whether clients have accepted what they are served: of all origins.
    pub clients: ClientCounts,
}

/// The same of one authority, or of one node group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeDrift {
    /// The authority, or the label of the node group.
    pub scope: String,
    /// How many names are the same on both sides: as they are, or absent.
    pub same: usize,
    /// How many names are served, and how many names and collections are asked for, that the origin said nothing of. That is no
    /// drift, for silence is no answer.
    pub unanswered: usize,
    /// How many names were not the same, and otherwise so a second before: they change all the time, on one side or both, and what
    /// is on its way is no drift.
    pub moving: usize,
    /// Why the origin could not be asked, or not for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What is not the same: [`PAGE`](super::PAGE) at most.
    pub drifts: Vec<Drift>,
    /// How many others are not.
    pub more_drifts: usize,
}

/// A name that is not served as its origin has it, and was not a second before either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drift {
    /// The type URL.
    pub type_url: String,
    /// In canonical form.
    pub name: String,
    /// The version that clients are served; none where they are told that there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The version that the origin has; none where it says that there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_origin: Option<String>,
}

impl Drifts {
    /// Whether something is not served as its origin has it.
    pub fn is_any(&self) -> bool {
        self.scopes.iter().any(|scope| !scope.drifts.is_empty())
    }

    /// Whether all was compared that there is.
    pub fn is_whole(&self) -> bool {
        let is_whole = |scope: &ScopeDrift| scope.trouble.is_none() && scope.unanswered == 0 && scope.moving == 0;
        self.more_scopes == 0 && self.scopes.iter().all(is_whole)
    }
}
