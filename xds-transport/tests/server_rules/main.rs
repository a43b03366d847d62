//! The rules of the protocol that bind a server, each held by a scenario without I/O.
//!
//! A client asks, the server answers one line per response: `C a@1 -b` is a Cluster response with
//! `a` at version 1 and with `b` removed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod absence;
mod alike;
mod anew;
mod errors;
mod flow;
mod lifetime;
mod limits;
mod names;
mod nonces;
mod on_demand;
mod order;
mod over;
mod parameters;
mod reconnect;
mod refused;
mod selections;
mod sessions;
mod streams;
mod subscriptions;
mod tenants;
mod types;
mod verdicts;
mod versions;
mod wildcards;
mod windows;
mod work;
mod wrapper;
