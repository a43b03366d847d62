//! The rules again, from the text of the schema: over JSON, without a thought for anything but what it says. Patterns are
//! three, each with a meaning of its own here.

use serde_json::Value;

/// Patterns, whether they match, and what a replacement by `<$1>` makes of a text.
pub(crate) const PATTERNS: [&str; 3] = ["^a", "(b)", r"^\w*$"];

fn found(pattern: &str, text: &str) -> bool {
    match PATTERNS.iter().position(|known| *known == pattern).unwrap() {
        0 => text.starts_with('a'),
        1 => text.contains('b'),
        _ => text.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric()),
    }
}

fn replaced(pattern: &str, text: &str) -> String {
    match PATTERNS.iter().position(|known| *known == pattern).unwrap() {
        0 => text.strip_prefix('a').map_or(text.to_owned(), |rest| format!("<>{rest}")),
        1 => text.replace('b', "<b>"),
        _ if found(pattern, text) => "<>".to_owned(),
        _ => text.to_owned(),
    }
}

/// `Err(())`: no key, for whatever reason.
type Text = Result<String, ()>;

/// For each fragment what its rules come to.
pub(crate) fn key(rules: &Value, request: &Value, all_matches: bool) -> Result<Vec<Vec<String>>, ()> {
    let type_url = request["type_url"].as_str().unwrap();
    if type_url.is_empty()
        || (type_url.ends_with("ClusterLoadAssignment") && request["resource_names"] == Value::Array(vec![]))
    {
        return Err(());
    }
    let mut key = Vec::new();
    for fragment in rules["fragments"].as_array().unwrap() {
        let mut pieces = Vec::new();
        for rule in fragment["rules"].as_array().unwrap() {
            if (all_matches || pieces.is_empty()) && matches(&rule["match"], request)? {
                pieces.push(result(&rule["result"], request)?);
            }
        }
        key.push(pieces);
    }
    if key.iter().all(Vec::is_empty) { Err(()) } else { Ok(key) }
}

fn only(object: &Value) -> (&str, &Value) {
    let (name, value) = object.as_object().unwrap().iter().next().unwrap();
    (name, value)
}

fn matches(condition: &Value, request: &Value) -> Result<bool, ()> {
    let (kind, of) = only(condition);
    match kind {
        "any_match" => Ok(true),
        "not_match" => Ok(!matches(of, request)?),
        "and_match" | "or_match" => {
            for member in of["rules"].as_array().unwrap() {
                if matches(member, request)? == (kind == "or_match") {
                    return Ok(kind == "or_match");
                }
            }
            Ok(kind == "and_match")
        }
        "request_type_match" => Ok(of["types"].as_array().unwrap().contains(&request["type_url"])),
        _ => {
            let (kind, of) = only(of);
            let node = &request["node"];
            match kind {
                "id_match" => Ok(string_matches(of, field(node, "id"))),
                "cluster_match" => Ok(string_matches(of, field(node, "cluster"))),
                "locality_match" => Ok(of
                    .as_object()
                    .unwrap()
                    .iter()
                    .all(|(part, of)| string_matches(of, field(&node["locality"], part)))),
                _ => metadata_matches(of, node),
            }
        }
    }
}

fn metadata_matches(of: &Value, node: &Value) -> Result<bool, ()> {
    let metadata = node.get("metadata").ok_or(())?;
    let Some(found) = walk(metadata, &of["path"]) else { return Ok(false) };
    let (kind, wanted) = only(&of["match"]);
    Ok(match kind {
        "string_match" => string_matches(wanted, found.as_str().unwrap_or("")),
        _ => wanted["value_match"].as_bool().unwrap() == found.as_bool().unwrap_or(false),
    })
}

fn walk<'a>(metadata: &'a Value, path: &Value) -> Option<&'a Value> {
    path.as_array()
        .unwrap()
        .iter()
        .try_fold(metadata, |value, key| value.as_object()?.get(key["key"].as_str().unwrap()))
}

fn field<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or("")
}

fn string_matches(of: &Value, text: &str) -> bool {
    let (kind, wanted) = only(of);
    let wanted = wanted.as_str().unwrap();
    !wanted.is_empty() && if kind == "exact_match" { wanted == text } else { found(wanted, text) }
}

fn result(of: &Value, request: &Value) -> Text {
    let (kind, of) = only(of);
    match kind {
        "string_fragment" => Ok(of.as_str().unwrap().to_owned()),
        "and_result" => {
            of["result_predicates"].as_array().unwrap().iter().map(|member| result(member, request)).collect()
        }
        "resource_names_fragment" => {
            let names = request["resource_names"].as_array().unwrap();
            let name = names.get(usize::try_from(of["element"].as_u64().unwrap()).unwrap()).ok_or(())?;
            action(&of["action"], name.as_str().unwrap())
        }
        _ => {
            let (kind, of) = only(of);
            let node = &request["node"];
            match kind {
                "id_action" => action(of, field(node, "id")),
                "cluster_action" => action(of, field(node, "cluster")),
                "locality_action" => {
                    let mut parts = Vec::new();
                    for (asked, part) in
                        [("region_action", "region"), ("zone_action", "zone"), ("subzone_action", "sub_zone")]
                    {
                        if let Some(of) = of.get(asked) {
                            parts.push(action(of, field(&node["locality"], part))?);
                        }
                    }
                    if parts.is_empty() { Err(()) } else { Ok(parts.join("|")) }
                }
                _ => {
                    let found = node.get("metadata").and_then(|metadata| walk(metadata, &of["path"])).ok_or(())?;
                    action(&of["action"], found.as_str().unwrap_or(""))
                }
            }
        }
    }
}

fn action(of: &Value, text: &str) -> Text {
    let result = match of.get("regex_action") {
        Some(replacement) => replaced(replacement["pattern"].as_str().unwrap(), text),
        None => text.to_owned(),
    };
    if result.is_empty() { Err(()) } else { Ok(result) }
}
