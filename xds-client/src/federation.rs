//! The federation core: which scope a name belongs to, which origin feeds it, what must be asked for, what lingers, what is
//! known. Without I/O; time is an argument. A relay stands on it, and so can a program.
//!
//! A [`Federation`] is a map of [`Scope`]s and the [`Origin`]s that feed them. [`Routes`] are one subscriber's interest over as
//! many scopes as its names need. This module knows nothing else of the crate that it is in but how a stream to a server is
//! [consumed](crate::upstream::Consumer). What it needs from outside comes in by:
//!
//! - [`Origin`], what feeds scopes: a server ([`ServerOrigin`]), which is reached by [`Dial`], a [`SnapshotOrigin`], or anything
//!   else that has content. Between a scope and an origin that must be asked stands a [`Supply`].
//! - [`Client`], whom routes serve: which group its node is of, and what its limits are called.
//! - [`Observer`], who counts what comes from servers.
//! - [`LoopGuard`], what is said of relays with streams to servers. A trait, and not the relay's own paths: a program that said
//!   such a thing would be taken for a relay.
//! - [`Limits`], of [`Quota`]s. Whose configuration sets them, only their keys say.

mod alike;
mod changes;
#[cfg_attr(not(test), expect(dead_code, reason = "no origin has several servers yet"))]
mod choice;
mod client;
mod core;
mod crowd;
mod demand;
mod dial;
mod failing;
mod feed;
mod interner;
mod lock;
mod loop_guard;
mod markers;
mod mixed;
mod node_group;
mod observer;
mod origin;
mod part;
mod parts;
mod place;
mod places;
mod realm;
mod request_room;
mod routes;
mod scope;
mod scope_key;
mod scopes;
mod server;
mod server_origin;
mod settling;
mod share;
mod snapshot_origin;
mod speakers;
mod subscriber;
mod supply;
mod upstream;
mod weak_table;

pub use self::client::Client;
pub use self::core::{Federation, Limits, Settings};
pub use self::dial::{Dial, Dialed};
pub use self::interner::Interner;
pub use self::loop_guard::{Behind, LoopGuard};
pub use self::node_group::{NodeGroup, towards_origin};
pub use self::observer::Observer;
pub use self::origin::{ByNode, Origin, Speaker};
pub use self::part::{Part, View};
pub use self::realm::{Authorities, Realm};
pub use self::request_room::RequestRoom;
pub use self::routes::Routes;
pub use self::scope::Scope;
pub use self::scope_key::ScopeKey;
pub use self::server_origin::{ServerOrigin, ServerSettings};
pub use self::share::{OverLimit, Quota, Share};
pub use self::snapshot_origin::{Held, SnapshotOrigin};
pub use self::supply::{Status, Supply};

#[cfg(test)]
mod tests;
