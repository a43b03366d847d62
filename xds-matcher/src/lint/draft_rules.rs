use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::{LintOptions, LintReport, all_equal, insert_value};
use crate::DynamicParameters;

/// All questions about the draft form are about pairs of parameters: none is hard, there are only many of them.
pub(crate) fn lint_draft<'a, N: Ord>(
    variants: &[(&'a N, &'a DynamicParameters)],
    options: &LintOptions<'_>,
) -> LintReport<'a, N> {
    let mut report = LintReport::new();
    report.same_keys = all_equal(variants.iter().map(|(_, parameters)| keys(parameters).map(String::from).collect()));
    find_overlaps(variants, &mut report);
    for (key, values) in options.values {
        for value in *values {
            // A variant without the key matches whatever a subscriber asks of it.
            if variants.iter().all(|(_, parameters)| parameters.value(key).is_some_and(|v| v != *value)) {
                insert_value(&mut report.uncovered, key, value);
            }
        }
    }
    if let Some(sent) = options.sent {
        find_unsent(variants, sent, &mut report);
    }
    report.sort();
    report
}

/// Two variants overlap if a client that sends one exact value for every key in use matches both: they agree where both have a key.
fn find_overlaps<'a, N>(variants: &[(&'a N, &'a DynamicParameters)], report: &mut LintReport<'a, N>) {
    let mut steps = LintReport::<N>::STEPS;
    for (i, (a_name, a)) in variants.iter().enumerate() {
        for (b_name, b) in variants.iter().skip(i + 1) {
            steps = steps.saturating_sub(1 + a.len());
            if steps == 0 || report.overlaps.len() >= LintReport::<N>::PAIRS {
                report.complete = false;
                return;
            }
            if a.iter().all(|(key, value)| b.value(key).is_none_or(|other| other == value)) {
                report.overlaps.push((*a_name, *b_name));
            }
        }
    }
}

/// Variants with the same parameters but for keys nobody sends: a subscriber gets one of them at random.
fn find_unsent<'a, N>(variants: &[(&'a N, &'a DynamicParameters)], sent: &[&str], report: &mut LintReport<'a, N>) {
    let unsent: BTreeSet<&str> = variants.iter().flat_map(|(_, p)| keys(p)).filter(|key| !sent.contains(key)).collect();
    for key in unsent {
        let mut alike: BTreeMap<Vec<_>, Vec<(&'a N, &str)>> = BTreeMap::new();
        for (name, parameters) in variants {
            if let Some(value) = parameters.value(key) {
                let rest = parameters.iter().filter(|(key, _)| sent.contains(key)).collect();
                alike.entry(rest).or_default().push((name, value));
            }
        }
        let differing = |group: &Vec<(&N, &str)>| {
            group.iter().any(|(_, value)| group.first().is_some_and(|(_, first)| first != value))
        };
        let names: Vec<_> = alike.into_values().filter(differing).flatten().map(|(name, _)| name).collect();
        if !names.is_empty() {
            report.unsent.insert(key.into(), names);
        }
    }
}

fn keys(parameters: &DynamicParameters) -> impl Iterator<Item = &str> {
    parameters.iter().map(|(key, _)| key)
}
