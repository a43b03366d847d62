//! `xds conformance`, against our own servers, and against one with planted defects.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "../cli/mod.rs"]
mod cli;

#[path = "../../src/conformance/link.rs"]
mod link;

#[path = "../../examples/adapter.rs"]
#[allow(dead_code, reason = "its program is what is measured here, but for where it listens")]
mod adapter;
mod cncf;
mod defects;
#[cfg(unix)]
mod documents;
mod faulty;
mod own;
mod plane;
mod planted;
mod relay;
mod runs;
#[cfg(unix)]
mod secure;
