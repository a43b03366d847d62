//! What may be ordered of releases, what came of it, and what was done: who, when and why.

use serde::{Deserialize, Serialize};

/// Something to be done with the releases of a scope: the body of `POST /api/v1/orders`, where orders are taken. A header
/// `If-Match` with the scope's [`mark`](super::ReleasedScope::mark) has it done only if nothing was since that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseOrder {
    /// Of which scope: `xdstp://AUTHORITY`, or `old-style`. It may be left out where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Which relay is meant, by its [instance](super::Releases::instance): another one refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What.
    pub order: Ordered,
    /// Of a rollback: the release that is to be stable, of those that are kept. The one that is, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Of a stage: which, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<usize>,
    /// Who wants it: up to 64 bytes. What the connection shows of them is noted beside.
    pub by: String,
    /// And why: up to 1 KiB.
    pub why: String,
}

/// What may be ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ordered {
    /// Everybody is served what is stable, and what is new waits.
    #[default]
    Freeze,
    /// What waits goes on, from the first stage.
    Unfreeze,
    /// The release under way is none any more, and is not taken again; or one that was stable is so again.
    Rollback,
    /// The release under way stays in its stage.
    Hold,
    /// The release under way is in this stage now, whatever it waited for.
    Stage,
    /// The release under way is stable now.
    Promote,
}

/// What came of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderDone {
    /// Of which scope.
    pub scope: String,
    /// In words: `frozen`, `rolled back`, `unchanged` …
    pub done: String,
    /// Whether it is kept. If not, that cannot be written now: it is so on this relay, and is written as soon as that can be.
    pub is_kept: bool,
    /// Whether it is still written if the relay ends before; else it is forgotten.
    pub keeps_unsaved: bool,
    /// The scope's mark since.
    pub mark: String,
}

/// What is asked of what was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AuditQuery {
    /// Of this scope alone.
    pub scope: Option<String>,
    /// How many, 1000 at most.
    pub limit: Option<usize>,
}

/// What was done with releases, the last first: of each scope the last thousand changes are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// As many as were asked for.
    pub entries: Vec<AuditEntry>,
    /// How many more are kept.
    pub more: usize,
}

/// Something that was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEntry {
    /// With the releases of which scope.
    pub scope: String,
    /// Which of all changes of the scope it was, from 0.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What came of it.
    pub done: String,
    /// The release that it is about: of a rollback that people ordered the one that is served since, and of one by a relay the one that was
    /// taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Of a rollback that people ordered: the release that was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_back: Option<String>,
    /// A person's name, or a relay.
    pub by: String,
    /// In their words.
    pub why: String,
}
