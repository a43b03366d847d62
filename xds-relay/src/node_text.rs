//! What a node says in one of its parts.

use xds_transport::wire::{Node, Value, value};

use crate::config::NodeField;

/// A part of a node as text: text, a number or a boolean. A struct and a list are no value of a parameter.
pub(crate) fn text_of(node: &Node, field: &NodeField) -> Option<String> {
    let locality = node.locality.as_ref();
    let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match field {
        NodeField::Id => said(&node.id),
        NodeField::Cluster => said(&node.cluster),
        // It is three texts.
        NodeField::Locality => None,
        NodeField::Region => said(&locality?.region),
        NodeField::Zone => said(&locality?.zone),
        NodeField::SubZone => said(&locality?.sub_zone),
        NodeField::Metadata(path) => metadata_at(node, path).and_then(value_text),
    }
}

/// Empty text is there, too.
fn value_text(value: &Value) -> Option<String> {
    match value.kind.as_ref()? {
        value::Kind::StringValue(text) => Some(text.clone()),
        value::Kind::BoolValue(flag) => Some(flag.to_string()),
        value::Kind::NumberValue(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What the keys lead to.
pub(crate) fn metadata_at<'a>(node: &'a Node, path: &[String]) -> Option<&'a Value> {
    let mut fields = node.metadata.as_ref().map(|metadata| &metadata.fields);
    let mut found: Option<&Value> = None;
    for key in path {
        found = fields?.get(key);
        fields = match found.and_then(|value| value.kind.as_ref()) {
            Some(value::Kind::StructValue(inner)) => Some(&inner.fields),
            _ => None,
        };
    }
    found
}
