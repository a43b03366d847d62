//! Rules with one thing in them, and what they make of a request.

use xds_relay::aggregation::{Key, KeyError, Reading, RequestJson, Rules};

pub(crate) fn rules(text: &str, reading: Reading) -> Rules {
    Rules::parse("rules.yaml", text, reading).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn request(json: &str) -> RequestJson {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn key_by(text: &str, reading: Reading, json: &str) -> Result<Key, KeyError> {
    rules(text, reading).key(&request(json).as_request())
}

/// By both readings, which must say the same.
pub(crate) fn key(text: &str, json: &str) -> Result<Key, KeyError> {
    let documented = key_by(text, Reading::Documented, json);
    assert_eq!(documented, key_by(text, Reading::LegacyAllMatches, json), "{text}");
    documented
}

pub(crate) fn with_match(condition: &str) -> String {
    format!("fragments: [rules: [{{match: {condition}, result: {{string_fragment: yes it does}}}}]]")
}

pub(crate) fn with_result(result: &str) -> String {
    format!("fragments: [rules: [{{match: {{any_match: true}}, result: {result}}}]]")
}

pub(crate) fn matches(condition: &str, json: &str) -> Result<bool, KeyError> {
    match key(&with_match(condition), json) {
        Ok(_) => Ok(true),
        Err(KeyError::NoRule) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn comes_to(result: &str, json: &str) -> Result<String, KeyError> {
    key(&with_result(result), json).map(|key| key.label())
}
