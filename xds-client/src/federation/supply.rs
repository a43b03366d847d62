//! How a scope is connected with its origin.

use std::time::Instant;

use bytes::Bytes;

use crate::federation::dial::Dialed;
use crate::upstream::Consumer;

/// What an origin that must be asked feeds a scope by: a stream, of which the scope may be one of many users. The scope
/// drops it when nobody wants anything of it any more. No lock of the core is held while it is called or dropped.
pub trait Supply: Send + Sync {
    /// The scope has something to tell the origin.
    fn ask(&self);

    /// The scope asks others of the servers that the origin has than before.
    fn choose(&self) {}

    /// Whom the origin is asked for: a node group, or `xdstp`.
    fn label(&self) -> &str;

    /// How it is doing.
    fn status(&self) -> Status;

    /// Why the origin cannot be reached, if it cannot since before `since`.
    fn unreachable_since(&self, since: Instant) -> Option<String>;

    /// Another stream to the server that counts, as the same node, for somebody who uses it alone: none if there is no server.
    fn dial_beside(&self, _consumer: Box<dyn Consumer>) -> Option<Box<dyn Dialed>> {
        None
    }

    /// The node of some routes, of the group that the scope is of, may speak for that from now on.
    fn join(&self, routes: u64, node: Bytes);

    /// The node of these routes may not any more.
    fn leave(&self, routes: u64);
}

/// How a supply is doing, for people.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The origin is there, and answered.
    pub connected: bool,
    /// The relay that the origin is, and those behind it.
    pub relays: Option<String>,
    /// Why it was not there when it was not last.
    pub last_error: Option<String>,
    /// When it is tried next, while it is not there.
    pub retry_at: Option<Instant>,
    /// What an operator should look at.
    pub hint: Option<&'static str>,
    /// Its servers, in order of preference, where there are several.
    pub servers: Vec<ServerStatus>,
}

/// How one of several servers is doing for a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// What it is called.
    pub name: String,
    /// It answered last: what it says counts.
    pub in_use: bool,
    /// Whether it is asked, and what came of that.
    pub state: ServerState,
}

/// What came of it that a server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It is not: one before it answers, or all that is wanted is known.
    NotAsked,
    /// It has not answered yet.
    Asked,
    /// It answered.
    Answers,
    /// It did not answer last, and why. It is tried on.
    Fails(String),
}

impl ServerState {
    /// In a word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotAsked => "not asked",
            Self::Asked => "asked",
            Self::Answers => "answers",
            Self::Fails(_) => "fails",
        }
    }
}
