//! The federation core: which scope a name belongs to, which origin feeds it, what must be asked for, what lingers, what is
//! known. Without I/O; time is an argument. A relay stands on it, and so can a program.
//!
//! A [`Federation`](self::core::Federation) is a map of [`Scope`](scope::Scope)s and the [`Origin`](origin::Origin)s that feed them.
//! [`Routes`](routes::Routes) are one subscriber's interest over as many scopes as its names need. This module knows nothing
//! else of the crate that it is in. What it needs from outside comes in by:
//!
//! - [`Origin`](origin::Origin), what feeds scopes: a server ([`ServerOrigin`](server_origin::ServerOrigin)), which is reached
//!   by [`Dial`](dial::Dial), or anything that has its content elsewhere. Between a scope and an origin that must be asked
//!   stands a [`Supply`](supply::Supply).
//! - [`Client`](client::Client), whom routes serve: which group its node is of, and what its limits are called.
//! - [`Observer`](observer::Observer), who counts what comes from servers.
//! - [`LoopGuard`](loop_guard::LoopGuard), what is said of relays with streams to servers. A trait, and not the relay's own
//!   paths: a program that said such a thing would be taken for a relay.
//! - [`LastKnownGood`](last_known_good::LastKnownGood), where it is kept what scopes know, if anywhere.
//! - [`Limits`](self::core::Limits), of [`Quota`](share::Quota)s. Whose configuration sets them, only their keys say.

pub(crate) mod alike;
pub(crate) mod changes;
pub(crate) mod client;
pub(crate) mod core;
pub(crate) mod crowd;
pub(crate) mod demand;
pub(crate) mod dial;
pub(crate) mod failing;
pub(crate) mod feed;
pub(crate) mod interner;
pub(crate) mod last_known_good;
pub(crate) mod lock;
pub(crate) mod loop_guard;
pub(crate) mod markers;
pub(crate) mod mixed;
pub(crate) mod node_group;
pub(crate) mod observer;
pub(crate) mod origin;
pub(crate) mod part;
pub(crate) mod parts;
pub(crate) mod place;
pub(crate) mod places;
pub(crate) mod realm;
pub(crate) mod request_room;
pub(crate) mod routes;
pub(crate) mod scope;
pub(crate) mod scope_key;
pub(crate) mod scopes;
pub(crate) mod server;
pub(crate) mod server_origin;
pub(crate) mod settling;
pub(crate) mod share;
pub(crate) mod speakers;
pub(crate) mod subscriber;
pub(crate) mod supply;
pub(crate) mod upstream;
pub(crate) mod weak_table;

#[cfg(test)]
mod tests;
