use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::pairs::for_each_pair;
use super::{LintOptions, LintReport, all_equal, insert_value};
use crate::DynamicParameters;
use crate::admitted::Admitted;

/// All questions about the draft form are about pairs of parameters: none is hard, there are only many of them.
pub(crate) fn lint_draft<'a, N: Ord>(
    variants: &[(&'a N, &'a DynamicParameters)],
    options: &LintOptions<'_>,
) -> LintReport<'a, N> {
    let mut report = LintReport::new();
    let keys: Vec<BTreeSet<&str>> = variants.iter().map(|(_, parameters)| keys(parameters).collect()).collect();
    report.same_keys = all_equal(keys.iter());
    find_overlaps(variants, &mut report);
    for (key, values) in options.values {
        for value in *values {
            // A variant without the key matches whatever a subscriber asks of it.
            if variants.iter().all(|(_, parameters)| parameters.get(key).is_some_and(|v| v != *value)) {
                insert_value(&mut report.uncovered, key, value);
            }
        }
    }
    if let Some(sent) = options.sent {
        find_unsent(variants, &sent.iter().copied().collect(), &mut report);
    }
    report.sort();
    report
}

/// Two variants overlap if a client that sends one exact value for every key in use matches both: they agree where both have a key.
fn find_overlaps<'a, N>(variants: &[(&'a N, &'a DynamicParameters)], report: &mut LintReport<'a, N>) {
    let admitted: Vec<Admitted<'a>> =
        variants.iter().map(|(_, parameters)| Admitted::exactly(parameters.iter())).collect();
    let mut steps = LintReport::<N>::STEPS;
    let mut visit = |i: usize, j: usize, _: &mut usize| {
        if let (Some((a, _)), Some((b, _))) = (variants.get(i), variants.get(j)) {
            report.overlaps.push((*a, *b));
        }
        if report.overlaps.len() >= LintReport::<N>::PAIRS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    report.complete = for_each_pair(&admitted.iter().collect::<Vec<_>>(), &mut steps, &mut visit).is_continue();
    report.steps = LintReport::<N>::STEPS - steps;
}

/// Variants, each with its value of one key.
type Valued<'a, N> = Vec<(&'a N, &'a str)>;

/// Variants with the same parameters but for keys nobody sends: a subscriber gets one of them at random.
fn find_unsent<'a, N>(
    variants: &[(&'a N, &'a DynamicParameters)],
    sent: &BTreeSet<&str>,
    report: &mut LintReport<'a, N>,
) {
    // Variants with the same number have the same parameters but for keys nobody sends.
    let mut alike: BTreeMap<Vec<(&str, &str)>, usize> = BTreeMap::new();
    let mut with_key: BTreeMap<&str, BTreeMap<usize, Valued<'a, N>>> = BTreeMap::new();
    for (name, parameters) in variants {
        let (rest, unsent): (Vec<_>, Vec<_>) = parameters.iter().partition(|(key, _)| sent.contains(key));
        let next = alike.len();
        let number = *alike.entry(rest).or_insert(next);
        for (key, value) in unsent {
            with_key.entry(key).or_default().entry(number).or_default().push((name, value));
        }
    }
    let differing =
        |group: &Valued<'_, N>| group.iter().any(|(_, value)| group.first().is_some_and(|(_, first)| first != value));
    for (key, groups) in with_key {
        let names: Vec<_> = groups.into_values().filter(differing).flatten().map(|(name, _)| name).collect();
        if !names.is_empty() {
            report.unsent.insert(key.into(), names);
        }
    }
}

fn keys(parameters: &DynamicParameters) -> impl Iterator<Item = &str> {
    parameters.iter().map(|(key, _)| key)
}
