use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::pairs::for_each_pair;
use super::{LintOptions, LintReport, all_equal, insert_value};
use crate::overlap::{Scope, Subject, satisfy};
use crate::{Constraint, Overlap};

pub(crate) fn lint_final<'a, N: Ord>(
    variants: impl Iterator<Item = (&'a N, &'a Constraint)>,
    options: &LintOptions<'_>,
) -> LintReport<'a, N> {
    let variants: Vec<Variant<'a, N>> = variants.map(|(name, constraint)| Variant::new(name, constraint)).collect();
    let mut budget = Budget { left: LintReport::<N>::STEPS };
    let mut report = LintReport::new();
    report.same_keys = all_equal(variants.iter().map(|variant| &variant.keys));
    find_overlaps(&variants, &mut budget, &mut report);
    for (key, values) in options.values {
        for value in *values {
            match covers(&variants, key, value, &mut budget) {
                Some(true) => {}
                Some(false) => insert_value(&mut report.uncovered, key, value),
                None => insert_value(&mut report.uncovered_undecided, key, value),
            }
        }
    }
    if let Some(sent) = options.sent {
        find_unsent(&variants, &sent.iter().copied().collect(), &mut budget, &mut report);
    }
    report.sort();
    report.steps = LintReport::<N>::STEPS - budget.left;
    report
}

struct Variant<'a, N> {
    name: &'a N,
    subject: Subject<'a>,
    keys: BTreeSet<&'a str>,
}

/// What is left of the steps for the whole lint, of which one question gets at most [`Overlap::STEPS`].
struct Budget {
    left: usize,
}

impl Budget {
    fn satisfy<'a, N>(&mut self, variants: &[&Variant<'a, N>], scope: Scope<'a>) -> Overlap {
        let granted = self.left.min(Overlap::STEPS);
        if granted == 0 {
            return Overlap::Unknown;
        }
        let mut steps = granted;
        let subjects: Vec<&Subject<'a>> = variants.iter().map(|variant| &variant.subject).collect();
        let overlap = satisfy(&subjects, scope, &mut steps);
        self.left -= granted - steps;
        overlap
    }
}

impl<'a, N> Variant<'a, N> {
    fn new(name: &'a N, constraint: &'a Constraint) -> Self {
        let subject = Subject::new(constraint);
        Self { name, keys: subject.keys(), subject }
    }
}

fn find_overlaps<'a, N>(variants: &[Variant<'a, N>], budget: &mut Budget, report: &mut LintReport<'a, N>) {
    let admitted: Vec<_> = variants.iter().map(|variant| variant.subject.admitted()).collect();
    let mut left = budget.left;
    let mut visit = |i: usize, j: usize, left: &mut usize| {
        let (Some(a), Some(b)) = (variants.get(i), variants.get(j)) else { return ControlFlow::Continue(()) };
        let mut budget = Budget { left: *left };
        match budget.satisfy(&[a, b], Scope::All) {
            Overlap::Disjoint => {}
            Overlap::Overlapping(_) => report.overlaps.push((a.name, b.name)),
            Overlap::Unknown => report.undecided.push((a.name, b.name)),
        }
        *left = budget.left;
        let full = report.overlaps.len() + report.undecided.len() >= LintReport::<N>::PAIRS;
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    report.complete = for_each_pair(&admitted, &mut left, &mut visit).is_continue();
    budget.left = left;
}

/// Whether some variant can match parameters with this value, whatever their other keys.
fn covers<'a, N>(variants: &[Variant<'a, N>], key: &'a str, value: &'a str, budget: &mut Budget) -> Option<bool> {
    let mut covered = Some(false);
    for variant in variants {
        match budget.satisfy(&[variant], Scope::With { key, value }) {
            Overlap::Overlapping(_) => return Some(true),
            Overlap::Unknown => covered = None,
            Overlap::Disjoint => {}
        }
    }
    covered
}

/// Several variants that ask for a key nobody sends: nobody gets any of them.
fn find_unsent<'a, N>(
    variants: &[Variant<'a, N>],
    sent: &BTreeSet<&str>,
    budget: &mut Budget,
    report: &mut LintReport<'a, N>,
) {
    for variant in variants {
        for key in variant.keys.iter().filter(|key| !sent.contains(**key)) {
            let without = budget.satisfy(&[variant], Scope::Without { key });
            if without == Overlap::Disjoint && budget.satisfy(&[variant], Scope::All) != Overlap::Disjoint {
                report.unsent.entry((*key).into()).or_default().push(variant.name);
            }
        }
    }
    report.unsent.retain(|_, names| names.len() > 1);
}
