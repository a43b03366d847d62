//! What a relay does for one client of one authority, by how many authorities others name: fails where a goal is missed.
//!
//! The relay without I/O, with the stream to its origin: bytes of the origin in, bytes to the client out.

mod relay;

use std::process::ExitCode;

use instructions::{Counter, Goals, count};

use crate::relay::Relay;

const FEW: usize = 10;
const MANY: usize = 3_000;
const TIMES: usize = 20;
const PARTS: [&str; 3] = ["an update", "a name asked for, and left", "a look at the clock"];

fn main() -> ExitCode {
    let counts = count(|counter| {
        for others in [FEW, MANY] {
            measure(counter, others);
        }
    });
    counts.print();
    let mut goals = Goals::default();
    for what in PARTS {
        let ratio = counts.of(what, MANY) / counts.of(what, FEW);
        goals.at_most(&format!("{what}: beside {MANY} authorities by beside {FEW}"), ratio, 1.1);
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
