//! `xds-relay keys`, as a process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of these tests")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const RULES: &str = "\
fragments:
- rules:
  - { match: { request_node_match: { id_match: { exact_match: canary } } }, result: { string_fragment: canary } }
  - { match: { any_match: true }, result: { request_node_fragment: { cluster_action: { exact: true } } } }
";

fn relay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
    command.env_remove("XDS_RELAY_LOG").stdin(Stdio::null());
    command
}

fn file(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.yaml");
    fs::write(&file, text).unwrap();
    (directory, file)
}

/// What it says of these lines.
fn keys(rules: &str, options: &[&str], lines: &[u8]) -> Output {
    let (_directory, file) = file(rules);
    let mut command = relay();
    command.arg("keys").arg("--rules").arg(&file).args(options);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = lines.to_owned();
    // Apart: it may answer more than a pipe holds before it has read all. Or it may read nothing.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&lines)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn each_line_is_answered_by_one_of_json() {
    let lines = concat!(
        r#"{"node": {"id": "canary"}, "type_url": "t", "resource_names": []}"#,
        "\n",
        r#"{"node": {"id": "a", "cluster": "c\"_"}, "typeUrl": "t"}"#,
        "\n",
        r#"{"type_url": "t"}"#,
        "\n",
        "{}\n",
        "what?\n",
        "\n",
        r#"{"type_url": "t", "node": {"id": 1}}"#,
        "\n",
        r#"{"type_url": "t", "node": {"cluster": "last"}}"#,
    );
    let output = keys(RULES, &["--json"], lines.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    assert_eq!(
        text(&output.stdout),
        r#"{"key":"canary"}
{"key":"c\"_"}
{"error":"RequestNodeFragment exact match resulted in an empty fragment","stage":"key"}
{"error":"typeURL is empty","stage":"key"}
{"error":"line 5, column 1: no request: expected value","stage":"request"}
{"error":"line 6, column 1: no request: EOF while parsing a value","stage":"request"}
{"error":"line 7, column 34: no request: invalid type: integer `1`, expected a string","stage":"request"}
{"key":"last"}
"#
    );
}

#[test]
fn what_is_no_text_and_what_is_too_long_are_lines_like_others() {
    let mut lines = b"\xff\n".to_vec();
    lines.extend(std::iter::repeat_n(b' ', 17 << 20));
    lines.extend(b"{}\n{\"type_url\": \"t\", \"node\": {\"id\": \"canary\"}}\n");
    let output = keys(RULES, &["--json"], &lines);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answers: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(answers.first().unwrap().contains("line 1, column 1: no request"), "{answers:?}");
    assert!(answers.get(1).unwrap().contains("line 2"), "{answers:?}");
    assert_eq!(answers.last(), Some(&r#"{"key":"canary"}"#));
}

/// A partner at the other end of the pipe may ask one by one.
#[test]
fn an_answer_does_not_wait_for_the_next_request() {
    let (_directory, file) = file(RULES);
    let mut command = relay();
    command.arg("keys").arg("--json").arg("--rules").arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut requests = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    for id in ["canary", "canary"] {
        writeln!(requests, r#"{{"type_url": "t", "node": {{"id": "{id}"}}}}"#).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "{\"key\":\"canary\"}\n");
    }
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn all_that_match_count_if_asked_for() {
    let request = br#"{"type_url": "t", "node": {"id": "canary", "cluster": "c"}}"#;
    assert_eq!(text(&keys(RULES, &["--json"], request).stdout), "{\"key\":\"canary\"}\n");
    assert_eq!(text(&keys(RULES, &["--legacy-all-matches", "--json"], request).stdout), "{\"key\":\"canary_c\"}\n");
}

#[test]
fn without_json_it_says_which_rule_matched_and_why_others_did_not() {
    let output = keys(RULES, &[], b"{\"type_url\": \"t\", \"node\": {\"cluster\": \"c\"}}\nno\n");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        text(&output.stdout),
        "line 1: key c: \"c\"\n  \
           fragment 1, rule 1 (line 3) did not match: id is \"\", not \"canary\"\n  \
           fragment 1, rule 2 (line 4) matched: \"c\"\n\
         line 2, column 2: no request: expected ident\n"
    );
}

#[test]
fn bad_rules_are_exit_code_2_and_told_where_they_are_looked_for() {
    let bad = "fragments:\n- rules: []\n";
    let place = "2:10: fragments[0].rules";
    let reason = format!("{place}: value must contain at least 1 item(s)");
    let original = "invalid KeyerConfiguration.Fragments[0]: embedded message failed validation | caused by: \
                    invalid KeyerConfiguration_Fragment.Rules: value must contain at least 1 item(s)";
    let output = keys(bad, &["--json"], b"{}\n");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["stage"], "config");
    assert!(answer["error"].as_str().unwrap().ends_with(&format!("rules.yaml:{place}: {original}")), "{answer}");
    assert!(output.stderr.is_empty(), "{output:?}");

    let output = keys(bad, &[], b"{}\n");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(text(&output.stderr).ends_with(&format!("rules.yaml:{reason}\n")), "{output:?}");

    let output = relay().args(["keys", "--json", "--rules", "/nonexistent/rules.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["stage"], "config");
    assert!(answer["error"].as_str().unwrap().starts_with("/nonexistent/rules.yaml: "), "{answer}");
}

#[test]
fn what_is_odd_in_the_rules_is_said_beside_the_answers() {
    let rules = "fragments: [rules: [{match: {request_type_match: {types: [x/envoy.api.v2.Cluster]}}, result: {string_fragment: a}}]]";
    let output = keys(rules, &["--json"], br#"{"type_url": "x/envoy.config.cluster.v3.Cluster"}"#);
    assert_eq!(text(&output.stdout), "{\"key\":\"a\"}\n");
    let warning = text(&output.stderr);
    assert!(
        warning.starts_with("xds-relay: warning: ") && warning.contains("rules.yaml:1:59: `x/envoy.api.v2.Cluster`"),
        "{warning}"
    );
}

#[test]
fn the_other_flags_are_those_of_the_relay() {
    let output = relay().args(["--config", "a.yaml", "keys", "--rules", "b.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = relay().args(["keys"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("--rules <FILE>"), "{output:?}");
}

#[test]
fn the_readme_shows_what_it_says() {
    let readme = include_str!("../README.md");
    let section = readme.split("## Aggregation rules").nth(1).unwrap();
    let block =
        |language: &str| section.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    let shown = block("text");
    let request = shown.split('\'').nth(1).unwrap();
    let answer = shown.split_once("rules.yaml\n").unwrap().1;
    assert_eq!(text(&keys(block("yaml"), &[], request.as_bytes()).stdout), answer);
}
