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
    for (what, count, (overlaps, complete, steps)) in [
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
