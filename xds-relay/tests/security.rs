//! What SECURITY.md says is tested has tests.
#![allow(clippy::unwrap_used, reason = "the helpers of these tests")]

use std::fs;
use std::path::Path;

/// All sources below a directory.
fn sources(directory: &Path, into: &mut String) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// In what was packed for the registry there is no such file.
#[test]
fn each_line_of_the_threat_model_names_tests_that_there_are() {
    let Ok(text) = fs::read_to_string("../SECURITY.md") else { return };
    let mut code = String::new();
    ["src", "tests"].iter().for_each(|directory| sources(Path::new(directory), &mut code));
    let rows = text.lines().skip_while(|line| *line != "| what somebody tries | what becomes of it | test |").skip(2);
    let mut count = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in tests.split(", ") {
            let name = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
            assert!(name.is_some_and(|name| code.contains(&format!("fn {name}("))), "{row}: no test {test}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
