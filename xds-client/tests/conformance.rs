//! `CONFORMANCE.md` names tests that are there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// All sources of the workspace, as far as they are here.
fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_rule_has_a_row_and_every_test_that_it_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let machines = root.join("../xds-transport/src");
    let mut text = String::new();
    ["src", "tests"].iter().for_each(|directory| sources(&root.join(directory), &mut text));
    if machines.is_dir() {
        sources(&machines, &mut text);
    }
    let table = fs::read_to_string(root.join("CONFORMANCE.md")).unwrap();
    let mut numbers = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, tests, status] = cells.as_slice() else { panic!("{line}") };
        let Ok(number) = number.parse::<usize>() else { continue };
        numbers.push(number);
        assert!(["held", "partly", "not yet", "not followed"].iter().any(|of| status.starts_with(of)), "{line}");
        for test in tests.split_whitespace().map(|test| test.trim_matches('`')) {
            // Those of machines are not here where only this crate is.
            assert!(text.contains(&format!("fn {test}(")) || !machines.is_dir(), "{number}: there is no {test}");
        }
    }
    assert_eq!(numbers, (1..=85).collect::<Vec<_>>());
}

/// How many scenarios there are.
const SCENARIOS: usize = 122;

/// The numbers in the name of a test: `s001_`, `s003_and_s004_`, `s005_to_s008_`.
fn numbers_of(name: &str) -> Vec<usize> {
    let number = |word: &str| word.strip_prefix('s').filter(|digits| digits.len() == 3)?.parse::<usize>().ok();
    let words: Vec<_> = name.split('_').collect();
    let Some(first) = words.first().and_then(|word| number(word)) else { return Vec::new() };
    match (words.get(1), words.get(2).and_then(|word| number(word))) {
        (Some(&"to"), Some(last)) => (first..=last).collect(),
        (Some(&"and"), Some(other)) => vec![first, other],
        _ => vec![first],
    }
}

#[test]
fn every_scenario_has_a_test_that_is_named_for_it() {
    assert_eq!(numbers_of("s005_to_s008_two"), [5, 6, 7, 8]);
    assert_eq!(
        (numbers_of("s003_and_s004_x"), numbers_of("s009_x"), numbers_of("says")),
        (vec![3, 4], vec![9], vec![])
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    ["src", "tests"].iter().for_each(|directory| sources(&root.join(directory), &mut text));
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut named = std::collections::BTreeSet::new();
    for (line, before) in lines.iter().skip(1).zip(&lines) {
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        // What is no test holds nothing.
        if let Some(name) = name.filter(|_| before.starts_with("#[test]") || before.starts_with("#[tokio::test")) {
            named.extend(numbers_of(name.split('(').next().unwrap_or_default()));
        }
    }
    let missing: Vec<_> = (1..=SCENARIOS).filter(|number| !named.contains(number)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
