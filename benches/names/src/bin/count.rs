//! Does one case on one name a number of times, for an instruction counter: `count CASE NAME TIMES`; `count` lists both.

use std::hint::black_box;

use names_bench::{CASES, NAMES};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, name, times] = &arguments[..] else {
        for (case, _) in CASES {
            println!("{case}");
        }
        return;
    };
    let (_, case) = CASES.iter().find(|(known, _)| known == case).expect("no such case");
    let (_, name) = NAMES.iter().find(|(known, _)| known == name).expect("no such name");
    for _ in 0..times.parse().expect("TIMES is a number") {
        black_box(case(black_box(name)));
    }
}
