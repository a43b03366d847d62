use std::collections::BTreeSet;

use xds_matcher::final_form::DynamicParameterConstraints;
use xds_matcher::{Constraint, DynamicParameters, ErrorKind, FinalVariants, LintOptions, Overlap, draft};

use super::naive::{Choices, KEYS, Tree, all_parameters, to_dynamic};

/// Text reads back to the same constraint.
pub(crate) fn text_law(constraint: &Constraint) {
    let text = constraint.to_string();
    assert_eq!(text.parse().as_ref(), Ok(constraint), "{text}");
}

/// The normal form means the same and is its own normal form.
pub(crate) fn normal_form_law(constraint: &Constraint) {
    let Ok(normal) = constraint.normal_form() else { return };
    assert_eq!(normal.normal_form().as_ref(), Ok(&normal), "{constraint}");
    text_law(&normal);
    for parameters in probes(constraint) {
        assert_eq!(normal.matches(&parameters), constraint.matches(&parameters), "{constraint} of {parameters}");
    }
}

/// Messages of both forms, where they exist, mean the same.
pub(crate) fn message_law(constraint: &Constraint) {
    match DynamicParameterConstraints::raise(constraint) {
        Ok(message) => assert_eq!(message.lower().as_ref(), Ok(constraint)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::RangeNotRepresentable),
    }
    let Ok(message) = draft::DynamicParameterConstraints::raise(constraint) else { return };
    let subscription = message.lower().expect("what is raised is valid");
    for parameters in probes(constraint) {
        assert_eq!(subscription.matches(&parameters), constraint.matches(&parameters), "{constraint} of {parameters}");
    }
    if let Ok(exact) = subscription.to_parameters() {
        assert_eq!(exact.to_constraint().unwrap().to_draft_parameters(), Ok(exact));
    }
}

/// Constraint and naive evaluator agree on all parameters, and so do all forms of the constraint.
pub(crate) fn evaluation_law(input: &[u8]) {
    let tree = Choices(input).tree(4, true);
    let constraint = tree.to_constraint();
    text_law(&constraint);
    message_law(&constraint);
    normal_form_law(&constraint);
    let normal = constraint.normal_form().unwrap();
    for (parameters, dynamic) in all_parameters() {
        assert_eq!(constraint.matches(dynamic), tree.holds(parameters), "{constraint} of {dynamic}");
        assert_eq!(normal.matches(dynamic), tree.holds(parameters), "{normal} of {dynamic}");
    }
}

/// Overlap is what trying all parameters finds.
pub(crate) fn overlap_law(input: &[u8]) {
    let mut choices = Choices(input);
    let (a, b) = (choices.tree(3, true), choices.tree(3, true));
    let (left, right) = (a.to_constraint(), b.to_constraint());
    let both = all_parameters().find(|(parameters, _)| a.holds(parameters) && b.holds(parameters));
    match left.overlap(&right) {
        Overlap::Overlapping(found) => {
            assert!(left.matches(&found) && right.matches(&found), "{found}: {left} | {right}");
        }
        Overlap::Disjoint => assert_eq!(both, None, "{left} | {right}"),
        Overlap::Unknown => panic!("small constraints are decided: {left} | {right}"),
    }
    assert!(both.is_none() || left.overlap(&right) != Overlap::Disjoint);
}

/// Selection finds what trying every variant finds, in whatever order the variants come.
pub(crate) fn final_selection_law(input: &[u8]) {
    let mut choices = Choices(input);
    let trees: Vec<Tree> = (0..choices.below(6)).map(|_| choices.tree(2, true)).collect();
    let named: Vec<(usize, Constraint)> = trees.iter().map(Tree::to_constraint).enumerate().collect();
    let (variants, reversed) = (FinalVariants::new(named.clone()), FinalVariants::new(named.into_iter().rev()));
    for (parameters, dynamic) in all_parameters().step_by(7) {
        let expected: BTreeSet<usize> = (0..trees.len()).filter(|&i| trees[i].holds(parameters)).collect();
        let matches: Vec<usize> = variants.matches(dynamic).into_iter().copied().collect();
        assert_eq!(matches.iter().copied().collect::<BTreeSet<_>>(), expected);
        assert_eq!(matches.len(), expected.len(), "no variant is found twice");
        let selection = variants.select(dynamic);
        assert_eq!(selection.variant(), matches.first());
        assert_eq!(selection.is_ambiguous(), expected.len() > 1);
        assert_eq!(reversed.select(dynamic), selection);
    }
}

