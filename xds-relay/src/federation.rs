//! The core that a relay and a client of a program have in common, without I/O.

pub(crate) mod alike;
pub(crate) mod changes;
pub(crate) mod demand;
pub(crate) mod failing;
pub(crate) mod feed;
pub(crate) mod interner;
pub(crate) mod lock;
pub(crate) mod markers;
pub(crate) mod mixed;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod request_room;
pub(crate) mod routes;
pub(crate) mod scope;
pub(crate) mod scope_key;
pub(crate) mod scopes;
pub(crate) mod settling;
pub(crate) mod subscriber;
pub(crate) mod upstream;
pub(crate) mod weak_table;
