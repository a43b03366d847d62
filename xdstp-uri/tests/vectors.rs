//! Runs `vectors/uri.json`: names as the suites of Envoy, C-core, grpc-go and grpc-java have them, TP1, A47 and RFC 3986, answered
//! as the tool `xds` does. The published crate has the vectors without this test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../xds/src/names/answer/mod.rs"]
mod answer;
#[allow(dead_code, reason = "other tests use the rest")]
mod oracle;

use std::collections::BTreeMap;

use answer::answer;
use serde_json::Value;
use xdstp_uri::{Locator, ResourceName, Urn};

/// Vectors (`n`) that are known not to hold. One that holds, or is not there, fails the run.
const EXPECTED_FAILURES: [u64; 0] = [];

#[test]
fn vectors_hold() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors/uri.json")).unwrap();
    assert!(vectors.len() > 150);
    let mut failures = BTreeMap::new();
    for vector in &vectors {
        let (expect, found) = (&vector["expect"], only(vector, answer(vector)));
        if expect != &found {
            failures.insert(
                vector["n"].as_u64().unwrap(),
                format!("{}\n  expect {expect}\n  found  {found}", vector["input"]),
            );
        }
    }
    for expected in EXPECTED_FAILURES {
        assert!(failures.remove(&expected).is_some(), "vector {expected} holds: take it off the list");
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn names_locators_and_resource_names_agree() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors/uri.json")).unwrap();
    for input in vectors.iter().filter(|vector| vector.get("op").is_none()).map(|vector| &vector["input"]) {
        let text = input.as_str().unwrap();
        let name = ResourceName::parse(text);
        match (Urn::parse(text), Locator::parse(text)) {
            (Ok(urn), Ok(url)) => {
                assert_eq!(urn.to_name(), url.to_name().unwrap(), "{text}");
                assert_eq!(urn.to_name(), name.unwrap(), "{text}");
            }
            (Err(urn), Err(url)) if text.starts_with("xdstp:") => {
                assert!(name.is_err(), "{text}");
                assert!(urn.kind() == url.kind() || urn.kind().as_str() == "fragment_in_urn", "{text}");
            }
            (urn, _) => assert!(urn.is_err(), "{text}"),
        }
    }
}

/// The second implementation that laws and fuzzers compare with is itself held to the vectors.
#[test]
fn the_reference_reads_the_vectors_alike() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors/uri.json")).unwrap();
    for vector in vectors.iter().filter(|vector| vector.get("op").is_none()) {
        let read = oracle::reference::read(vector["input"].as_str().unwrap());
        assert_eq!(
            read.map(|read| read.canonical()).as_deref(),
            vector["expect"]["canonical"].as_str(),
            "{}",
            vector["input"]
        );
    }
}

#[test]
fn what_is_no_question_is_refused() {
    let long = format!("xdstp://a/T/{}", "x".repeat(1 << 16));
    for (question, error) in [
        ("[]".to_owned(), "wrong_type"),
        (r#"{"op": "parse"}"#.to_owned(), "wrong_type"),
        (r#"{"op": 1, "input": "web"}"#.to_owned(), "wrong_type"),
        (r#"{"op": "equivalent", "input": ["xdstp://a/T/x"]}"#.to_owned(), "wrong_type"),
        (r#"{"op": "equivalent", "input": ["xdstp://a/T/x", "web"]}"#.to_owned(), "not_xdstp"),
        (r#"{"op": "no such op", "input": ""}"#.to_owned(), "unknown_op"),
        (r#"{"op": "resolve_listener", "input": {"target": "dns:x"}}"#.to_owned(), "invalid_target"),
        (r#"{"op": "resolve_server_listener", "input": {"address": "x"}}"#.to_owned(), "missing_server_template"),
        (format!(r#"{{"input": "{long}"}}"#), "too_long"),
    ] {
        let question: Value = serde_json::from_str(&question).unwrap();
        assert_eq!(answer(&question)["error"], error, "{question}");
    }
}

/// Of the answer about a listener, what the vector looks at: each looks at other fields.
fn only(vector: &Value, mut answer: Value) -> Value {
    let listener = vector["op"].as_str().is_some_and(|op| op.ends_with("_listener"));
    if let (true, Some(fields), Some(expect)) = (listener, answer.as_object_mut(), vector["expect"].as_object()) {
        fields.retain(|field, _| expect.contains_key(field));
    }
    answer
}
