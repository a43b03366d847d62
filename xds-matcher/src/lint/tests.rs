//! What a lint costs, counted in steps.

use std::format;
use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::{Constraint, FinalVariants};

fn lint(constraints: impl Iterator<Item = Constraint>) -> (usize, bool, usize) {
    let variants = FinalVariants::new(constraints.enumerate());
    let report = variants.lint(&LintOptions::new());
    (report.overlaps.len(), report.is_complete() && report.undecided.is_empty(), report.steps)
}

/// Variants that every pair of keys tells apart, in any of these shapes, take steps in proportion to their number.
#[test]
fn exclusive_variants_are_not_compared_pair_by_pair() {
    let values = |pairs: &[(&str, usize)]| {
        Constraint::all(pairs.iter().map(|(key, value)| Constraint::value(*key, value.to_string()))).unwrap()
    };
    let by_one_key = (0..10_000).map(|i| values(&[("env", 1), ("shard", i)]));
    let grid = (0..2_000).map(|i| values(&[("env", i % 2), ("version", i / 2 % 5), ("shard", i / 10)]));
    let flags = (0..2048).map(|i| {
        let names: Vec<_> = (0..11).map(|bit| format!("flag{bit}")).collect();
        values(&names.iter().enumerate().map(|(bit, name)| (name.as_str(), i >> bit & 1)).collect::<Vec<_>>())
    });
    let ranges = (0..2_000).map(|i| format!("env=prod and shard in {}..{}", 10 * i, 10 * i + 9).parse().unwrap());
    let with_default = (0..2_000).map(|i| match i {
        0 => "not exists(shard)".parse().unwrap(),
        i => Constraint::value("shard", i.to_string()),
    });
    let yes_and_no = |count: usize, yes: fn(&str) -> Constraint| {
        (0..count).map(move |i| {
            let flags = (0..count.ilog2()).map(|bit| {
                let flag = yes(&format!("flag{bit}"));
                if i >> bit & 1 == 1 { flag } else { flag.negate().unwrap() }
            });
            Constraint::all(flags).unwrap()
        })
    };
    let integers = |key: &str| Constraint::int_in(key, [crate::IntRange::at_most(9)]).unwrap();
    let listed = |i: usize| Constraint::value("shard", i.to_string());
    let all_but = |count: usize| {
        let others = Constraint::all((1..count).map(|i| listed(i).negate().unwrap())).unwrap();
        (0..count).map(move |i| if i == 0 { others.clone() } else { listed(i) })
    };
    // The first that is set decides.
    let first_set = (0..200).map(|i| {
        let flag = |j: usize| Constraint::value(format!("flag{j}"), "1");
        Constraint::all((0..i).map(|j| flag(j).negate().unwrap()).chain([flag(i)])).unwrap()
    });
    let crossed = (0..2_000).map(|i| {
        let tier = Constraint::value("tier", i.to_string());
        let listed = listed(i / 2);
        let apart = if i % 2 == 0 { listed } else { Constraint::all([listed.negate().unwrap(), tier]).unwrap() };
        Constraint::all([apart, Constraint::value("zone", (i % 2).to_string())]).unwrap()
    });
    for (what, count, (overlaps, complete, steps)) in [
        ("present or not", 4_096, lint(yes_and_no(4_096, |flag| Constraint::exists(flag)))),
        ("one value or not", 4_096, lint(yes_and_no(4_096, |flag| Constraint::value(flag, "1")))),
        ("integers or not", 2_048, lint(yes_and_no(2_048, integers))),
        ("all but the listed", 10_000, lint(all_but(10_000))),
        ("the first that is set", 200 * 200 / 2, lint(first_set)),
        ("values and all but them, told apart by another key", 2_000, lint(crossed)),
        ("by one key", 10_000, lint(by_one_key)),
        ("grid", 2_000, lint(grid)),
        ("flags", 2_048, lint(flags)),
        ("ranges", 2_000, lint(ranges)),
        ("with a default", 2_000, lint(with_default)),
    ] {
        assert!(complete && overlaps == 0, "{what}: {overlaps} overlaps");
        assert!(steps < 150 * count, "{what}: {steps} steps");
    }
}

#[test]
fn a_list_of_overlaps_that_is_cut_says_so() {
    let (overlaps, complete, steps) = lint((0..500).map(|_| Constraint::unconstrained()));
    assert_eq!((overlaps, complete), (LintReport::<usize>::PAIRS, false));
    assert!(steps < 10 * LintReport::<usize>::PAIRS);
}

/// Keys and values are looked up among others, which takes the longer the longer they are.
#[test]
fn long_texts_are_as_many_steps_as_it_takes_to_compare_them() {
    let steps = |bytes: usize| {
        let text = |name: &str, i: usize| format!("{name}{i:0>bytes$}");
        let variant = |i: usize| {
            let keys = (0..8).map(|bit| Constraint::value(text("key", bit), text("value", i >> bit & 1)));
            Constraint::all(keys).unwrap()
        };
        let (overlaps, complete, steps) = lint((0..256).map(variant));
        assert!(complete && overlaps == 0);
        steps
    };
    assert!(steps(12_800) > steps(4) + 256 * 8 * 2 * 100);
}

/// Ranges of all variants that lie between each other meet everywhere, while another key tells the variants apart.
#[test]
fn pairs_that_meet_in_many_ranges_are_looked_at_once() {
    let interleaved = |i: u64| {
        let ranges = (0..600).map(|at| crate::IntRange::new(100 * at + i, 100 * at + i + 50).unwrap());
        Constraint::all([Constraint::int_in("shard", ranges).unwrap(), Constraint::value("zone", i.to_string())])
            .unwrap()
    };
    let (overlaps, complete, steps) = lint((0..20).map(interleaved));
    assert!(complete && overlaps == 0);
    // Each is read, and each meeting of two ranges is found.
    assert!(steps < 20 * 20 * 600 * 10, "{steps} steps");
}

/// Spellings of one integer are no ranges, but are met as such.
#[test]
fn values_that_meet_are_steps_too() {
    let spelled = (0..400).map(|zeros| Constraint::value("shard", "0".repeat(zeros) + "5"));
    let range = || "shard in 7..8".parse().unwrap();
    let (overlaps, complete, steps) = lint(spelled.chain([range()]));
    assert!(complete && overlaps == 0);
    assert!(steps > 400 * 400, "{steps} steps");
}
