//! What a receiver can decode: messages by the types of their fields.
//!
//! One malformed part makes a client refuse the whole response it is in, so a relay that passes parts on undecoded looks
//! at their form first. Fields that nobody here knows need to be protobuf, no more.

use thiserror::Error;

use super::walk::{Field, FieldValue, Fields};

/// The known fields of a message: number, name, type.
#[derive(Debug)]
pub(crate) struct Shape(&'static [(u32, &'static str, Type)]);

#[derive(Clone, Copy, Debug)]
enum Type {
    Varint,
    Fixed64,
    Text,
    Bytes,
    Message(&'static Shape),
}

/// A message or a field of it is not what its receiver takes it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub(crate) struct Undecodable {
    field: &'static str,
    problem: &'static str,
}

impl Undecodable {
    pub(crate) const fn new(field: &'static str, problem: &'static str) -> Self {
        Self { field, problem }
    }

    pub(crate) const fn not_a_message(field: &'static str) -> Self {
        Self::new(field, "not a protobuf message")
    }
}

/// `envoy.service.discovery.v3.Resource`. TP2's constraints need to be a message only: those of its draft have the same
/// numbers.
pub(crate) static RESOURCE: Shape = Shape(&[
    (1, "version", Type::Text),
    (2, "resource", Type::Message(&ANY)),
    (3, "name", Type::Text),
    (4, "aliases", Type::Text),
    (6, "ttl", Type::Message(&DURATION)),
    (7, "cache_control", Type::Message(&CACHE_CONTROL)),
    (8, "resource_name", Type::Message(&RESOURCE_NAME)),
    (9, "metadata", Type::Message(&METADATA)),
]);
pub(crate) static DURATION: Shape = Shape(&[(1, "seconds", Type::Varint), (2, "nanos", Type::Varint)]);

static CACHE_CONTROL: Shape = Shape(&[(1, "do_not_cache", Type::Varint)]);
static RESOURCE_NAME: Shape =
    Shape(&[(1, "name", Type::Text), (2, "dynamic_parameter_constraints", Type::Message(&OTHER))]);
static METADATA: Shape = Shape(&[
    (1, "filter_metadata", Type::Message(&FILTER_METADATA)),
    (2, "typed_filter_metadata", Type::Message(&TYPED_FILTER_METADATA)),
]);
static FILTER_METADATA: Shape =
    Shape(&[(1, "filter_metadata", Type::Text), (2, "filter_metadata", Type::Message(&STRUCT))]);
static TYPED_FILTER_METADATA: Shape =
    Shape(&[(1, "typed_filter_metadata", Type::Text), (2, "typed_filter_metadata", Type::Message(&ANY))]);
static ANY: Shape = Shape(&[(1, "type_url", Type::Text), (2, "value", Type::Bytes)]);
static STRUCT: Shape = Shape(&[(1, "fields", Type::Message(&STRUCT_ENTRY))]);
static STRUCT_ENTRY: Shape = Shape(&[(1, "fields", Type::Text), (2, "fields", Type::Message(&VALUE))]);
static VALUE: Shape = Shape(&[
    (1, "null_value", Type::Varint),
    (2, "number_value", Type::Fixed64),
    (3, "string_value", Type::Text),
    (4, "bool_value", Type::Varint),
    (5, "struct_value", Type::Message(&STRUCT)),
    (6, "list_value", Type::Message(&LIST_VALUE)),
]);
static LIST_VALUE: Shape = Shape(&[(1, "values", Type::Message(&VALUE))]);
static OTHER: Shape = Shape(&[]);

/// Protobuf decodes 100 messages within each other, and these are in a resource of a response.
const MOST_NESTED: usize = 98;

impl Shape {
    /// Whether a receiver decodes `message`, which is called `name`.
    pub(crate) fn check(&self, name: &'static str, message: &[u8]) -> Result<(), Undecodable> {
        self.check_nested(name, message, MOST_NESTED)
    }

    /// Whether a receiver of this message decodes this field of it.
    pub(crate) fn check_field(&self, field: &Field<'_>) -> Result<(), Undecodable> {
        self.check_field_nested(field, MOST_NESTED)
    }

    fn check_nested(&self, name: &'static str, message: &[u8], depth: usize) -> Result<(), Undecodable> {
        let Some(depth) = depth.checked_sub(1) else { return Err(Undecodable::new(name, "nested too deep")) };
        Fields::of(message).try_for_each(|field| {
            let field = field.map_err(|_| Undecodable::not_a_message(name))?;
            self.check_field_nested(&field, depth)
        })
    }

    fn check_field_nested(&self, field: &Field<'_>, depth: usize) -> Result<(), Undecodable> {
        let Some((_, name, of)) = self.0.iter().find(|(number, ..)| *number == field.number) else { return Ok(()) };
        match (of, field.value) {
            (Type::Varint, FieldValue::Varint(_))
            | (Type::Fixed64, FieldValue::Fixed64(_))
            | (Type::Bytes, FieldValue::Bytes(_)) => Ok(()),
            (Type::Text, FieldValue::Bytes(value)) => text(name, value).map(drop),
            (Type::Message(shape), FieldValue::Bytes(value)) => shape.check_nested(name, value, depth),
            _ => Err(Undecodable::new(name, "not of its type")),
        }
    }
}

/// The text of a field that must be one.
pub(crate) fn text<'a>(name: &'static str, value: &'a [u8]) -> Result<&'a str, Undecodable> {
    str::from_utf8(value).map_err(|_| Undecodable::new(name, "text that is not UTF-8"))
}

/// The type and the value of an encoded `google.protobuf.Any`: as protobuf has it, the last of each counts.
pub(crate) fn any(encoded: &[u8]) -> Result<(&str, &[u8]), Undecodable> {
    let (mut type_url, mut value) = ("", &[][..]);
    for field in Fields::of(encoded) {
        let field = field.map_err(|_| Undecodable::not_a_message("resource"))?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(field)) => type_url = text("type_url", field)?,
            (2, FieldValue::Bytes(field)) => value = field,
            _ => ANY.check_field(&field)?,
        }
    }
    Ok((type_url, value))
}
