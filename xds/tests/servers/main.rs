//! `xds get`, `watch`, `diff` and `csds`, against origins that play a script.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "../cli/mod.rs"]
mod cli;

mod bootstrap;
mod csds;
mod diff;
mod documents;
mod exit_codes;
mod get;
mod help;
mod lists;
mod origin;
mod push;
mod refused;
mod relay;
mod relay_tls;
mod releases;
mod state;
mod tls;
mod watch;

use serde_json::Value;

use cli::{Run, xds};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/dir/*";
const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/dir/x";

fn run(args: &[&str]) -> Run {
    xds(args, "")
}

/// What is run with a `--timeout`, which is longer for as long as it is not what is waited for: machines are slow at times.
fn run_until(done: impl Fn(&Run) -> bool, args: &[&str]) -> Run {
    let mut runs = [0.2_f64, 1.0, 5.0, 25.0].iter().map(|timeout| {
        let timeout = timeout.to_string();
        run(&[args, &["--timeout", &timeout]].concat())
    });
    runs.find(done).unwrap_or_else(|| panic!("{args:?}"))
}

/// The objects that were printed, a line each.
fn objects(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Those of `event`, in the order of their names.
fn events(run: &Run, event: &str) -> Vec<Value> {
    let mut events: Vec<_> = objects(run).into_iter().filter(|object| object["event"] == event).collect();
    events.sort_by_key(|object| object["name"].to_string());
    events
}
