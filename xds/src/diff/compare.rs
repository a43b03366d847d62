//! What two sets of resources do not have in common, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use xds_relay::file_origin::DescriptorsError;
use xds_transport::wire::Any;

use crate::output::Content;

/// A resource that is not the same in both.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) name: String,
    pub(super) is_in_a: bool,
    /// None where only one has it.
    pub(super) fields: Option<Vec<Field>>,
}

/// Where two contents differ, and what each has there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Field {
    pub(super) field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) a: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) b: Option<Value>,
}

/// In the form that README.md promises.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    difference: &'static str,
    #[serde(rename = "type")]
    type_url: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a [Field]>,
}

impl Difference {
    pub(super) fn line<'a>(&'a self, type_url: &'a str) -> Line<'a> {
        let difference = match (&self.fields, self.is_in_a) {
            (Some(_), _) => "content",
            (None, true) => "only_in_a",
            (None, false) => "only_in_b",
        };
        Line { difference, type_url, name: &self.name, fields: self.fields.as_deref() }
    }
}

/// In the order of their names.
///
/// # Errors
/// None in a sound build.
pub(super) fn differences(
    a: BTreeMap<String, Any>,
    b: BTreeMap<String, Any>,
    content: &Content,
) -> Result<Vec<Difference>, DescriptorsError> {
    let mut found = Vec::new();
    for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        let fields = match (a.get(name), b.get(name)) {
            (Some(a), Some(b)) if a == b => continue,
            (Some(a), Some(b)) => {
                let descriptors = content.descriptors()?;
                let json = |any: &Any| descriptors.to_json(&any.type_url, &any.value);
                let mut fields = Vec::new();
                compare("", Some(&json(a)), Some(&json(b)), &mut fields);
                // Other bytes that say the same: entries of maps have no order.
                if fields.is_empty() {
                    continue;
                }
                Some(fields)
            }
            _ => None,
        };
        found.push(Difference { name: name.clone(), is_in_a: a.contains_key(name), fields });
    }
    Ok(found)
}

/// Recursion is as deep as content is, which `to_json` bounds.
fn compare(field: &str, a: Option<&Value>, b: Option<&Value>, found: &mut Vec<Field>) {
    match (a, b) {
        (a, b) if a == b => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                compare(&member(field, key), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                compare(&format!("{field}[{index}]"), a.get(index), b.get(index), found);
            }
        }
        _ => found.push(Field { field: field.to_owned(), a: a.cloned(), b: b.cloned() }),
    }
}

/// What is no plain word is in quotes.
fn member(field: &str, key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|char| char.is_alphanumeric() || "_@-".contains(char));
    match (is_plain, field.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{field}.{key}"),
        (false, _) => format!("{field}[{key:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_smallest_fields_that_differ_are_named() {
        let a = json!({"same": [1], "list": [{"x": 1}, 2, 3], "gone": {"deep": 1}, "kind": "a", "map": {"a.b": 1}});
        let b = json!({"same": [1], "list": [{"x": 2}, 2], "new": null, "kind": ["a"], "map": {"a.b": 2}});
        let mut found = Vec::new();
        compare("", Some(&a), Some(&b), &mut found);
        let field = |field: &str, a: Option<Value>, b: Option<Value>| Field { field: field.into(), a, b };
        let expected = [
            field("gone", Some(json!({"deep": 1})), None),
            field("kind", Some(json!("a")), Some(json!(["a"]))),
            field("list[0].x", Some(json!(1)), Some(json!(2))),
            field("list[2]", Some(json!(3)), None),
            field("map[\"a.b\"]", Some(json!(1)), Some(json!(2))),
            field("new", None, Some(json!(null))),
        ];
        assert_eq!(found, expected);
    }
}
