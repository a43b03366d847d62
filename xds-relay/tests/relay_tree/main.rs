//! A tree of relays in virtual time: 28 edges, 9 regional relays in three regions, one origin, and a sample of a million clients.
//!
//! Every relay is a real [`RelayCore`](xds_relay::relay_core::RelayCore), and every stream has a real machine at each of its ends.
//! Messages have latency, go through links and processes of so much a second, and may be lost, which breaks their stream. What
//! stands behind the regional relays is one origin that all of them follow; whether it is one process or three that agree by etcd
//! makes no difference to them, and is not what is tested here.
//!
//! `TREE_CLIENTS=10000` has 1 % of the clients; by default there are 3000. The relays are as much slower, see [`tree`].

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod fault;
mod hop;
mod ledger;
mod load;
mod member;
mod origin;
#[path = "../../../xds-transport/tests/simulation/random.rs"]
#[allow(dead_code, reason = "shared with the simulation of a pair")]
mod random;
mod scenarios;
mod tree;
mod wire;
