//! What a relay does for one client: of one authority, by how many authorities others name, and for one that comes, has
//! everything and leaves. Fails where a goal is missed.
//!
//! The relay without I/O, with the stream to its origin: bytes of the origin in, bytes to the client out.

mod arrivals;
mod origin;
mod relay;
mod stream;

use std::process::ExitCode;

use instructions::{Counter, Goals, count};

use crate::arrivals::{Arrivals, Interest};
use crate::relay::{Greedy, Relay};

const FEW: usize = 10;
const MANY: usize = 3_000;
const TIMES: usize = 20;
const PARTS: [&str; 3] = ["an update", "a name asked for, and left", "a look at the clock"];

/// How many authorities one stream names: as many as it may by default.
const NAMED: [usize; 2] = [100, 1_000];
const NOT_THERE: &str = "an authority named, and told that it has nothing";

/// How many resources a client that comes is sent.
const RESOURCES: usize = 1_000;
/// What it is sent and what it leaves, each with how much it may take.
const ARRIVALS: [(Interest, [(&str, f64); 2]); 3] = [
    (Interest::Glob, [("a resource sent, of a glob", 1_900.0), ("and left", 50.0)]),
    (Interest::EachName, [("a resource sent, asked for by its name", 5_000.0), ("and left, one of names", 650.0)]),
    (
        Interest::EachNameSotw,
        [("a resource sent over SotW, by its name", 15_500.0), ("and left, one of names over SotW", 700.0)],
    ),
];

fn main() -> ExitCode {
    let counts = count(|counter| {
        for others in [FEW, MANY] {
            measure(counter, others);
        }
        for authorities in NAMED {
            let mut greedy = Greedy::of(authorities);
            counter.count(NOT_THERE, authorities, authorities, || assert!(greedy.ask() > 0, "it is told"));
        }
        for (interest, [(come, _), (leave, _)]) in ARRIVALS {
            arrive(counter, interest, come, leave);
        }
    });
    counts.print();
    let mut goals = Goals::default();
    for what in PARTS {
        let ratio = counts.of(what, MANY) / counts.of(what, FEW);
        goals.at_most(&format!("{what}: beside {MANY} authorities by beside {FEW}"), ratio, 1.1);
    }
    let [few, many] = NAMED;
    let ratio = counts.of(NOT_THERE, many) / counts.of(NOT_THERE, few);
    goals.at_most(&format!("{NOT_THERE}: of {many} by of {few}"), ratio, 1.5);
    for (what, goal) in ARRIVALS.iter().flat_map(|(_, parts)| parts) {
        goals.at_most(&format!("instructions for {what}"), counts.of(what, RESOURCES), *goal);
    }
    goals.exit_code()
}

fn measure(counter: &mut Counter, others: usize) {
    let [update, ask, look] = PARTS;
    let mut relay = Relay::beside(others);
    relay.update(0);
    counter.count(update, others, TIMES, || {
        for round in 1..=TIMES {
            assert!(relay.update(round) > 0, "the client is told");
        }
    });
    relay.ask_and_leave(0);
    counter.count(ask, others, TIMES, || {
        for round in 1..=TIMES {
            assert!(relay.ask_and_leave(round) > 0, "the origin is asked");
        }
    });
    counter.count(look, others, TIMES, || (0..TIMES).filter(|_| relay.look()).count());
}

fn arrive(counter: &mut Counter, interest: Interest, come: &str, leave: &str) {
    let mut arrivals = Arrivals::of(interest, RESOURCES);
    let arrived = counter.count(come, RESOURCES, RESOURCES, || arrivals.arrive());
    counter.count(leave, RESOURCES, RESOURCES, || arrived.leave());
}
