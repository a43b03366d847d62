//! Who the client is.

use serde_json::Value as Json;
use xds_transport::wire::{ListValue, Locality, Node, Struct, Value, value};

use super::error::Wrong;
use super::json;

/// What a client says of itself, its name, version and features, is its own to say.
pub(super) fn read(json: json::Json<'_>) -> Result<Node, Wrong> {
    let fields = json.object()?;
    let text = |name| Ok::<_, Wrong>(fields.string(name)?.unwrap_or_default());
    let locality = match fields.member("locality") {
        Some(json) => {
            let fields = json.object()?;
            let text = |name| Ok::<_, Wrong>(fields.string(name)?.unwrap_or_default());
            Some(Locality { region: text("region")?, zone: text("zone")?, sub_zone: text("sub_zone")? })
        }
        None => None,
    };
    let metadata = match fields.member("metadata") {
        Some(json) => match json.value()? {
            Json::Object(object) => Some(to_struct(object)),
            _ => return Err(json.wrong("expected an object")),
        },
        None => None,
    };
    Ok(Node { id: text("id")?, cluster: text("cluster")?, locality, metadata, ..Node::default() })
}

/// Bounded by the depth that the parser bears.
fn to_struct(object: serde_json::Map<String, Json>) -> Struct {
    Struct { fields: object.into_iter().map(|(key, value)| (key, to_value(value))).collect() }
}

fn to_value(json: Json) -> Value {
    let kind = match json {
        Json::Null => value::Kind::NullValue(0),
        Json::Bool(flag) => value::Kind::BoolValue(flag),
        Json::Number(number) => value::Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => value::Kind::StringValue(text),
        Json::Array(items) => value::Kind::ListValue(ListValue { values: items.into_iter().map(to_value).collect() }),
        Json::Object(object) => value::Kind::StructValue(to_struct(object)),
    };
    Value { kind: Some(kind) }
}
