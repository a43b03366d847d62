//! In what two configurations differ.

use serde_json::Value;

use crate::config::{Config, FileReading, OriginKind};

/// The fields, as a file calls them: those of lists that have as many items, else the list.
pub(super) fn differences(one: &Config, other: &Config) -> Vec<String> {
    let mut fields = Vec::new();
    match (written(one), written(other)) {
        (Ok(one), Ok(other)) => compare(&one, &other, "", &mut fields),
        // What no file says is not told apart further.
        _ if one == other => {}
        _ => fields.push("the configuration".to_owned()),
    }
    fields.sort();
    fields
}

/// As a file would have it, and embedded origins as if there were files of them.
fn written(config: &Config) -> Result<Value, String> {
    let mut config = config.clone();
    for origin in &mut config.origins {
        if origin.kind == OriginKind::Embedded {
            let reading = FileReading::default();
            origin.kind = OriginKind::Files { directory: "embedded".into(), descriptors: None, reading };
        }
    }
    config.to_value()
}

fn compare(one: &Value, other: &Value, path: &str, fields: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let gone = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(gone) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let (one, other) = (one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null));
                compare(one, other, &path, fields);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(one, other, &format!("{path}[{index}]"), fields);
            }
        }
        _ if one == other => {}
        _ => fields.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Config {
        let origins = "origins: [{ name: a, server: 'a:1' }, { name: b, server: 'b:1' }]";
        Config::parse("relay.yaml", &format!("{origins}\n{more}")).unwrap()
    }

    #[test]
    fn they_are_named_as_a_file_calls_them() {
        let before = config("");
        for (more, fields) in [
            ("", &[][..]),
            ("listen: 127.0.0.1:1", &["listen"]),
            ("limits: { names: 1, preface: 1s }", &["limits.names", "limits.preface"]),
            ("admin: none", &["admin"]),
            ("clients: [{ match: { any: true } }]", &["clients"]),
            ("node: { id: x, locality: { zone: y } }", &["node.id", "node.locality.zone"]),
            ("share_by: [cluster]\nlog: debug", &["log", "share_by"]),
        ] {
            assert_eq!(differences(&before, &config(more)), fields, "{more}");
            assert_eq!(differences(&config(more), &before), fields, "{more}");
        }
        let mut after = before.clone();
        after.origins[1].authorities.push("x".to_owned());
        assert_eq!(differences(&before, &after), ["origins[1].authorities"]);
        after.origins.remove(0);
        assert_eq!(differences(&before, &after), ["origins"]);
        let embedded = |name: &str| Config::new([crate::config::Origin::embedded(name)]);
        assert_eq!(differences(&embedded("a"), &embedded("a")), [""; 0]);
        assert_eq!(differences(&embedded("a"), &embedded("b")), ["default_origin", "origins[0].name"]);
    }
}
