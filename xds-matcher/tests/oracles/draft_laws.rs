use xds_matcher::draft::{
    Constraint as Leaf, DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range, Subscription,
};
use xds_matcher::{DraftVariants, ErrorKind, LintOptions};

use super::naive::{Choices, KEYS, Parameters, all_parameters, integer, to_dynamic};

/// A draft message is refused or means what its text says, key by key.
pub(crate) fn draft_message_law(input: &[u8]) {
    let mut choices = Choices(input);
    let message = message(&mut choices);
    let subscription = match message.lower() {
        Ok(subscription) => subscription,
        Err(error) => {
            let kinds = [ErrorKind::MissingConstraintType, ErrorKind::EmptyRange, ErrorKind::BadRange];
            return assert!(kinds.contains(&error.kind()), "{error}");
        }
    };
    for (parameters, dynamic) in all_parameters() {
        let expected = holds(&message, parameters);
        assert_eq!(subscription.matches(dynamic), expected, "{message:?} of {dynamic}");
        assert_eq!(subscription.constraint().matches(dynamic), expected, "{message:?} of {dynamic}");
    }
    // What was said in the draft form can be said in it again.
    let again = Subscription::of(subscription.constraint()).unwrap_or_else(|e| panic!("{message:?}: {e}"));
    for (parameters, dynamic) in all_parameters().step_by(5) {
        assert_eq!(again.matches(dynamic), holds(&message, parameters), "{message:?}");
    }
}

/// Selection, preference and the question to upstream are what trying every variant finds.
pub(crate) fn draft_selection_law(input: &[u8]) {
    let mut choices = Choices(input);
    let count = choices.below(7);
    draft_selection_of(&mut choices, count, message);
}

/// The same of as many variants as an index goes about differently.
pub(crate) fn many_draft_variants_law(input: &[u8]) {
    let mut choices = Choices(input);
    let count = choices.below(50);
    let message = if choices.below(2) == 0 { message } else { ranges_of_all_keys };
    draft_selection_of(&mut choices, count, message);
}

fn draft_selection_of(
    choices: &mut Choices<'_>,
    count: usize,
    message: fn(&mut Choices<'_>) -> DynamicParameterConstraints,
) {
    let parameters: Vec<Parameters> = (0..count).map(|_| choices.parameters()).collect();
    let variants = DraftVariants::new(parameters.iter().map(to_dynamic).enumerate());
    let sent = choices.parameters();
    let exact: Vec<usize> = (0..parameters.len())
        .filter(|&i| parameters[i].iter().all(|(key, value)| sent.get(key).is_none_or(|other| other == value)))
        .collect();
    let mut found: Vec<usize> = variants.matches_final(&to_dynamic(&sent)).into_iter().copied().collect();
    found.sort_unstable();
    assert_eq!(found, exact);
    assert_eq!(variants.select_final(&to_dynamic(&sent)).is_ambiguous(), exact.len() > 1);

    let message = message(choices);
    let Ok(subscription) = message.lower() else { return };
    let matching: Vec<usize> = (0..parameters.len()).filter(|&i| holds(&message, &parameters[i])).collect();
    let mut found: Vec<usize> = variants.matches(&subscription).into_iter().copied().collect();
    found.sort_unstable();
    assert_eq!(found, matching);

    let ranged: Vec<&str> =
        KEYS.into_iter().filter(|key| message.key_constraints.get(*key).is_some_and(is_ranged)).collect();
    let rank =
        |i: &usize| ranged.iter().map(|key| parameters[*i].get(*key).and_then(|v| integer(v))).collect::<Vec<_>>();
    let best = matching.iter().map(rank).max();
    let tied = matching.iter().filter(|i| Some(rank(i)) == best);
    let selected = tied.clone().min_by_key(|i| (&parameters[**i], **i));
    let selection = variants.select(&subscription);
    assert_eq!(selection.variant(), selected);
    assert_eq!(selection.is_ambiguous(), tied.count() > 1);

    let must_ask = selected.is_none_or(|selected| {
        ranged.iter().any(|key| {
            let values = all_parameters().filter_map(|(p, _)| p.get(*key));
            let largest = values
                .filter(|value| rule_holds(&message.key_constraints[*key], value))
                .filter_map(|v| integer(v))
                .max();
            largest.is_some() && parameters[*selected].get(*key).and_then(|v| integer(v)) < largest
        })
    });
    // The largest integer that satisfies a rule may lie between those that are tried here.
    let near_top = |range: &Range| range.max_value.is_none() || range.min_value > Some(12);
    if !ranges(&message).any(near_top) && !message.key_constraints.values().any(|rule| rule.invert) {
        assert_eq!(variants.must_ask_upstream(&subscription), must_ask, "{message:?}");
    }
}

/// Draft lint is about pairs of parameters.
pub(crate) fn draft_lint_law(input: &[u8]) {
    let mut choices = Choices(input);
    let parameters: Vec<Parameters> = (0..choices.below(6)).map(|_| choices.parameters()).collect();
    let variants = DraftVariants::new(parameters.iter().map(to_dynamic).enumerate());
    let values = [("a", ["5", "x", "new"].as_slice())];
    let report = variants.lint(&LintOptions::new().values(&values));
    let agree =
        |a: &Parameters, b: &Parameters| a.iter().all(|(key, value)| b.get(key).is_none_or(|other| other == value));
    let pairs = (0..parameters.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let mut overlaps: Vec<_> = pairs.filter(|&(i, j)| agree(&parameters[i], &parameters[j])).collect();
    overlaps.sort_unstable();
    assert_eq!(report.overlaps.iter().map(|(a, b)| (**a, **b)).collect::<Vec<_>>(), overlaps);
    let uncovered =
        ["5", "x", "new"].into_iter().filter(|value| parameters.iter().all(|p| p.get("a").is_some_and(|a| a != value)));
    assert_eq!(report.uncovered.get("a").cloned().unwrap_or_default(), uncovered.collect::<Vec<_>>());
    let key_sets = || parameters.iter().map(|p| p.keys().collect::<Vec<_>>());
    assert_eq!(report.same_keys, key_sets().all(|keys| Some(keys) == key_sets().next()));
}

fn message(choices: &mut Choices<'_>) -> DynamicParameterConstraints {
    let rule = |choices: &mut Choices<'_>| KeyConstraints {
        constraints: (0..choices.below(3)).map(|_| Leaf { kind: leaf(choices) }).collect(),
        invert: choices.below(3) == 1,
    };
    let key_constraints = (0..choices.below(3)).map(|_| (choices.key(), rule(choices))).collect();
    DynamicParameterConstraints { key_constraints }
}

/// Ranges decide between variants key after key, and an inverted one decides as well.
fn ranges_of_all_keys(choices: &mut Choices<'_>) -> DynamicParameterConstraints {
    let rule = |choices: &mut Choices<'_>| KeyConstraints {
        constraints: vec![Leaf { kind: Some(integers(choices)) }],
        invert: choices.below(2) == 1,
    };
    DynamicParameterConstraints { key_constraints: KEYS.map(|key| (key.into(), rule(choices))).into() }
}

