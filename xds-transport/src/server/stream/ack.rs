//! The most frequent request by far: an ACK that says nothing else, read where it is.

use std::str;

use crate::wire::walk::{FieldValue, Fields};

/// The fields of `DeltaDiscoveryRequest`.
const TYPE_URL: u32 = 2;
const RESPONSE_NONCE: u32 = 6;
/// Longer requests list something.
const SHORT: usize = 512;

/// The type URL, which may be no text, and the nonce of a delta request that has no other fields.
pub(crate) fn of_delta(request: &[u8]) -> Option<(&[u8], &str)> {
    if request.len() > SHORT {
        return None;
    }
    let (mut type_url, mut nonce) = (None, None);
    for field in Fields::of(request) {
        let field = field.ok()?;
        let (TYPE_URL | RESPONSE_NONCE, FieldValue::Bytes(text)) = (field.number, field.value) else { return None };
        // As a decoder has it: of a field that is there twice, the last.
        if field.number == TYPE_URL {
            type_url = Some(text);
        } else {
            nonce = Some(str::from_utf8(text).ok()?);
        }
    }
    Some((type_url?, nonce?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::wire::{DeltaDiscoveryRequest, Status};

    fn ack() -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            type_url: "type.example.com/T".into(),
            response_nonce: "7".into(),
            ..DeltaDiscoveryRequest::default()
        }
    }

    #[test]
    fn an_ack_is_read_as_it_is_decoded() {
        let twice =
            [ack().encode_to_vec(), DeltaDiscoveryRequest { response_nonce: "8".into(), ..ack() }.encode_to_vec()];
        let message = twice.concat();
        let decoded = DeltaDiscoveryRequest::decode(&message[..]).unwrap();
        assert_eq!(of_delta(&message), Some((decoded.type_url.as_bytes(), &*decoded.response_nonce)));
        assert_eq!(of_delta(&ack().encode_to_vec()), Some((&b"type.example.com/T"[..], "7")));
    }

    #[test]
    fn what_says_more_is_no_mere_ack() {
        let more = [
            DeltaDiscoveryRequest { node: Bytes::from_static(b"\x0a\x01n"), ..ack() },
            DeltaDiscoveryRequest { resource_names_subscribe: vec![String::new()], ..ack() },
            DeltaDiscoveryRequest { resource_names_unsubscribe: vec!["n".into()], ..ack() },
            DeltaDiscoveryRequest { initial_resource_versions: vec![Bytes::new()], ..ack() },
            DeltaDiscoveryRequest { error_detail: Some(Status::default()), ..ack() },
            DeltaDiscoveryRequest { type_url: String::new(), ..ack() },
            DeltaDiscoveryRequest { response_nonce: String::new(), ..ack() },
        ];
        for request in more {
            assert_eq!(of_delta(&request.encode_to_vec()), None, "{request:?}");
        }
        let unknown = [&ack().encode_to_vec()[..], b"\x7a\x00"].concat();
        assert_eq!(of_delta(&unknown), None);
        assert_eq!(of_delta(b"\x12\x01t\x32\x01\xff"), None, "what is no text is for the decoder to tell");
        assert_eq!(of_delta(&ack().encode_to_vec()[..10]), None);
        assert_eq!(of_delta(&DeltaDiscoveryRequest { type_url: "t".repeat(SHORT), ..ack() }.encode_to_vec()), None);
    }

    proptest! {
        /// Whatever it is taken for: the decoder finds the same, and nothing else.
        #[test]
        fn a_mere_ack_is_decoded_to_no_more(message in prop::collection::vec(
            prop_oneof![Just(0x12_u8), Just(0x32), Just(1), Just(2), Just(b'n'), any::<u8>()], 0..24))
        {
            if let Some((type_url, response_nonce)) = of_delta(&message) && let Ok(type_url) = str::from_utf8(type_url) {
                let expected = DeltaDiscoveryRequest {
                    type_url: type_url.into(),
                    response_nonce: response_nonce.into(),
                    ..DeltaDiscoveryRequest::default()
                };
                prop_assert_eq!(DeltaDiscoveryRequest::decode(&message[..]), Ok(expected));
            }
        }
    }
}
