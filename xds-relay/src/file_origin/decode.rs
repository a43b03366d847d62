//! Bytes to the JSON that a file would have for them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};
use serde_json::{Map, Value as Json, json};

use super::descriptors::{ANY, Descriptors};
use super::encode::{ANY_TYPE_URL, ANY_VALUE, type_of};

/// How deep messages may be within each other, and within an `Any` in one: what protobuf readers bear by themselves ends
/// at every `Any`.
const MAX_DEPTH: usize = 100;
/// What stands in for the fields that a message has and its type does not know.
const UNKNOWN_FIELDS: &str = "@unknown";

/// Types whose JSON is no object of their fields; in an `Any` it is its `value`.
const WITH_A_FORM: &[&str] = &[
    "BoolValue",
    "BytesValue",
    "DoubleValue",
    "Duration",
    "Empty",
    "FieldMask",
    "FloatValue",
    "Int32Value",
    "Int64Value",
    "ListValue",
    "StringValue",
    "Struct",
    "Timestamp",
    "UInt32Value",
    "UInt64Value",
    "Value",
];

impl Descriptors {
    /// The content of an `Any` as a file has it: JSON of protobuf, with the names of fields as Envoy's configuration has them.
    ///
    /// Nothing is left out. What is of no known type, or is not what its type says, is `{"@type": …, "value": BASE64}`,
    /// also within another message; the fields that a message has and its type does not know are `"@unknown": BASE64`.
    ///
    /// ```
    /// use xds_relay::file_origin::{Descriptors, load_embedded};
    ///
    /// let descriptors = Descriptors::built_in()?;
    /// let text = r#"resources: [{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: EDS}]"#;
    /// let cluster = &load_embedded(&[("clusters.yaml", text)], &descriptors)?[0];
    /// let json = descriptors.to_json(&cluster.type_url, &cluster.value);
    /// assert_eq!((&json["name"], &json["type"]), (&"web".into(), &"EDS".into()));
    ///
    /// let json = descriptors.to_json("type.googleapis.com/who.Knows", b"\x08\x01");
    /// assert_eq!(json.to_string(), r#"{"@type":"type.googleapis.com/who.Knows","value":"CAE="}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_json(&self, type_url: &str, value: &[u8]) -> Json {
        self.any(type_url, value, 0)
    }

    fn any(&self, type_url: &str, value: &[u8], depth: usize) -> Json {
        let message = type_of(&self.pool, type_url).and_then(|known| DynamicMessage::decode(known, value).ok());
        let read = message.and_then(|message| Some((has_form(&message), self.message(&message, depth)?)));
        match read {
            Some((false, Json::Object(mut fields))) => {
                fields.insert("@type".to_owned(), type_url.into());
                fields.into()
            }
            Some((_, json)) => json!({ "@type": type_url, "value": json }),
            None => json!({ "@type": type_url, "value": BASE64_STANDARD.encode(value) }),
        }
    }

    /// `None` where there is no JSON for it.
    fn message(&self, message: &DynamicMessage, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        if message.descriptor().full_name() == ANY {
            let type_url = message.get_field_by_number(ANY_TYPE_URL)?;
            let value = message.get_field_by_number(ANY_VALUE)?;
            return Some(self.any(type_url.as_str()?, value.as_bytes()?, depth + 1));
        }
        if has_form(message) {
            return serde_json::to_value(message).ok();
        }
        let mut fields = Map::new();
        for (field, value) in message.fields() {
            fields.insert(field.name().to_owned(), self.value(&field, value, depth)?);
        }
        let mut unknown = Vec::new();
        message.unknown_fields().for_each(|field| field.encode(&mut unknown));
        if !unknown.is_empty() {
            fields.insert(UNKNOWN_FIELDS.to_owned(), BASE64_STANDARD.encode(unknown).into());
        }
        Some(fields.into())
    }

    fn value(&self, field: &FieldDescriptor, value: &Value, depth: usize) -> Option<Json> {
        Some(match value {
            Value::Message(message) => self.message(message, depth + 1)?,
            Value::List(items) => {
                items.iter().map(|item| self.value(field, item, depth)).collect::<Option<Vec<_>>>()?.into()
            }
            Value::Map(entries) => {
                let Kind::Message(entry) = field.kind() else { return None };
                let of_values = entry.get_field_by_name("value")?;
                let entry = |(key, value)| Some((text(key), self.value(&of_values, value, depth)?));
                entries.iter().map(entry).collect::<Option<Map<_, _>>>()?.into()
            }
            Value::EnumNumber(number) => match field.kind() {
                Kind::Enum(of) => of.get_value(*number).map_or((*number).into(), |value| value.name().into()),
                _ => (*number).into(),
            },
            Value::Bool(value) => (*value).into(),
            Value::I32(value) => (*value).into(),
            Value::U32(value) => (*value).into(),
            Value::I64(value) => value.to_string().into(),
            Value::U64(value) => value.to_string().into(),
            // Its own digits, and not those that it has as a double.
            Value::F32(value) => value.to_string().parse().map_or(Json::Null, number),
            Value::F64(value) => number(*value),
            Value::String(value) => value.as_str().into(),
            Value::Bytes(value) => BASE64_STANDARD.encode(value).into(),
        })
    }
}