/// The same of as many variants as an index and a lint go about differently, and in the shapes that both are made for.
pub(crate) fn many_variants_law(input: &[u8]) {
    let mut choices = Choices(input);
    let trees: Vec<Tree> = (0..choices.below(40)).map(|_| choices.variant()).collect();
    let variants = FinalVariants::new(trees.iter().map(Tree::to_constraint).enumerate());
    let matching: Vec<BTreeSet<usize>> = all_parameters()
        .map(|(parameters, _)| (0..trees.len()).filter(|&i| trees[i].holds(parameters)).collect())
        .collect();
    let mut overlaps = BTreeSet::new();
    for ((_, dynamic), expected) in all_parameters().zip(&matching) {
        let matches: Vec<usize> = variants.matches(dynamic).into_iter().copied().collect();
        assert_eq!(matches.len(), expected.len(), "no variant is found twice");
        let selection = variants.select(dynamic);
        assert_eq!((selection.variant(), selection.is_ambiguous()), (matches.first(), expected.len() > 1));
        assert_eq!(matches.into_iter().collect::<BTreeSet<_>>(), *expected);
        overlaps.extend(expected.iter().flat_map(|a| expected.range(a + 1..).map(move |b| (*a, *b))));
    }
    let report = variants.lint(&LintOptions::new());
    assert!(report.is_complete() && report.undecided.is_empty());
    assert!(report.overlaps.iter().map(|(a, b)| (**a, **b)).eq(overlaps));
}

/// Lint finds the overlaps and gaps that trying all parameters finds.
pub(crate) fn final_lint_law(input: &[u8]) {
    let mut choices = Choices(input);
    let trees: Vec<Tree> = (0..choices.below(4)).map(|_| choices.tree(2, true)).collect();
    let variants = FinalVariants::new(trees.iter().map(Tree::to_constraint).enumerate());
    let values = [("a", ["5", "x", "new"].as_slice())];
    let report = variants.lint(&LintOptions::new().values(&values).sent(&["a"]));
    assert!(report.is_complete() && report.undecided.is_empty() && report.uncovered_undecided.is_empty());
    let some =
        |test: &dyn Fn(&super::naive::Parameters) -> bool| all_parameters().any(|(parameters, _)| test(parameters));
    let pairs = (0..trees.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let mut overlaps: Vec<_> = pairs.filter(|&(i, j)| some(&|p| trees[i].holds(p) && trees[j].holds(p))).collect();
    overlaps.sort_unstable();
    assert_eq!(report.overlaps.iter().map(|(a, b)| (**a, **b)).collect::<Vec<_>>(), overlaps);
    // "else" stands for every value that is mentioned nowhere.
    let uncovered = [("5", "5"), ("x", "x"), ("new", "else")].into_iter().filter(|(_, probe)| {
        !some(&|p| p.get("a").is_some_and(|a| a == probe) && trees.iter().any(|tree| tree.holds(p)))
    });
    let reported = report.uncovered.get("a").cloned().unwrap_or_default();
    assert_eq!(reported, uncovered.map(|(value, _)| value).collect::<Vec<_>>());
    let needs_b = |tree: &&Tree| some(&|p| tree.holds(p)) && !some(&|p| tree.holds(p) && !p.contains_key("b"));
    let needing = trees.iter().filter(needs_b).count();
    assert_eq!(report.unsent.get("b").map_or(0, Vec::len), if needing > 1 { needing } else { 0 });
}

/// Parameters at which a constraint may change its answer: each key absent, and with each value of [`KEYS`]' small domain.
fn probes(constraint: &Constraint) -> impl Iterator<Item = DynamicParameters> {
    let keys: Vec<String> =
        constraint.keys().map(String::from).filter(|key| !KEYS.contains(&key.as_str())).take(4).collect();
    all_parameters().step_by(11).map(move |(parameters, _)| {
        let values = parameters.values().cloned();
        to_dynamic(&parameters.clone().into_iter().chain(keys.iter().cloned().zip(values)).collect())
    })
}
