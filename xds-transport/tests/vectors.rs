//! Names and locators of `xdstp-uri`'s vectors are the same as messages and as text. The vectors are in another package: the
//! published crate is without this test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use serde_json::Value;
use xds_transport::wire::xdstp::{decode_locator, decode_name, encode_locator, encode_name};
use xdstp_uri::{Locator, Urn};

/// All texts in a value, however deep.
fn texts<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, into)),
        _ => {}
    }
}

#[test]
fn names_and_locators_of_the_vectors_lose_nothing_as_messages() {
    let vectors: Value = serde_json::from_str(include_str!("../../xdstp-uri/tests/vectors/uri.json")).unwrap();
    let mut all = Vec::new();
    texts(&vectors, &mut all);
    let (mut names, mut locators) = (0, 0);
    for text in all {
        if let Ok(name) = Urn::parse(text) {
            assert_eq!(decode_name(&encode_name(&name)).unwrap(), name, "{text}");
            names += 1;
        }
        if let Ok(locator) = Locator::parse(text) {
            let read = decode_locator(&encode_locator(&locator)).unwrap();
            assert_eq!(read.to_canonical(), locator.to_canonical(), "{text}");
            locators += 1;
        }
    }
    assert!(names > 100 && locators > 150, "{names} {locators}");
}
