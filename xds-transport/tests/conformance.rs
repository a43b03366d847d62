//! `CONFORMANCE.md` says what the tests of the workspace say.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const RULES: u32 = 159;
/// Rules that may wait for a socket, a real peer or TP2 on the wire.
const MOST_DEFERRED: usize = 25;

struct Row {
    number: u32,
    rule: String,
    tests: BTreeSet<String>,
    status: String,
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("CONFORMANCE.md")
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(file()).unwrap();
    text.lines().filter_map(row).collect()
}

/// `| 7 | a rule | ⟨tests⟩ | held |`
fn row(line: &str) -> Option<Row> {
    let cells: Vec<_> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [number, rule, tests, status] = cells[..] else { return None };
    Some(Row {
        number: number.parse().ok()?,
        rule: rule.into(),
        tests: tests.split_whitespace().map(|name| name.trim_matches('`').to_owned()).collect(),
        status: status.into(),
    })
}

/// The tests of the workspace that are named for a rule; `None` where only this crate is there.
fn tests_of_the_workspace() -> Option<BTreeMap<u32, BTreeSet<String>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).ok()?;
    if !manifest.contains("[workspace]") || !root.join("xds-relay").is_dir() {
        return None;
    }
    let mut tests = BTreeMap::<_, BTreeSet<_>>::new();
    collect(root, &mut |name| {
        if let Some(number) = name.get("rule_".len().."rule_000".len()).and_then(|digits| digits.parse().ok()) {
            tests.entry(number).or_default().insert(name.to_owned());
        }
    });
    Some(tests)
}

fn collect(directory: &Path, found: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "__pycache__"].contains(&&*name) {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            let text = fs::read_to_string(&path).unwrap();
            for line in text.lines().map(str::trim_start) {
                let function = ["fn ", "async fn ", "def test_", "def "].iter().find_map(|key| line.strip_prefix(key));
                if let Some(name) = function.filter(|name| name.starts_with("rule_")) {
                    found(name.split('(').next().unwrap());
                }
            }
        }
    }
}

#[test]
fn every_rule_has_a_row_and_every_row_a_status() {
    let rows = rows();
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=RULES).collect::<Vec<_>>());
    for Row { number, rule, tests, status } in &rows {
        assert!(!rule.is_empty(), "rule {number}");
        let explained = ["deferred: ", "not followed: "]
            .iter()
            .any(|prefix| status.len() > prefix.len() + 8 && status.starts_with(prefix));
        assert!(status == "held" && !tests.is_empty() || explained, "rule {number}: {status:?}");
        assert!(!status.starts_with("deferred: ") || tests.is_empty(), "rule {number} has tests, and is {status:?}");
    }
    let deferred = rows.iter().filter(|row| row.status.starts_with("deferred: ")).count();
    assert!(deferred <= MOST_DEFERRED, "{deferred} rules are deferred");
}

#[test]
fn every_row_names_the_tests_there_are() {
    let Some(mut tests) = tests_of_the_workspace() else { return };
    if std::env::var_os("REGENERATE").is_some() {
        return regenerate(&tests);
    }
    for row in rows() {
        let there_are = tests.remove(&row.number).unwrap_or_default();
        assert_eq!(row.tests, there_are, "rule {}: run this test with REGENERATE=1", row.number);
    }
    assert!(tests.is_empty(), "tests for no rule: {tests:?}");
}

fn regenerate(tests: &BTreeMap<u32, BTreeSet<String>>) {
    let rewritten = |line: &str| match row(line) {
        Some(Row { number, rule, status, .. }) => {
            let names: String = tests.get(&number).into_iter().flatten().map(|name| format!("`{name}` ")).collect();
            format!("| {number} | {rule} | {names}| {status} |\n")
        }
        None => format!("{line}\n"),
    };
    let text: String = fs::read_to_string(file()).unwrap().lines().map(rewritten).collect();
    fs::write(file(), text).unwrap();
}
