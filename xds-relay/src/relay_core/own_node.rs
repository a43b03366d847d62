//! Who the relay is on streams of `xdstp:` names.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{ListValue, Locality, Node, Struct, Value, value};

use crate::config::{self, Config};
use crate::federation::node_group::towards_origin;

/// Encoded, as origins are told it.
pub(crate) fn own_node(config: &Config) -> Bytes {
    let config::Node { id, cluster, locality, metadata, .. } = &config.node;
    let (region, zone, sub_zone) = (locality.region.clone(), locality.zone.clone(), locality.sub_zone.clone());
    let node = Node {
        id: id.clone(),
        cluster: cluster.clone(),
        locality: Some(Locality { region, zone, sub_zone }).filter(|locality| *locality != Locality::default()),
        metadata: (!metadata.is_empty()).then(|| to_struct(metadata)),
        user_agent_name: "xds-relay".to_owned(),
        user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Node::default()
    };
    towards_origin(&Bytes::from(node.encode_to_vec()))
}

/// JSON as protobuf has it.
fn to_struct(object: &serde_json::Map<String, serde_json::Value>) -> Struct {
    Struct { fields: object.iter().map(|(key, value)| (key.clone(), to_value(value))).collect() }
}

/// Bounded by the configuration file's own depth, which its parser bounds.
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
