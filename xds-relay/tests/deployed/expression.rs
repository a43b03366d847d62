//! As much of Prometheus' expressions as it takes to see which numbers they are of, and which labels they go by.

use std::collections::{BTreeMap, BTreeSet};

/// What whoever scrapes adds to each number.
const OF_SCRAPES: [&str; 2] = ["job", "instance"];

/// The numbers that an expression is of, each with the labels that it is selected by.
pub(crate) fn selected(expression: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut selected = Vec::new();
    for (at, _) in expression.match_indices("xds_relay_") {
        let rest = &expression[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let by = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
        let label = |by: &str| by.split(['=', '!']).next().unwrap_or_default().trim().to_owned();
        selected.push((name.to_owned(), by.split(',').map(label).filter(|label| !label.is_empty()).collect()));
    }
    selected
}

/// The labels that an expression groups or joins by.
pub(crate) fn grouped(expression: &str) -> BTreeSet<String> {
    let mut grouped = BTreeSet::new();
    for word in [" by (", " on ("] {
        for list in expression.split(word).skip(1).filter_map(|rest| rest.split(')').next()) {
            grouped.extend(list.split(',').map(|label| label.trim().to_owned()));
        }
    }
    grouped
}

/// The labels that a text for people has.
pub(crate) fn shown(text: &str) -> BTreeSet<String> {
    let labels = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    labels.map(|label| label.trim().trim_start_matches("$labels.").to_owned()).collect()
}

/// Whether an expression is of what is told, by labels that it has; and a text beside it shows none that it loses. The names that it is of.
pub(crate) fn checked(told: &BTreeMap<String, BTreeSet<String>>, expression: &str, text: &str) -> BTreeSet<String> {
    let selected = selected(expression);
    assert!(!selected.is_empty(), "of nothing: {expression}");
    let mut there: BTreeSet<String> = OF_SCRAPES.map(str::to_owned).into();
    for (name, by) in &selected {
        let labels = told.get(name).unwrap_or_else(|| panic!("no {name}, of {expression}"));
        there.extend(labels.iter().cloned());
        let has = |label: &&String| !labels.contains(*label) && !OF_SCRAPES.contains(&label.as_str());
        assert_eq!(by.iter().find(has), None, "{name} has {labels:?}: {expression}");
    }
    let (grouped, shown) = (grouped(expression), shown(text));
    assert_eq!(grouped.difference(&there).next(), None, "{there:?}: {expression}");
    let kept = if expression.contains(" by (") { &grouped } else { &there };
    assert_eq!(shown.difference(kept).next(), None, "{text:?} beside {expression}");
    selected.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn an_expression_is_read_as_far_as_it_matters() {
    let told = BTreeMap::from([("xds_relay_a_bucket".to_owned(), ["le", "type"].map(str::to_owned).into())]);
    let names =
        checked(&told, r#"f(0.9, sum by (le, type) (rate(xds_relay_a_bucket{job=~"x",type!="y"}[1m])))"#, "{{type}}");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["xds_relay_a_bucket"]);
    for (expression, text) in [
        ("sum by (type) (xds_relay_b)", ""),
        ("sum by (origin) (xds_relay_a_bucket)", ""),
        ("sum by (type) (xds_relay_a_bucket{origin=\"a\"})", ""),
        ("sum by (type) (xds_relay_a_bucket)", "{{ $labels.le }}"),
        ("up == 0", ""),
    ] {
        assert!(std::panic::catch_unwind(|| checked(&told, expression, text)).is_err(), "{expression}");
    }
}
