//! What one release has otherwise than another.

use serde::{Deserialize, Serialize};

use crate::releases::FieldDifference;

/// Which two releases are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DiffQuery {
    /// Of which scope. It may be left out where there is one.
    pub scope: Option<String>,
    /// The one before: what is stable, if none is named.
    pub from: Option<String>,
    /// The one after: the release under way, if none is named.
    pub to: Option<String>,
    /// How many resources of each kind are told, 1000 at most.
    pub limit: Option<usize>,
}

/// What clients of one release would be sent if they had another. Versions alone are no difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseDiff {
    /// Of which scope.
    pub scope: String,
    /// The one before.
    pub from: String,
    /// The one after.
    pub to: String,
    /// What is new.
    pub added: Vec<ReleasedResource>,
    /// What is otherwise.
    pub changed: Vec<ChangedResource>,
    /// What is not there any more.
    pub removed: Vec<ReleasedResource>,
    /// How many others there are, of all three.
    pub more: usize,
    /// Whether so much is removed that it waits for somebody to say so: more than a fifth, and more than ten, or all of several.
    pub removes_much: bool,
}

impl ReleaseDiff {
    /// Whether clients would be sent nothing.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty() && self.more == 0
    }
}

/// A resource that is in one release alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleasedResource {
    /// Its type.
    pub type_url: String,
    /// Its name.
    pub name: String,
    /// Which variant of the name it is, if there are several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// As the origin says it, or a hash of the content.
    pub version: String,
}

/// A resource that is in both releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedResource {
    /// As it is.
    #[serde(flatten)]
    pub after: ReleasedResource,
    /// The version that it was.
    pub version_before: String,
    /// Whether what is beside its content is otherwise: its aliases, how long it lives.
    pub is_wrapped_otherwise: bool,
    /// The fields that are otherwise, as far as they may be shown.
    pub difference: FieldDifference,
    /// Why they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
}