fn leaf(choices: &mut Choices<'_>) -> Option<Kind> {
    match choices.below(8) {
        0..4 => Some(Kind::Value(choices.value())),
        4..7 => Some(integers(choices)),
        _ => [None, Some(Kind::IntegerRangeList(IntegerRangeList { range: vec![Range::default()] }))][choices.below(2)]
            .clone(),
    }
}

fn integers(choices: &mut Choices<'_>) -> Kind {
    let bounds = choices.ranges().into_iter();
    let range =
        bounds.map(|(min, max)| Range { min_value: Some(min), max_value: Some(max).filter(|max| *max < u64::MAX) });
    Kind::IntegerRangeList(IntegerRangeList { range: range.collect() })
}

/// The rule of the draft, read literally.
fn holds(message: &DynamicParameterConstraints, variant: &Parameters) -> bool {
    message.key_constraints.iter().all(|(key, rule)| variant.get(key).is_none_or(|value| rule_holds(rule, value)))
}

fn rule_holds(rule: &KeyConstraints, value: &str) -> bool {
    let leaf_holds = |leaf: &Leaf| match leaf.kind.as_ref().expect("valid") {
        Kind::Value(wanted) => wanted == value,
        Kind::IntegerRangeList(list) => integer(value).is_some_and(|n| {
            list.range
                .iter()
                .any(|range| range.min_value.is_none_or(|min| min <= n) && range.max_value.is_none_or(|max| n <= max))
        }),
    };
    rule.constraints.is_empty() || rule.constraints.iter().all(leaf_holds) != rule.invert
}

fn is_ranged(rule: &KeyConstraints) -> bool {
    rule.constraints.iter().any(|leaf| matches!(leaf.kind, Some(Kind::IntegerRangeList(_))))
}

fn ranges(message: &DynamicParameterConstraints) -> impl Iterator<Item = &Range> {
    message.key_constraints.values().flat_map(|rule| &rule.constraints).flat_map(|leaf| match &leaf.kind {
        Some(Kind::IntegerRangeList(list)) => list.range.as_slice(),
        _ => &[],
    })
}
