//! JSON as protobuf has it: `google.protobuf.Struct`.

use xds_transport::wire::{ListValue, Struct, Value, value};

/// An object. It is converted as deep as it is: who reads JSON or YAML bounds that.
pub(crate) fn to_struct(object: &serde_json::Map<String, serde_json::Value>) -> Struct {
    Struct { fields: object.iter().map(|(key, value)| (key.clone(), to_value(value))).collect() }
}

fn to_value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match json {
        Json::Null => value::Kind::NullValue(0),
        Json::Bool(flag) => value::Kind::BoolValue(*flag),
        Json::Number(number) => value::Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => value::Kind::StringValue(text.clone()),
        Json::Array(items) => value::Kind::ListValue(ListValue { values: items.iter().map(to_value).collect() }),
        Json::Object(object) => value::Kind::StructValue(to_struct(object)),
    };
    Value { kind: Some(kind) }
}
