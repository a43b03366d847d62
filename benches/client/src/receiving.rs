//! What is compared with this project's way to receive a response.

use std::hint::black_box;

use bytes::Bytes;
use xds_transport::wire::walk::{FieldValue, Fields};

/// A response as prost has it by default.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Decoded {
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<DecodedResource>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub nonce: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DecodedResource {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, optional, tag = "2")]
    pub resource: Option<DecodedAny>,
    #[prost(string, tag = "3")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DecodedAny {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// Where the version, the name and the body of each resource are: all that is needed to pass it on.
pub fn walk(message: Bytes) -> usize {
    let mut found = 0;
    for field in Fields::of(&message).flatten() {
        let (2, FieldValue::Bytes(resource)) = (field.number, field.value) else { continue };
        let (mut version, mut name, mut body) = (&[][..], &[][..], Bytes::new());
        for field in Fields::of(resource).flatten() {
            match (field.number, field.value) {
                (1, FieldValue::Bytes(value)) => version = value,
                (2, FieldValue::Bytes(value)) => body = message.slice_ref(value),
                (3, FieldValue::Bytes(value)) => name = value,
                _ => {}
            }
        }
        black_box((version, name, body));
        found += 1;
    }
    found
}
