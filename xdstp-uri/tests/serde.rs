//! The feature `serde`: every type is its canonical text.
#![cfg(feature = "serde")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use xdstp_uri::{ContextParams, Directive, Locator, ResourceName, Urn};

#[test]
fn every_type_is_its_text() {
    let text = "\"xdstp:/T/x?b=1&a=2\"";
    let canonical = "\"xdstp:///T/x?a=2&b=1\"";
    let urn: Urn<'static> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&urn).unwrap(), canonical);
    let name: ResourceName = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&name).unwrap(), canonical);
    let locator: Locator<'static> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&locator).unwrap(), canonical);
    let params: ContextParams<'static> = serde_json::from_str("\"b=1&a=2\"").unwrap();
    assert_eq!(serde_json::to_string(&params).unwrap(), "\"a=2&b=1\"");
    let directive: Directive<'static> = serde_json::from_str("\"entry=%61\"").unwrap();
    assert_eq!(serde_json::to_string(&directive).unwrap(), "\"entry=a\"");
}

#[test]
fn errors_say_what_was_expected() {
    let error = serde_json::from_str::<ResourceName>("\"xdstp://a\"").unwrap_err().to_string();
    assert!(error.contains("\"xdstp://a\": expected '/' and a resource type, at byte 9"), "{error}");
}
