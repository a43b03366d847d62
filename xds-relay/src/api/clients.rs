//! What is told of clients.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::origins::OriginStatus;

/// How many clients there are, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientCounts {
    /// All of them.
    pub all: usize,
    /// [`ClientState::Synced`].
    pub synced: usize,
    /// [`ClientState::Waiting`].
    pub waiting: usize,
    /// [`ClientState::Rejected`].
    pub rejected: usize,
    /// [`ClientState::Silent`].
    pub silent: usize,
}

/// How a client is: the worst of its types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ClientState {
    /// It accepted what it was sent.
    Synced,
    /// It was sent nothing yet, or was just sent something.
    #[default]
    Waiting,
    /// It has not answered what it was sent 15 s ago or longer.
    Silent,
    /// It rejected what it was sent last.
    Rejected,
}

/// Which clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientQuery {
    /// With this node id.
    pub node: Option<String>,
    /// With this text in the node's id, cluster or zone, the address or a group.
    pub search: Option<String>,
    /// In this state.
    pub state: Option<ClientState>,
    /// That want something of this type: a type URL or its end; or a [short name](super::type_url), where it is read.
    #[serde(rename = "type", deserialize_with = "super::any_of")]
    pub type_url: Option<String>,
    /// Behind this one.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: Option<usize>,
}

/// Some clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clients {
    /// In the order in which they came.
    pub clients: Vec<ClientRow>,
    /// There may be more behind this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A client's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientRow {
    /// What the stream goes by for as long as it is there.
    pub id: u64,
    /// The id of its node.
    pub node: String,
    /// The cluster of its node.
    pub cluster: String,
    /// The zone of its node's locality.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Where it is.
    pub peer: String,
    /// `delta` or `sotw`.
    pub protocol: String,
    /// With whom it shares old-style resources: node groups, by their labels.
    pub groups: Vec<String>,
    /// What it wants something of: type URLs.
    pub types: Vec<String>,
    /// How it is.
    pub state: ClientState,
    /// For how long it is that.
    pub since_seconds: u64,
    /// A long request of its is being handled: of its types nothing is said meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
}

/// What is asked of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExplainQuery {
    /// Of this type: a type URL, read as [what somebody calls it](super::type_url).
    #[serde(rename = "type", deserialize_with = "super::types::one_if_any")]
    pub type_url: Option<String>,
    /// Why it has what it has of this name.
    pub name: Option<String>,
}

/// A client, with what it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Client {
    /// As in the list.
    #[serde(flatten)]
    pub row: ClientRow,
    /// What it uses up over all of its streams, where that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<ClientUses>,
    /// By type.
    pub wants: Vec<ClientType>,
    /// Why it has what it has of the name that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
    /// The same of each further set of dynamic parameters that it asks for that name with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_explained: Vec<Explained>,
}

/// What a client uses up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientUses {
    /// Which rule of `clients` is for it, from 0, where there are rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// Who it is, by what it shows: all streams of who shows the same are counted together.
    pub identity: String,
    /// Field of `limits` of a rule → what there is of it, and how much there may be by the rule, or as the part of one client.
    pub limits: BTreeMap<String, ClientLimitUse>,
}

/// How much of one thing a client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientLimitUse {
    /// So much.
    pub used: usize,
    /// Of so much that it may; of any, where this is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
}

/// What a client wants of one type, and what it said of that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientType {
    /// The type URL.
    pub type_url: String,
    /// How it is with this type.
    pub state: ClientState,
    /// For how long.
    pub since_seconds: u64,
    /// Whether it wants all of the type.
    pub wildcard: bool,
    /// The names and globs it wants: the first of them, by name.
    pub names: Vec<String>,
    /// How many there are beside these.
    pub more_names: usize,
    /// Responses it was sent.
    pub sent: u64,
    /// Those it accepted.
    pub accepted: u64,
    /// Those it rejected.
    pub rejected: u64,
    /// The last of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_rejection: Option<Rejection>,
}

/// What a client said as it rejected a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rejection {
    /// Its own words.
    pub message: String,
    /// When.
    pub seconds_ago: u64,
}

/// Why a client has what it has of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// The type URL.
    pub type_url: String,
    /// As it was asked for here.
    pub name: String,
    /// As what the client wants it: the name, a glob, or `*`; nothing if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted_as: Option<String>,
    /// By which dynamic parameters, or constraints, it selects among variants, if it sends any (TP2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// Where it is held: an authority, or a node group by its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What became of each aggregation rule for this client, type and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleExplained>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginStatus>,
    /// What the resource is called itself, if the name is an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_name: Option<String>,
    /// Which of its variants there is for the client, if it has any: whom that is for (TP2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Whether the origin has answered for it.
    pub known: bool,
    /// The version there is; none if it does not exist, or is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the origin found wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether that is known from before a restart only.
    pub stale: bool,
    /// Whether the client was sent this version, or that there is none.
    pub sent: bool,
    /// What the client said of it: `accepted`, `rejected` or `unanswered`, or `unknown` where it rejected more than a
    /// thousand, of which these are not kept; nothing before it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// With which words, if it rejected it. It may have done so for another resource's sake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
    /// All of that in sentences for people, which may change.
    pub reasons: Vec<String>,
}

/// What became of an aggregation rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleExplained {
    /// Which fragment, from 1.
    pub fragment: usize,
    /// Which rule of it, from 1.
    pub rule: usize,
    /// Where it is in its file, from 1.
    pub line: usize,
    /// `matched`, `not_matched`, `failed` or `not_reached`.
    pub verdict: String,
    /// What it came to, or why it did not.
    pub words: String,
}
