//! What is seen of a relay from outside.

use serde::{Deserialize, Serialize};

/// Everything a relay holds, of whom, and for whom; no bodies, as they may hold secrets.
///
/// The fields are the ones of the JSON at `/config_dump`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfigDump {
    /// What the relay goes by among relays.
    pub instance: String,
    /// In the order of the configuration.
    pub origins: Vec<OriginDump>,
    /// What is held, by scope.
    pub scopes: Vec<ScopeDump>,
    /// Who is connected.
    pub clients: Vec<ClientDump>,
    /// What is kept over a restart, if anything is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateDump>,
}

/// What is kept over a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StateDump {
    /// Whether it is: the log says why not.
    pub kept: bool,
    /// How long ago the relay of before knew what was read as this one started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_seconds_ago: Option<u64>,
    /// Scopes that were read and nobody asked for yet.
    pub waiting_scopes: usize,
    /// What was read that is not what was written.
    pub damaged: usize,
}

/// An origin and the streams to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OriginDump {
    /// From the configuration.
    pub name: String,
    /// `delta`, `sotw` or `files`.
    pub protocol: String,
    /// The streams, connected or waiting to be.
    pub streams: Vec<UpstreamDump>,
    /// Of an origin of files what these hold, whether a client wants it or not, by type URL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentDump>,
}

/// What files hold of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContentDump {
    /// The type URL.
    pub type_url: String,
    /// By name.
    pub resources: Vec<ContentResourceDump>,
}

/// A resource in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContentResourceDump {
    /// In canonical form.
    pub name: String,
    /// As subscribers are told it.
    pub version: String,
    /// The length of the body.
    pub bytes: usize,
}

/// A stream to an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamDump {
    /// The node group it speaks for, or `xdstp`.
    pub group: String,
    /// Whether it is up, and the origin answered on it.
    pub connected: bool,
    /// If the origin is a relay: its instance, and after commas those behind it, with `|` between some equally near.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relays: Option<String>,
    /// Why it is not, or was not the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// In how many seconds it is tried next at the latest, while it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_seconds: Option<u64>,
    /// What an operator should look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Its servers, in order of preference, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerDump>,
    /// Names, globs and wildcards subscribed to.
    pub subscriptions: usize,
}

/// One of several servers of an origin, for those whom a stream is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerDump {
    /// Its address.
    pub server: String,
    /// How many authorities and node groups it feeds: it is the one that answered last.
    pub feeds: usize,
    /// `answers`, or why it does not: `not asked` as long as one before it answers or all that is wanted is known, `asked`
    /// before it has answered, and `fails`.
    pub state: String,
    /// Why it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What is held of one authority, or for one node group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScopeDump {
    /// The authority, or the label of the node group.
    pub scope: String,
    /// How many of its resources are stale.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale: usize,
    /// By type URL.
    pub types: Vec<ScopeTypeDump>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What is held of one type in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScopeTypeDump {
    /// The type URL.
    pub type_url: String,
    /// By name.
    pub resources: Vec<ResourceDump>,
    /// Names that somebody asked for and the origin does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Globs subscribed to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Whether all of the type is subscribed to.
    pub wildcard: bool,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResourceDump {
    /// In canonical form.
    pub name: String,
    /// As subscribers are told it.
    pub version: String,
    /// The length of the body.
    pub bytes: usize,
    /// Since the body changed last.
    pub last_changed_seconds_ago: u64,
    /// It is known from before a restart, and its origin has not said since that it is still so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// A subscriber's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientDump {
    /// Its address.
    pub peer: String,
    /// What it calls itself.
    pub node_id: String,
    /// `delta` or `sotw`.
    pub protocol: String,
    /// A long request of its is being handled: of its types nothing is said meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// What it is subscribed to, by type URL.
    pub types: Vec<ClientTypeDump>,
}

/// What a subscriber wants of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientTypeDump {
    /// The type URL.
    pub type_url: String,
    /// What it wants it of: the names of [`ConfigDump::scopes`].
    #[serde(skip)]
    pub scopes: Vec<String>,
    /// Whether it wants all of the type.
    pub wildcard: bool,
    /// The names it wants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The globs it wants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Responses it accepted.
    pub acked: u64,
    /// Responses it rejected.
    pub nacked: u64,
    /// The last rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_nack: Option<NackDump>,
}

/// A rejected response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NackDump {
    /// What the subscriber said.
    pub message: String,
    /// When.
    pub seconds_ago: u64,
}

/// Whether subscribers should come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Yes.
    Ready,
    /// No, and why, in one line.
    NotReady(String),
}
