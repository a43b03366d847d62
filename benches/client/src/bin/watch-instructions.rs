//! What a watch costs by how many there are, beside tonic's `xds-client`: fails where a goal is missed.
//!
//! `program` is a client without sockets: what is counted of `watch()` and of a drop is all that happens in the thread that calls
//! them, and of an update all that client and server do. `loopback` is a whole client over HTTP/2, as in `client-instructions`.
//! With `--large` 100 000 watches are counted, too, which takes minutes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use client_bench::content::name;
use client_bench::peers::{OursDelta, Pair, Peer, Tonic};
use client_bench::program::Program;
use instructions::{Counter, Counts, Goals, count};

const FEW: usize = 10;
const LARGE: usize = 100_000;
/// At least as many more are opened and dropped again.
const MORE: usize = 100;
/// So many that a table of all which grows meanwhile, once, is not most of it.
const UPDATES: usize = 50;
/// Watches that come one by one.
const ADDED: usize = 5;
/// As many as the peer manages under valgrind in seconds, and outside of it.
const PEERS: usize = 300;
const PEERS_TIMED: usize = 3_000;

const OPENED: &str = "program: a watch of all, opened";
const DROPPED: &str = "program: a watch of all, dropped";
const ONE_MORE: &str = "program: one more watch, opened";
const ONE_LESS: &str = "program: one more watch, dropped";
const UPDATE: &str = "program: an update and its ACK";

fn main() -> ExitCode {
    let many = if std::env::args().any(|argument| argument == "--large") { LARGE } else { LARGE / 10 };
    let counts = count(|counter| {
        [FEW, many / 10, many].into_iter().for_each(|watches| program(counter, watches));
        loopback::<OursDelta>(counter, &one_more("delta"), PEERS_TIMED);
        loopback::<Tonic>(counter, &one_more("xds-client"), PEERS);
    });
    counts.print();
    let mut goals = Goals::default();
    judge(&counts, many, &mut goals);
    times();
    goals.exit_code()
}

fn one_more(whose: &str) -> String {
    format!("loopback, {whose}: one more watch, until it is asked for")
}

fn judge(counts: &Counts, many: usize, goals: &mut Goals) {
    let ratio = |what: &str, many: usize, few: usize| counts.of(what, many) / counts.of(what, few);
    for what in [OPENED, DROPPED] {
        goals.at_most(&format!("{what}: W = {many} by W = {}", many / 10), ratio(what, many, many / 10), 1.3);
    }
    for what in [ONE_MORE, ONE_LESS] {
        goals.at_most(&format!("{what}: W = {many} by W = {FEW}"), ratio(what, many, FEW), 1.2);
    }
    // A processor does one in a nanosecond at least: less than 20 000 are less than 20 µs.
    for what in [OPENED, DROPPED] {
        goals.at_most(&format!("{what}: thousands of instructions"), counts.of(what, many) / 1e3, 20.0);
    }
    goals.at_most(&format!("{UPDATE}: W = {many} by W = {FEW}"), ratio(UPDATE, many, FEW), 1.1);
    let what = one_more("delta");
    goals.at_most(&format!("{what}: W = {PEERS_TIMED} by W = {FEW}"), ratio(&what, PEERS_TIMED, FEW), 1.3);
    let what = one_more("xds-client");
    println!("{what}: W = {PEERS} by W = {FEW}: {:.2}", ratio(&what, PEERS, FEW));
}

fn program(counter: &mut Counter, watches: usize) {
    // What keeps them grows by an eighth, and is copied then: once among so many, wherever it stands, and not once or never among a few.
    let others = MORE.max(watches / 8);
    let names: Vec<_> = (0..watches + others).map(name).collect();
    let mut program = Program::new(watches + others);
    let (all, more) = names.split_at(watches);
    counter.count(OPENED, watches, watches, || program.open(all));
    counter.count("program: what it leaves to others, with the server's part", watches, watches, || program.settle());
    assert_eq!(counter.count("program: a look at what is there", watches, watches, || program.look()), watches);
    counter.count(UPDATE, watches, UPDATES, || (0..UPDATES).for_each(|_| program.update()));
    counter.count(ONE_MORE, watches, others, || program.open(more));
    program.settle();
    assert_eq!(program.look(), others);
    program.close(others - MORE);
    program.settle();
    counter.count(ONE_LESS, watches, MORE, || program.close(MORE));
    program.settle();
    counter.count(DROPPED, watches, watches, || program.close(watches));
    counter.count("program: what that leaves to others", watches, watches, || program.settle());
}

fn loopback<P: Peer>(counter: &mut Counter, what: &str, many: usize) {
    for names in [FEW, many] {
        let mut pair = Pair::<P>::new(names);
        counter.count(what, names, ADDED, || (0..ADDED).for_each(|_| pair.watch_one_more()));
    }
}

/// To look at, not to rely on.
fn times() {
    println!();
    for watches in [LARGE / 10, LARGE] {
        let names: Vec<_> = (0..watches).map(name).collect();
        let mut program = Program::new(watches);
        let opened = each(watches, || program.open(&names));
        let settled = each(watches, || program.settle());
        assert_eq!(program.look(), watches);
        let dropped = each(watches, || program.close(watches));
        println!(
            "program, {watches} watches: µs each: {opened:.2} to open, {settled:.2} to have, {dropped:.2} to drop"
        );
    }
    timed::<OursDelta>("delta", PEERS_TIMED);
    timed::<Tonic>("xds-client", PEERS_TIMED);
    timed::<OursDelta>("delta", LARGE / 10);
}

fn timed<P: Peer>(whose: &str, watches: usize) {
    let mut pair = Pair::<P>::new(watches);
    let (opened, there) = (pair.opened, pair.there);
    let dropped = pair.leave();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / watches as f64;
    println!(
        "loopback, {whose}, {watches} watches: µs each: {:.2} to open, {:.2} until all are there, {:.2} to drop",
        each(opened),
        each(there),
        each(dropped)
    );
}

/// Microseconds of one of `times`.
fn each(times: usize, all: impl FnOnce()) -> f64 {
    let start = Instant::now();
    all();
    start.elapsed().as_secs_f64() * 1e6 / times as f64
}
