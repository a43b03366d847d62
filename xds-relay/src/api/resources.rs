//! What is told of resources.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceQuery {
    /// Of this type: a type URL or its end; or a [short name](super::type_url), where it is read.
    #[serde(rename = "type", deserialize_with = "super::any_of")]
    pub type_url: Option<String>,
    /// With this text in their names.
    pub search: Option<String>,
    /// Behind what a page called `next`.
    pub after: Option<String>,
    /// How many at most.
    pub limit: Option<usize>,
}

/// Some resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// In no order. What comes or goes between two pages may be in none of them.
    pub resources: Vec<ResourceRow>,
    /// There may be more behind this; a page may be shorter than it could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A resource, or a name that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRow {
    /// The type URL.
    pub type_url: String,
    /// In canonical form.
    pub name: String,
    /// Where it is held: an authority, a node group by its label, or `files`.
    pub scope: String,
    /// Where it comes from: the name of an origin.
    pub origin: String,
    /// As clients are told it; none if there is no such resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The length of the body.
    pub bytes: usize,
    /// Since its content changed last, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_seconds_ago: Option<u64>,
    /// Whether it is known from before a restart only.
    pub stale: bool,
}

/// One name, wherever it is held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameQuery {
    /// The type URL, read as [what somebody calls it](super::type_url).
    #[serde(rename = "type", deserialize_with = "super::types::one")]
    pub type_url: String,
    /// The name.
    pub name: String,
}

/// What is held of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// In each scope: [`PAGE`](super::PAGE) of them at most.
    pub held: Vec<HeldResource>,
}

/// A resource in one scope, and who wants it there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldResource {
    /// As in the list.
    #[serde(flatten)]
    pub row: ResourceRow,
    /// By which dynamic parameters, or constraints, those select that are served this (TP2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// Which of its variants it is, if it has any: whom that is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Who wants it: [`PAGE`](super::PAGE) of them at most.
    pub wanted_by: Vec<Wanting>,
    /// How many others do.
    pub more_wanting: usize,
    /// Its content as JSON of protobuf, where its type is known; without what is secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Why that is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
}

/// A client that wants a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanting {
    /// [`ClientRow::id`](super::ClientRow::id).
    pub id: u64,
    /// The id of its node.
    pub node: String,
    /// As what it wants it: the name, a glob, or `*`.
    pub wanted_as: String,
    /// Whether it was sent what there is.
    pub sent: bool,
}