fn has_form(message: &DynamicMessage) -> bool {
    let descriptor = message.descriptor();
    descriptor.full_name().strip_prefix("google.protobuf.").is_some_and(|name| WITH_A_FORM.contains(&name))
}

fn number(value: f64) -> Json {
    match serde_json::Number::from_f64(value) {
        Some(number) => number.into(),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

fn text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use xds_transport::wire::Any;

    use super::*;
    use crate::file_origin::load_embedded;

    const PREFIX: &str = "type.googleapis.com/";

    fn descriptors() -> Descriptors {
        Descriptors::built_in().unwrap()
    }

    fn json_of(body: &str) -> Json {
        let (text, descriptors) = (format!("resources:\n- {body}\n"), descriptors());
        let resources = load_embedded(&[("a.yaml", &text)], &descriptors).unwrap();
        descriptors.to_json(&resources[0].type_url, &resources[0].value)
    }

    fn extension(inner: &Any) -> Vec<u8> {
        // TypedExtensionConfig: name = 1, typed_config = 2.
        let inner = inner.encode_to_vec();
        let mut outer = vec![0x0a, 1, b'x', 0x12];
        prost::encoding::encode_varint(inner.len() as u64, &mut outer);
        [outer, inner].concat()
    }

    #[test]
    fn what_comes_from_a_file_is_what_is_in_it() {
        let body = r#"{
            "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "name": "web", "type": "EDS", "connect_timeout": "1.500s", "per_connection_buffer_limit_bytes": 5,
            "lb_policy": "RING_HASH", "ring_hash_lb_config": {"minimum_ring_size": "9007199254740993"},
            "metadata": {"filter_metadata": {"b": {"deep": [1.0, null, {"x": "y"}]}, "a": {}}}
        }"#;
        let json = json_of(&body.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(json, serde_json::from_str::<Json>(body).unwrap());
    }

    #[test]
    fn an_any_within_is_shown_whether_its_type_is_known_or_not() {
        let descriptors = descriptors();
        let type_url = format!("{PREFIX}envoy.config.core.v3.TypedExtensionConfig");
        let empty = Any { type_url: format!("{PREFIX}google.protobuf.Empty"), value: "".into() };
        let json = descriptors.to_json(&type_url, &extension(&empty));
        assert_eq!(json["typed_config"], json!({ "@type": empty.type_url, "value": {} }));

        let unknown = Any { type_url: "a.com/b.C".into(), value: "x".into() };
        let json = descriptors.to_json(&type_url, &extension(&unknown));
        assert_eq!(json["typed_config"], json!({ "@type": "a.com/b.C", "value": "eA==" }));

        let wrong = Any { type_url: type_url.clone(), value: "\u{7}".into() };
        let json = descriptors.to_json(&type_url, &extension(&wrong));
        assert_eq!(json["typed_config"], json!({ "@type": type_url, "value": "Bw==" }));
    }

    #[test]
    fn fields_that_nobody_knows_are_not_left_out() {
        let type_url = format!("{PREFIX}envoy.config.cluster.v3.Cluster");
        // name = "a", and the field 2000.
        let json = descriptors().to_json(&type_url, &[0x0a, 1, b'a', 0x80, 0x7d, 1]);
        assert_eq!(json, json!({ "@type": type_url, "name": "a", "@unknown": "gH0B" }));
    }

    #[test]
    fn what_is_deeper_than_a_stack_is_shown_as_bytes() {
        let type_url = format!("{PREFIX}envoy.config.core.v3.TypedExtensionConfig");
        let mut value = Vec::new();
        for _ in 0..1000 {
            value = extension(&Any { type_url: type_url.clone(), value: value.into() });
        }
        let mut json = &descriptors().to_json(&type_url, &value);
        let mut depth = 0;
        while let Some(inner) = json.get("typed_config") {
            (json, depth) = (inner, depth + 1);
        }
        assert!((20..=MAX_DEPTH).contains(&depth) && json["value"].is_string(), "{depth}");
    }
}
