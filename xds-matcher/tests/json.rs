//! Proto JSON and serde.

use serde_json::{Value, json};
use xds_matcher::final_form::DynamicParameterConstraints;
use xds_matcher::{Constraint, DynamicParameters, ErrorKind, draft};

#[test]
fn both_spellings_of_a_field_are_read_but_not_at_once() {
    let read =
        |json: Value| DynamicParameterConstraints::from_json(&json).map(|message| message.lower().unwrap().to_string());
    let child = json!({"constraint": {"key": "a", "value": "1"}});
    assert_eq!(read(json!({"notConstraints": child})).unwrap(), "not a=1");
    assert_eq!(read(json!({"not_constraints": child})).unwrap(), "not a=1");
    let both = read(json!({"not_constraints": child, "notConstraints": child})).unwrap_err();
    assert_eq!(both.kind(), ErrorKind::UnknownField);
    assert_eq!(read(json!({"notconstraints": child})).unwrap_err().kind(), ErrorKind::UnknownField);
}

#[test]
fn null_is_an_unset_field() {
    let message = json!({"constraint": null, "and_constraints": {"constraints": null}});
    assert_eq!(DynamicParameterConstraints::from_json(&message).unwrap().lower().unwrap().to_string(), "all()");
}

#[test]
fn an_error_says_where() {
    let leaf = json!({"constraint": {"key": "a", "value": 1}});
    let message = json!({"or_constraints": {"constraints": [{}, {"not_constraints": leaf}]}});
    let error = DynamicParameterConstraints::from_json(&message).unwrap_err();
    assert_eq!(error.path(), "or_constraints.constraints[1].not_constraints.constraint.value");
    assert_eq!(error.to_string(), format!("{}: not the JSON type of this field", error.path()));

    let range = json!({"range": [{"min_value": "-1"}]});
    let message = json!({"key_constraints": {"shard": {"constraints": [{"integer_range_list": range}]}}});
    let error = draft::DynamicParameterConstraints::from_json(&message).unwrap_err();
    assert_eq!(error.path(), "key_constraints[\"shard\"].constraints[0].integer_range_list.range[0].min_value");
}

#[test]
fn bounds_are_numbers_or_strings_and_are_written_as_strings() {
    let message = |bound: Value| {
        let range = json!({"range": [{"max_value": bound}]});
        json!({"key_constraints": {"n": {"constraints": [{"integer_range_list": range}], "invert": true}}})
    };
    let read = draft::DynamicParameterConstraints::from_json(&message(json!(u64::MAX))).unwrap();
    assert_eq!(read.to_json(), message(json!(u64::MAX.to_string())));
    for wrong in [json!(-1), json!(1.5), json!(""), json!("+1"), json!("18446744073709551616")] {
        let error = draft::DynamicParameterConstraints::from_json(&message(wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRange);
    }
}

#[test]
fn json_of_any_depth_is_refused() {
    let mut message = json!({});
    for _ in 0..200 {
        message = json!({"not_constraints": message});
    }
    assert_eq!(DynamicParameterConstraints::from_json(&message).unwrap_err().kind(), ErrorKind::TooDeep);
}

#[test]
fn constraints_are_text_and_parameters_are_maps_in_configuration() {
    let constraint: Constraint = serde_json::from_str("\"env=prod and shard in 4..6\"").unwrap();
    assert_eq!(serde_json::to_value(&constraint).unwrap(), json!("env=prod and shard in 4..6"));
    let error = serde_json::from_str::<Constraint>("\"env=\"").unwrap_err();
    assert!(error.to_string().starts_with("expected a value, at byte 4"), "{error}");
    let parameters: DynamicParameters = serde_json::from_value(json!({"env": "prod"})).unwrap();
    assert_eq!(serde_json::to_value(&parameters).unwrap(), json!({"env": "prod"}));
}
