//! Clients of programs, and servers that fail, return, hang, refuse and are slow, under histories drawn from seeds.
//!
//! Several authorities have lists of servers, of which some are in more than one. What each watch is told is checked, whenever it
//! looks, by books that know the messages alone; and when every server is back, what is known is what the first of them has.
//!
//! `SIMULATION_SEEDS=N` runs N seeds instead of the gate's, from `SIMULATION_FIRST` on; `SIMULATION_SEED=n` runs one and prints
//! all of it.

mod books;
mod checks;
mod documents;
mod history;
mod link;
mod random;
mod said;
mod server;
mod watched;
mod world;

use self::history::{History, Target};
use self::world::run;
use crate::federation::faults::{Fault, plant};

/// How many seeds the gate runs.
const SEEDS: u64 = 300;
/// And how many at most until a planted fault is found.
const FAULTY: u64 = 1500;
/// How many that fail are told of.
const MOST: usize = 4;

#[test]
fn whatever_happens_watches_are_told_what_servers_said_and_come_to_what_the_first_has() {
    if let Some(seed) = number("SIMULATION_SEED") {
        let history = History::random(seed);
        let wrong = run(&history).err();
        let (wrong, log) = wrong.unwrap_or_default();
        assert!(wrong.is_empty(), "{:#?}\n{}\nseed {seed}: {wrong}", history.setup, log.join("\n"));
        return;
    }
    let first = number("SIMULATION_FIRST").unwrap_or(0);
    let mut wrongs = Vec::new();
    for seed in first..first + number("SIMULATION_SEEDS").unwrap_or(SEEDS) {
        let history = History::random(seed);
        if let Err((wrong, _)) = run(&history) {
            let least = history.shrunk(|shorter| run(shorter).is_err());
            let (_, log) = run(&least).err().unwrap_or_default();
            wrongs.push(format!("{:?}\n{}\nseed {seed}: {wrong}", least.setup, log.join("\n")));
        }
        if wrongs.len() == MOST {
            break;
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n\n"));
}

#[test]
fn every_planted_fault_is_found() {
    let seeds = number("SIMULATION_SEEDS").unwrap_or(FAULTY);
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        plant(Some(fault));
        let found = (0..seeds).find_map(|seed| Some((seed, run(&History::random(seed)).err()?)));
        plant(None);
        match found {
            Some((seed, (wrong, _))) => println!("{fault:?}: seed {seed}: {wrong}"),
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "{missed:?} are not found");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
