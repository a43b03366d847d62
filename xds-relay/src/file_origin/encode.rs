//! Messages to bytes, the same bytes for the same message in every process.
//!
//! Reflection keeps a map field in a hash map with a seed of its own, and encodes in its order; what is inside an
//! `Any` is encoded already while it is read. A version that is a hash of such bytes would change with every restart
//! and resend everything. Here the entries of every map are in the order of their keys, also inside every `Any`.

use prost::bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost::{DecodeError, Message};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value,
};

use super::descriptors::ANY;

pub(super) const ANY_TYPE_URL: u32 = 1;
pub(super) const ANY_VALUE: u32 = 2;
const ENTRY_KEY: u32 = 1;
const ENTRY_VALUE: u32 = 2;

/// Encodes a message.
///
/// # Errors
/// Messages inside an `Any` nest deeper than protobuf readers go.
pub(super) fn encode(mut message: DynamicMessage) -> Result<Vec<u8>, DecodeError> {
    if let Some(inner) = unpack(&message)? {
        message.set_field_by_number(ANY_VALUE, Value::Bytes(Bytes::from(encode(inner)?)));
        return Ok(message.encode_to_vec());
    }
    let nested: Vec<FieldDescriptor> = message.fields().map(|(field, _)| field).filter(holds_messages).collect();
    let nested: Vec<_> =
        nested.into_iter().filter_map(|field| message.take_field(&field).map(|value| (field, value))).collect();

    // A message is its fields in any order: here the scalars by number, then the others by number.
    let mut bytes = message.encode_to_vec();
    for (field, value) in nested {
        match value {
            Value::Message(inner) => append(&field, inner, &mut bytes)?,
            Value::List(items) => {
                for item in items {
                    if let Value::Message(inner) = item {
                        append(&field, inner, &mut bytes)?;
                    }
                }
            }
            Value::Map(entries) => {
                let Kind::Message(entry_type) = field.kind() else { continue };
                let mut entries: Vec<(MapKey, Value)> = entries.into_iter().collect();
                entries.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
                for (key, value) in entries {
                    let mut entry = DynamicMessage::new(entry_type.clone());
                    entry.set_field_by_number(ENTRY_KEY, key.into());
                    entry.set_field_by_number(ENTRY_VALUE, value);
                    append(&field, entry, &mut bytes)?;
                }
            }
            _ => {}
        }
    }
    Ok(bytes)
}

/// What an `Any` holds; `None` for another message, and for an `Any` of no known type.
///
/// # Errors
/// The value is not what the type says.
pub(super) fn unpack(message: &DynamicMessage) -> Result<Option<DynamicMessage>, DecodeError> {
    let descriptor = message.descriptor();
    if descriptor.full_name() != ANY {
        return Ok(None);
    }
    let (Some(type_url), Some(value)) =
        (message.get_field_by_number(ANY_TYPE_URL), message.get_field_by_number(ANY_VALUE))
    else {
        return Ok(None);
    };
    let inner = type_url.as_str().and_then(|type_url| type_of(descriptor.parent_pool(), type_url));
    let (Some(inner), Some(value)) = (inner, value.as_bytes()) else { return Ok(None) };
    DynamicMessage::decode(inner, value.clone()).map(Some)
}

/// The type that a type URL names, if it is known.
pub(super) fn type_of(pool: &DescriptorPool, type_url: &str) -> Option<MessageDescriptor> {
    pool.get_message_by_name(type_url.rsplit_once('/')?.1)
}

/// Whether the field's values are length-delimited messages. (A proto2 group is not; no configuration has one.)
fn holds_messages(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(_)) && !field.is_group()
}

fn append(field: &FieldDescriptor, message: DynamicMessage, bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
    let message = encode(message)?;
    encode_key(field.number(), WireType::LengthDelimited, bytes);
    encode_varint(message.len() as u64, bytes);
    bytes.extend_from_slice(&message);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::DeserializeSeed;

    use super::*;
    use crate::file_origin::Descriptors;
    use crate::yaml;

    /// A map in the message, one in a `Struct`, and both again inside an `Any` inside an `Any`.
    const MAPS: &str = r#"
"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
name: outer
typed_config:
  "@type": type.googleapis.com/envoy.config.core.v3.Metadata
  filter_metadata:
    a: {z: 1, y: [{q: 1, p: 2}], x: "3"}
    b: {}
    c: {k: 1, l: 2}
    d: {}
    e: {}
    f: {}
  typed_filter_metadata:
    h:
      "@type": type.googleapis.com/google.protobuf.Struct
      value: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}
    g: {"@type": type.googleapis.com/google.protobuf.Empty, value: {}}
"#;

    fn any(text: &str) -> DynamicMessage {
        let descriptors = Descriptors::built_in().unwrap();
        descriptors.any.deserialize(&yaml::parse(text).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn rule_035_the_same_file_gives_the_same_bytes_however_its_maps_were_hashed() {
        let messages: Vec<DynamicMessage> = (0..16).map(|_| any(MAPS)).collect();
        let hashed: BTreeSet<Vec<u8>> = messages.iter().map(Message::encode_to_vec).collect();
        assert!(hashed.len() > 1, "every hash map has its own seed; without that this test shows nothing");

        let sorted: BTreeSet<Vec<u8>> = messages.into_iter().map(|message| encode(message).unwrap()).collect();
        assert_eq!(sorted.len(), 1);
    }

    #[test]
    fn the_bytes_decode_to_the_message_that_was_encoded() {
        let message = unpack(&any(MAPS)).unwrap().unwrap();
        let decoded = DynamicMessage::decode(message.descriptor(), encode(message).unwrap().as_slice()).unwrap();
        let metadata = unpack(decoded.get_field_by_name("typed_config").unwrap().as_message().unwrap());
        let metadata = metadata.unwrap().unwrap();
        let keys = |name| metadata.get_field_by_name(name).unwrap().as_map().unwrap().len();
        assert_eq!((keys("filter_metadata"), keys("typed_filter_metadata")), (6, 2));
    }

    #[test]
    fn map_entries_are_in_the_order_of_their_keys() {
        let text = "{\"@type\": type.googleapis.com/google.protobuf.Struct, value: {c: ~, a: ~, b: ~}}";
        let bytes = encode(unpack(&any(text)).unwrap().unwrap()).unwrap();
        let null = |key: u8| vec![0x0a, 7, 0x0a, 1, key, 0x12, 2, 0x08, 0];
        assert_eq!(bytes, [null(b'a'), null(b'b'), null(b'c')].concat());
    }
}
