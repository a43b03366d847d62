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
fn ten_thousand_exclusive_variants_are_no_fifty_million_pairs() {
    let values = |pairs: &[(&str, usize)]| {
        Constraint::all(pairs.iter().map(|(key, value)| Constraint::value(*key, value.to_string()))).unwrap()
    };
    let by_one_key = (0..10_000).map(|i| values(&[("env", 1), ("shard", i)]));
    let grid = (0..10_000).map(|i| values(&[("env", i % 2), ("version", i / 2 % 5), ("shard", i / 10)]));
    let flags = (0..8192).map(|i| {
        let names: Vec<_> = (0..13).map(|bit| format!("flag{bit}")).collect();
        values(&names.iter().enumerate().map(|(bit, name)| (name.as_str(), i >> bit & 1)).collect::<Vec<_>>())
    });
    let ranges = (0..10_000).map(|i| format!("env=prod and shard in {}..{}", 10 * i, 10 * i + 9).parse().unwrap());
    let with_default = (0..10_000).map(|i| match i {
        0 => "not exists(shard)".parse().unwrap(),
        i => Constraint::value("shard", i.to_string()),
    });
    for (what, (overlaps, complete, steps)) in [
        ("by one key", lint(by_one_key)),
        ("grid", lint(grid)),
        ("flags", lint(flags)),
        ("ranges", lint(ranges)),
        ("with a default", lint(with_default)),
    ] {
        assert!(complete && overlaps == 0, "{what}: {overlaps} overlaps");
        assert!(steps < 400 * 10_000, "{what}: {steps} steps");
    }
}

#[test]
fn a_list_of_overlaps_that_is_cut_says_so() {
    let (overlaps, complete, steps) = lint((0..1000).map(|_| Constraint::unconstrained()));
    assert_eq!((overlaps, complete), (LintReport::<usize>::PAIRS, false));
    assert!(steps < 10 * LintReport::<usize>::PAIRS);
}
