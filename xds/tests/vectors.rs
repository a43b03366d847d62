//! `xds names run`, `xds names parse --json` and `xds variants run` answer the test vectors of the crates as they expect.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub, reason = "a test fails by panicking")]

mod cli;

use cli::{Run, xds};
use serde_json::{Map, Value};

const NAMES: &str = include_str!("../../xdstp-uri/tests/vectors/uri.json");
const VARIANTS: &str = include_str!("../../xds-matcher/tests/vectors/tp2.json");

fn vectors(text: &str) -> Vec<Map<String, Value>> {
    serde_json::from_str(text).unwrap()
}

/// The answers to vectors without their `expect`, one a line.
fn answers(command: &str, vectors: &[Map<String, Value>]) -> Vec<Value> {
    let mut input = String::new();
    for vector in vectors {
        let mut question = vector.clone();
        question.remove("expect");
        input.push_str(&serde_json::to_string(&question).unwrap());
        input.push('\n');
    }
    let run = xds(&[command, "run", "--json"], input);
    assert_eq!((run.code, &*run.err), (0, ""));
    lines(&run)
}

fn lines(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_vector_of_names_is_answered() {
    let vectors = vectors(NAMES);
    let answers = answers("names", &vectors);
    assert_eq!(answers.len(), vectors.len());
    for (vector, mut answer) in vectors.iter().zip(answers) {
        // A vector about a listener looks at some of the fields, each at others.
        if let Some(Value::String(op)) = vector.get("op")
            && op.ends_with("_listener")
        {
            let expect = vector["expect"].as_object().unwrap();
            answer.as_object_mut().unwrap().retain(|field, _| expect.contains_key(field));
        }
        assert_eq!(answer, vector["expect"], "{}", vector["input"]);
    }
}

#[test]
fn every_vector_of_variants_is_answered() {
    let vectors = vectors(VARIANTS);
    let answers = answers("variants", &vectors);
    assert_eq!(answers.len(), vectors.len());
    for (vector, answer) in vectors.iter().zip(answers) {
        let unknown_allowed = vector.get("large") == Some(&Value::Bool(true)) && answer["overlaps"] == "unknown";
        assert!(answer == vector["expect"] || unknown_allowed, "{}: {answer}", vector["n"]);
    }
}

#[test]
fn names_are_shown_with_the_fields_of_their_vectors() {
    let mut vectors = vectors(NAMES);
    vectors.retain(|vector| !vector.contains_key("op"));
    let input: Vec<&str> = vectors.iter().map(|vector| vector["input"].as_str().unwrap()).collect();
    let run = xds(&["names", "parse", "--json", "-0"], input.join("\0") + "\0");
    assert_eq!((run.code, &*run.err), (1, ""));
    let found = lines(&run);
    assert_eq!(found.len(), vectors.len());
    for (vector, mut found) in vectors.iter().zip(found) {
        let fields = found.as_object_mut().unwrap();
        assert_eq!(fields.remove("kind").as_ref(), vector.get("kind"), "{}", vector["input"]);
        let offset = fields.remove("offset").unwrap();
        assert_eq!(offset.is_null(), vector["kind"] == "urn", "{}", vector["input"]);
        assert_eq!(found, vector["expect"], "{}", vector["input"]);
    }
}

#[test]
fn a_line_that_is_no_question_is_answered_by_an_error_and_the_rest_goes_on() {
    let deep = "[".repeat(100_000);
    let run = xds(&["names", "run", "--json"], format!("{{\n\n{deep}\n[]\n{{\"input\": \"xdstp:\"}}"));
    let errors: Vec<_> = lines(&run).iter().map(|answer| answer["error"].as_str().unwrap().to_owned()).collect();
    assert_eq!(errors, ["invalid_json", "too_deep", "wrong_type", "missing_resource_type"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("xds: line 1: ") && run.err.contains("xds: line 3: "), "{}", run.err);

    let run = xds(&["variants", "run", "--json"], b"\xff\n{\"op\": \"no such op\"}\n");
    assert_eq!(run.out, "{\"error\":\"invalid_json\"}\n{\"error\":\"wrong_type\"}\n");
}
