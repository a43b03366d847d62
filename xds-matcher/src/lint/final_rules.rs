use alloc::string::String;
use alloc::vec::Vec;

use super::{LintOptions, LintReport, all_equal, insert_value};
use crate::Overlap;
use crate::admitted::Admitted;
use crate::constraint::Node;
use crate::overlap::{Scope, satisfy};

pub(crate) fn lint_final<'a, N: Ord>(variants: &[(&'a N, &'a Node)], options: &LintOptions<'_>) -> LintReport<'a, N> {
    let variants: Vec<Variant<'a, N>> = variants.iter().map(|&(name, node)| Variant::new(name, node)).collect();
    let mut budget = Budget { left: LintReport::<N>::STEPS };
    let mut report = LintReport::new();
    report.same_keys = all_equal(variants.iter().map(|variant| variant.keys().map(String::from).collect()));
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
        find_unsent(&variants, sent, &mut budget, &mut report);
    }
    report.sort();
    report
}

struct Variant<'a, N> {
    name: &'a N,
    node: &'a Node,
    admitted: Admitted<'a>,
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
        let overlap = match variants {
            [one] => satisfy(&[(one.node, &one.admitted)], scope, &mut steps),
            [one, other] => satisfy(&[(one.node, &one.admitted), (other.node, &other.admitted)], scope, &mut steps),
            _ => Overlap::Unknown,
        };
        self.left -= granted - steps;
        overlap
    }
}

impl<'a, N> Variant<'a, N> {
    fn new(name: &'a N, node: &'a Node) -> Self {
        Self { name, node, admitted: Admitted::by(node) }
    }

    fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a, N> {
        let mut keys = alloc::collections::BTreeSet::new();
        self.node.for_each_leaf(&mut |leaf| keys.extend(leaf.key()));
        keys.into_iter()
    }
}

fn find_overlaps<'a, N>(variants: &[Variant<'a, N>], budget: &mut Budget, report: &mut LintReport<'a, N>) {
    for (i, a) in variants.iter().enumerate() {
        for b in variants.iter().skip(i + 1) {
            match budget.satisfy(&[a, b], Scope::All) {
                Overlap::Disjoint => {}
                Overlap::Overlapping(_) => report.overlaps.push((a.name, b.name)),
                Overlap::Unknown => report.undecided.push((a.name, b.name)),
            }
            if report.overlaps.len() + report.undecided.len() >= LintReport::<N>::PAIRS {
                report.complete = false;
                return;
            }
        }
    }
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
fn find_unsent<'a, N>(variants: &[Variant<'a, N>], sent: &[&str], budget: &mut Budget, report: &mut LintReport<'a, N>) {
    for variant in variants {
        for key in variant.keys().filter(|key| !sent.contains(key)) {
            let without = budget.satisfy(&[variant], Scope::Without { key });
            if without == Overlap::Disjoint && budget.satisfy(&[variant], Scope::All) != Overlap::Disjoint {
                report.unsent.entry(key.into()).or_default().push(variant.name);
            }
        }
    }
    report.unsent.retain(|_, names| names.len() > 1);
}
