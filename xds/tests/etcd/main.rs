//! `xds push` and `xds rm`, and relays that have etcd as an origin: with real ones, and no control plane. `etcd` and `etcdctl` are to
//! be there, as `.ci/run etcd` has them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "../cli/mod.rs"]
mod cli;
#[allow(dead_code, reason = "not all that the tests of the store need")]
#[path = "../../../xds-client/tests/etcd/cluster.rs"]
mod cluster;
mod outages;
mod putting;
mod relays;
mod secure;
