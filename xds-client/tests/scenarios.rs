//! Each scenario that a client is held to has a test that is named for its number: `sNNN_…`, `sNNN_and_sNNN_…` or `sNNN_to_sNNN_…`.
//!
//! The numbers are those of grpc-go's tests of its client: watches (1 to 40), answers (41 to 45), streams (46 to 52), the pace of
//! watches (53 to 56), authorities (57 to 65), fallback (66 to 70), CSDS (71 to 76), metrics (77 to 84), responses of each kind for
//! each of four types (85 to 108), bootstraps and names (109 to 118) and what clients share (119 to 122).
//!
//! And what another client was seen to do wrong, in ten points, has tests that are named alike: `dNN_…`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

const SCENARIOS: Numbered = Numbered { letter: 's', digits: 3, all: 1..=122 };
const DEFECTS: Numbered = Numbered { letter: 'd', digits: 2, all: 1..=10 };

/// How a kind of tests is named.
struct Numbered {
    letter: char,
    digits: usize,
    all: RangeInclusive<usize>,
}

/// The numbers that the tests of a source are named for: of functions that are tests, and of no others.
fn numbers(kind: &Numbered, source: &str) -> BTreeSet<usize> {
    let mut numbers = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line == "#[test]" || line == "#[tokio::test]";
            continue;
        }
        if let Some(name) = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ").filter(|_| is_test) {
            numbers.extend(of_name(kind, name.split('(').next().unwrap_or_default()));
        }
        is_test = false;
    }
    numbers
}

fn of_name(kind: &Numbered, name: &str) -> Vec<usize> {
    let number = |word: Option<&str>| {
        let digits = word?.strip_prefix(kind.letter)?;
        (digits.len() == kind.digits).then(|| digits.parse::<usize>().ok()).flatten()
    };
    let mut words = name.split('_');
    let Some(first) = number(words.next()) else { return Vec::new() };
    let mut numbers = vec![first];
    while let (Some(link), next) = (words.next(), number(words.next())) {
        match (link, next, numbers.last().copied()) {
            ("and", Some(next), _) => numbers.push(next),
            ("to", Some(next), Some(last)) => numbers.extend(last + 1..=next),
            _ => break,
        }
    }
    numbers
}

fn of_sources(kind: &Numbered, directory: &Path, numbers_of_all: &mut BTreeSet<usize>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            of_sources(kind, &path, numbers_of_all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            numbers_of_all.extend(numbers(kind, &fs::read_to_string(path).unwrap()));
        }
    }
}

#[test]
fn every_scenario_has_a_test_of_its_number() {
    each_has_a_test(&SCENARIOS);
}

#[test]
fn every_defect_of_another_client_has_a_test_of_its_number() {
    each_has_a_test(&DEFECTS);
}

fn each_has_a_test(kind: &Numbered) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tested = BTreeSet::new();
    ["src", "tests"].iter().for_each(|directory| of_sources(kind, &root.join(directory), &mut tested));
    let all: BTreeSet<_> = kind.all.clone().collect();
    let without: Vec<_> = all.difference(&tested).collect();
    assert!(without.is_empty(), "no test is named for {without:?}");
    let unknown: Vec<_> = tested.difference(&all).collect();
    assert!(unknown.is_empty(), "tests are named for {unknown:?}, which are none");
}

#[test]
fn only_what_is_a_test_counts_and_only_for_the_numbers_of_its_name() {
    let of = |name: &str| numbers(&SCENARIOS, &format!("#[test]\nfn {name}() {{\n")).into_iter().collect::<Vec<_>>();
    assert_eq!(of("s007_a"), [7]);
    assert_eq!(of("s007_and_s009_a_to_s012"), [7, 9]);
    assert_eq!(of("s007_to_s010_a"), [7, 8, 9, 10]);
    assert_eq!(of("s007_to_a_s010"), [7]);
    assert_eq!(of("r007_to_s010_a"), [0; 0]);
    assert_eq!(of("s7_a"), [0; 0]);
    assert_eq!(numbers(&DEFECTS, "#[test]\nfn d07_and_d09_a() {").into_iter().collect::<Vec<_>>(), [7, 9]);
    let numbers = |source: &str| numbers(&SCENARIOS, source);
    assert!(numbers("fn s007_a() {").is_empty(), "it is not run");
    assert!(numbers("#[test]\nfn a() {\nfn s007_a() {").is_empty(), "it is in one that is");
    assert!(numbers("// #[test]\n// fn s007_a() {").is_empty());
    assert_eq!(numbers("#[tokio::test]\n#[cfg(unix)]\nasync fn s007_a() {").into_iter().collect::<Vec<_>>(), [7]);
}
