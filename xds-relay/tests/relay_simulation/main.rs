//! The relay's core between clients and origins in virtual time, under histories drawn from seeds.
//!
//! Every hop is a link of latency and breaks between a real client machine and a real server machine; in the middle
//! stands a real [`RelayCore`](xds_relay::relay_core::RelayCore). Whenever all comes to rest, every client must hold
//! what the origins have for it and for its node group.
//!
//! `SIMULATION_SEEDS=N` runs N seeds instead of the gate's, from `SIMULATION_FIRST` on; `SIMULATION_SEED=n` runs one and
//! prints all of it. `SIMULATION_FAULT=F` looks for one planted fault only.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod consumer;
mod envoy;
mod faults;
#[path = "../support/flag.rs"]
mod flag;
mod history;
mod hops;
#[path = "../../../xds-transport/tests/simulation/link.rs"]
#[allow(dead_code, reason = "shared with the simulation of a pair")]
mod link;
#[path = "../../../xds-transport/tests/simulation/messages.rs"]
#[allow(dead_code, reason = "shared with the simulation of a pair")]
mod messages;
mod network;
mod order;
mod origin;
#[path = "../../../xds-transport/tests/simulation/random.rs"]
#[allow(dead_code, reason = "shared with the simulation of a pair")]
mod random;
mod world;

use std::sync::Mutex;

use faults::Fault;
use history::History;
use network::{run, transcript};

/// How many seeds the gate runs: over a thousand of them of each kind of world.
const SEEDS: u64 = 1400;
/// And of histories whose resources refer to each other.
const REFERRING: u64 = 1000;
/// And of both with a relay that looks at few names at a time.
const PAUSING: u64 = 500;
/// And of worlds in which an origin has several servers.
const SEVERAL: u64 = 1000;
/// And of worlds in which an origin comes and goes.
const LED: u64 = 600;
/// And of worlds in which each type has a stream of its own.
const APART: u64 = 1000;
/// Further ones that failed once.
const FAILED: [u64; 19] = [
    1483, 3218, 4447, 5254, 5376, 12159, 15721, 35620, 35_694, 44482, 61243, 80_736, 94_096, 105_419, 139_609, 141_925,
    239_288, 1_307_453, 1_319_892,
];

/// And of these histories.
const FAILED_REFERRING: [u64; 15] =
    [670, 1001, 1211, 1262, 1302, 1339, 1516, 1918, 5117, 12_379, 29_010, 45_398, 78_574, 112_575, 116_685];

#[test]
fn every_client_converges_and_sees_nothing_of_others() {
    keeps_the_rules(History::random, SEEDS, &FAILED);
}

#[test]
fn what_belongs_together_is_told_in_order() {
    keeps_the_rules(History::referring, REFERRING, &FAILED_REFERRING);
}

#[test]
fn who_looks_at_little_at_a_time_says_the_same() {
    keeps_the_rules(History::pausing, PAUSING, &[]);
}

#[test]
fn whichever_server_feeds_a_client_it_converges_and_loses_nothing() {
    keeps_the_rules(History::several, SEVERAL, &[]);
}

#[test]
fn whoever_an_origin_is_nothing_is_taken_from_its_clients_and_nothing_is_sent_again() {
    keeps_the_rules(History::led, LED, &[]);
}

#[test]
fn whichever_type_is_away_its_clients_lose_nothing_and_converge() {
    keeps_the_rules(History::apart, APART, &[]);
}

#[test]
fn every_planted_fault_is_found() {
    let only = std::env::var("SIMULATION_FAULT").ok();
    for fault in Fault::ALL.into_iter().filter(|fault| only.as_ref().is_none_or(|only| *only == format!("{fault:?}"))) {
        let wrong = |seed| {
            let history = fault.sought_in(seed);
            run(&history, Some(fault)).err().filter(|wrong| wrong.contains(fault.found_by())).map(|wrong| (seed, wrong))
        };
        let (seed, wrong) = (0..fault.seeds()).find_map(wrong).unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("{fault:?}: seed {seed}: {wrong}");
        let mut history = fault.sought_in(seed);
        if let Some(setup) = fault.hidden_by(&history.setup) {
            history.setup = setup;
            assert_eq!(run(&history, Some(fault)).err(), None, "{fault:?} is found by another kind of world, too");
        }
    }
}

/// Runs so many histories, and those that failed once.
fn keeps_the_rules(history_of: fn(u64) -> History, seeds: u64, failed: &[u64]) {
    if let Some(seed) = number("SIMULATION_SEED") {
        let history = history_of(seed);
        println!("{history:#?}\n{}", transcript(&history, None));
        return run(&history, None).map_or_else(|wrong| panic!("seed {seed}: {wrong}"), drop);
    }
    let first = number("SIMULATION_FIRST").unwrap_or(0);
    let seeds = first..first + number("SIMULATION_SEEDS").unwrap_or(seeds);
    let seeds = Mutex::new(seeds.chain(failed.iter().copied()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (messages, wrong) = std::thread::scope(|scope| {
        let threads = Vec::from_iter((0..threads).map(|_| scope.spawn(|| run_each(history_of, &seeds))));
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results
            .fold((0, None), |(sum, wrong), (messages, other)| (sum + messages, wrong.into_iter().chain(other).min()))
    });
    if let Some((seed, wrong)) = wrong {
        panic!("{}", failure(seed, &history_of(seed), &wrong));
    }
    println!("{messages} messages");
}

/// Runs histories until no seed is left or one fails: the number of messages in them, and the one that failed.
/// Nobody takes a further seed then, so that the least seed that fails is among the results.
fn run_each(history_of: fn(u64) -> History, seeds: &Mutex<impl Iterator<Item = u64>>) -> (u64, Option<(u64, String)>) {
    let mut messages = 0;
    loop {
        let Some(seed) = seeds.lock().unwrap().next() else { return (messages, None) };
        match run(&history_of(seed), None) {
            Ok(sent) => messages += sent,
            Err(wrong) => {
                seeds.lock().unwrap().by_ref().for_each(drop);
                return (messages, Some((seed, wrong)));
            }
        }
    }
}

/// A failing history, as short as it gets, and all that is said in it.
fn failure(seed: u64, history: &History, wrong: &str) -> String {
    let least = history.shrunk(|shorter| run(shorter, None).is_err());
    format!("seed {seed}: {wrong}\nleast: {least:#?}\n{}", transcript(&least, None))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
