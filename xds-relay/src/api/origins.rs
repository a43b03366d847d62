//! What is told of origins.

use serde::{Deserialize, Serialize};

use crate::snapshot::UpstreamDump;

/// The origins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origins {
    /// In the order of the configuration.
    pub origins: Vec<OriginDetail>,
}

/// An origin, with the streams to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginDetail {
    /// As in the status.
    #[serde(flatten)]
    pub status: OriginStatus,
    /// The streams: [`PAGE`](super::PAGE) of them at most, first those that are not there.
    pub upstreams: Vec<UpstreamDump>,
    /// How many others there are.
    pub more_upstreams: usize,
}

/// How an origin is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginStatus {
    /// Its name in the configuration.
    pub name: String,
    /// `delta`, `sotw`, `files`, or what a program calls its own.
    pub kind: String,
    /// Whether it can be reached.
    pub state: OriginState,
    /// How many streams there are to it, or should be.
    pub streams: usize,
    /// On how many of them it has answered.
    pub streams_up: usize,
    /// Resources held of it.
    pub resources: u64,
    /// Those that are known from before a restart only.
    pub stale: u64,
    /// Why a stream is not there, or was not the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What an operator should look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Whether an origin can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OriginState {
    /// Nobody wants anything of it: it is not dialed.
    #[default]
    Idle,
    /// It answered on every stream, or has all there is from the start.
    Up,
    /// It answered on some streams.
    Partly,
    /// It answered on none.
    Down,
}
