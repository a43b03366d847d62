use regex::Regex;
use serde::Deserialize as _;

use super::super::fields::tests::{example, uncommented};
use super::*;
use crate::yaml;

/// What of JSON Schema the schema has.
fn refuses(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let of_type = |of: &Value| match of.as_str().unwrap() {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    };
    for (keyword, says) in schema.as_object().unwrap() {
        let refused = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" => None,
            "type" => {
                let is = says.as_array().map_or_else(|| of_type(says), |types| types.iter().any(of_type));
                (!is).then(|| format!("{path}: no {says}"))
            }
            "enum" => (!says.as_array().unwrap().contains(value)).then(|| format!("{path}: none of {says}")),
            "minimum" => value.as_u64().filter(|n| *n < says.as_u64().unwrap()).map(|n| format!("{path}: {n}")),
            "minItems" => {
                value.as_array().filter(|n| (n.len() as u64) < says.as_u64().unwrap()).map(|_| path.to_owned())
            }
            "pattern" => {
                let pattern = Regex::new(says.as_str().unwrap()).unwrap();
                value.as_str().filter(|text| !pattern.is_match(text)).map(|text| format!("{path}: {text}"))
            }
            "items" => value.as_array().unwrap().iter().find_map(|item| refuses(says, item, &format!("{path}[]"))),
            "anyOf" => {
                let all = says.as_array().unwrap();
                let refused: Vec<_> = all.iter().map_while(|one| refuses(one, value, path)).collect();
                (refused.len() == all.len()).then(|| refused.join(", or "))
            }
            "oneOf" => {
                let good = says.as_array().unwrap().iter().filter(|one| refuses(one, value, path).is_none()).count();
                (good != 1).then(|| format!("{path}: {good} of {says}"))
            }
            "required" => {
                let lacking =
                    says.as_array().unwrap().iter().find(|field| value.get(field.as_str().unwrap()).is_none());
                lacking.map(|field| format!("{path}: no {field}"))
            }
            "minProperties" => {
                let count = value.as_object().map_or(0, |fields| fields.len() as u64);
                (count < says.as_u64().unwrap()).then(|| path.to_owned())
            }
            "additionalProperties" if says.is_object() => {
                let fields = value.as_object().into_iter().flatten();
                fields.into_iter().find_map(|(field, value)| refuses(says, value, &format!("{path}.{field}")))
            }
            "additionalProperties" => {
                assert_eq!(*says, false);
                let fields = value.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or(vec![]);
                let unknown = fields.into_iter().find(|field| schema["properties"].get(field).is_none());
                unknown.map(|field| format!("{path}: unknown {field}"))
            }
            "properties" => {
                let known = says.as_object().unwrap().iter();
                known
                    .filter_map(|(field, of)| Some((field, of, value.get(field)?)))
                    .find_map(|(field, of, value)| refuses(of, value, &format!("{path}.{field}")))
            }
            other => panic!("{other} is not known here"),
        };
        if refused.is_some() {
            return refused;
        }
    }
    None
}

fn json_of(text: &str) -> Value {
    Value::deserialize(&yaml::parse(text).unwrap().unwrap()).unwrap()
}

#[test]
fn what_the_example_says_is_good_as_it_is_and_with_all_that_is_commented_out() {
    let Some(text) = example() else { return };
    for text in [text.clone(), uncommented(&text)] {
        assert_eq!(refuses(&Config::schema(), &json_of(&text), ""), None);
    }
}

#[test]
fn what_is_refused_when_it_is_read_is_refused_in_an_editor() {
    for (more, words) in [
        ("lingre: 1s", "unknown lingre"),
        ("linger: 30", ".linger"),
        ("linger: soon", ".linger: soon"),
        ("node: { idd: x }", ".node: unknown idd"),
        ("node: { locality: { zoen: x } }", ".node.locality: unknown zoen"),
        ("admin: { adress: 127.0.0.1:1 }", ".admin: unknown adress"),
        ("tls: { certificate: a }", ".tls: no \"key\""),
        ("clients: []", ".clients"),
        ("clients: [{ names: [a] }]", ".clients[]: no \"match\""),
        ("clients: [{ match: { ani: true } }]", ".clients[].match: unknown ani"),
        ("unknown: wiat", ".unknown: none of"),
        ("client_status: maybe", ".client_status"),
        ("node_parameters: {}", ".node_parameters"),
        ("node_parameters: { zone: [a] }", ".node_parameters.zone"),
        ("limits: { streams: 0 }", ".limits.streams: 0"),
        ("limits: { stream: 1 }", ".limits: unknown stream"),
        ("state: { secrets: omit }", ".state: no \"path\""),
        ("aggregation: { rules: a, unmatched: x }", ".aggregation.unmatched"),
    ] {
        let text = format!("origins: [{{ name: a, server: 'a:1' }}]\n{more}");
        let refused = refuses(&Config::schema(), &json_of(&text), "").unwrap_or_default();
        assert!(refused.contains(words), "{more}: {refused:?}");
        assert!(Config::parse("relay.yaml", &text).is_err(), "{more}");
    }
    for text in [
        "linger: 1s",
        "origins: []",
        "origins: [{ server: 'a:1' }]",
        "origins: [{ name: a, sever: b }]",
        "origins: [{ name: a }]",
        "origins: [{ name: a, server: 'a:1', servers: ['b:1'] }]",
        "origins: [{ name: a, servers: ['b:1'], files: . }]",
        "origins: [{ name: a, kubernetes: {}, etcd: { endpoints: ['b:1'], prefix: x/ } }]",
    ] {
        assert!(refuses(&Config::schema(), &json_of(text), "").is_some(), "{text}");
        assert!(Config::parse("relay.yaml", text).is_err(), "{text}");
    }
    let filled = "origins: [{ name: a, server: '${A}:1' }]\nlimits: { streams: '${N}' }\nclient_status: '${S:-true}'";
    assert_eq!(refuses(&Config::schema(), &json_of(filled), ""), None);
}

/// Each field with one value, by its path.
fn leaves(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        for (field, of) in fields {
            leaves(of, &if path.is_empty() { field.clone() } else { format!("{path}.{field}") }, found);
        }
    } else if let Some(items) = schema.get("items").filter(|items| items.get("properties").is_some()) {
        leaves(items, &format!("{path}[]"), found);
    } else {
        let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        branches.filter(|branch| branch.get("properties").is_some() && path != "state.secrets").for_each(|branch| {
            leaves(branch, path, found);
        });
        found.push((path.to_owned(), schema.clone()));
    }
}

#[test]
fn every_field_has_the_words_of_the_readme_and_the_default_that_is_written_there_is_the_one_there_is() {
    let (mut found, mut compared) = (Vec::new(), 0);
    leaves(&Config::schema(), "", &mut found);
    for (path, schema) in found {
        assert!(schema["description"].is_string(), "{path} has no row in README.md");
        let (default, _) = row(&path).unwrap();
        let written: Vec<&str> = default.split('`').collect();
        if let (["", one, ""], Some(is)) = (written.as_slice(), schema.get("default")) {
            let written = json_of(&format!("a: {one}"))["a"].clone();
            let bytes = |value: &Value| value.as_str()?.parse().ok().map(|bytesize::ByteSize(bytes)| json!(bytes));
            let written = if path.ends_with("_bytes") { bytes(&written).unwrap() } else { written };
            let time = |value: &Value| value.as_str().and_then(|text| humantime::parse_duration(text).ok());
            assert!(*is == written || time(is).is_some() && time(is) == time(&written), "{path}: {is}, {written}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}
