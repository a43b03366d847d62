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
            assert!(is_test(&text, test) || !machines.is_dir(), "{number}: there is no test {test}");
        }
    }
    assert_eq!(numbers, (1..=85).collect::<Vec<_>>());
}

/// Whether a function of this name is a test, or a law.
fn is_test(text: &str, name: &str) -> bool {
    let attributes = |before: &str| {
        let of_it = before.rsplit("}\n").next().unwrap_or_default();
        of_it.contains("#[test]") || of_it.contains("#[tokio::test")
    };
    text.match_indices(&format!("fn {name}(")).any(|(at, _)| attributes(&text[..at]))
}

#[test]
fn what_is_no_test_is_not_taken_for_one() {
    let text = "#[test]\nfn a() {\n}\n\nfn b() {\n}\n\n#[tokio::test(start_paused = true)]\nasync fn c() {\n}\n";
    assert_eq!(["a", "b", "c", "d"].map(|name| is_test(text, name)), [true, false, true, false]);
}
