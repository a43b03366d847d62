//! A request beside its list of names, which is most of it: over SotW every request repeats it, and most need not be read.

use bytes::{Buf, Bytes};

use crate::wire::walk::{Field, FieldValue, Fields};

/// `DiscoveryRequest.resource_names`, and `DeltaDiscoveryRequest.resource_names_subscribe`.
const RESOURCE_NAMES: u32 = 3;

/// Room is made for so many names as the first one says that there are, and not for more.
const MOST: usize = 1024;

/// A request in two parts.
pub(crate) struct Split {
    /// The encoded list of names.
    pub(crate) names: Bytes,
    before: Bytes,
    after: Bytes,
}

impl Split {
    /// Takes a request apart; `None` where other fields stand between its names, or where it makes no sense.
    pub(crate) fn of(message: &Bytes) -> Option<Self> {
        let (mut start, mut end) = (message.len(), message.len());
        let mut at = 0;
        let mut fields = Fields::of(message);
        while let Some(field) = fields.next_encoded() {
            let (field, encoded) = field.ok()?;
            let next = at + encoded.len();
            if field.number == RESOURCE_NAMES {
                match start == message.len() {
                    true => start = at,
                    false if end != at => return None,
                    false => {}
                }
                end = next;
            }
            at = next;
        }
        Some(Self { names: message.slice(start..end), before: message.slice(..start), after: message.slice(end..) })
    }

    /// The names, borrowed from the request; `None` if one is no text.
    pub(crate) fn texts(&self) -> Option<Vec<&str>> {
        // Where all of it is text, with what stands between the names, none need be looked at again.
        let all = std::str::from_utf8(&self.names).ok();
        let mut fields = Fields::of(&self.names);
        let mut texts = Vec::new();
        let mut at = 0;
        while let Some(field) = fields.next_encoded() {
            let (Field { value: FieldValue::Bytes(name), .. }, encoded) = field.ok()? else { return None };
            if texts.is_empty() {
                texts.reserve((self.names.len() / encoded.len().max(1)).min(MOST));
            }
            at += encoded.len();
            let text = all.and_then(|all| all.get(at - name.len()..at));
            texts.push(text.or_else(|| std::str::from_utf8(name).ok())?);
        }
        Some(texts)
    }

    /// The request without its names.
    pub(crate) fn others(&self) -> impl Buf {
        self.before.clone().chain(self.after.clone())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::wire::DiscoveryRequest;

    fn request(names: &[&str]) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: "7".into(),
            node: Bytes::from_static(b"\x0a\x01n"),
            resource_names: names.iter().map(|name| (*name).into()).collect(),
            type_url: "t".into(),
            response_nonce: "9".into(),
            ..DiscoveryRequest::default()
        }
    }

    #[test]
    fn the_names_and_the_others_are_the_request() {
        for names in [&[][..], &["a"], &["a", "", "c"]] {
            let whole = request(names);
            let split = Split::of(&whole.encode_to_vec().into()).unwrap();
            assert_eq!(DiscoveryRequest::decode(split.others()).unwrap(), request(&[]));
            assert_eq!(split.texts().unwrap(), names);
            assert_eq!(DiscoveryRequest::decode(split.names).unwrap().resource_names, whole.resource_names);
        }
    }

    #[test]
    fn a_name_is_a_text_by_itself_however_long_and_whatever_stands_beside_it() {
        let (long, longer) = ("n".repeat(127), "\u{e9}".repeat(100));
        let names = ["\u{e9}", &long, "a", &longer, "b\u{20ac}", ""];
        let encoded = request(&names).encode_to_vec();
        assert_eq!(Split::of(&encoded.clone().into()).unwrap().texts().unwrap(), names);
        // The last byte of a text is missing in one, and is the first of the next.
        for broken in [&b"\x1a\x01\xc3\x1a\x01a"[..], b"\x1a\x01\xc3\x1a\x02\xa9a", b"\x1a\x01a\x1a\x02\xa9a"] {
            let split = Split::of(&Bytes::copy_from_slice(broken)).unwrap();
            assert_eq!(split.texts(), None);
        }
    }

    #[test]
    fn names_among_other_fields_and_what_is_no_request_are_not_taken_apart() {
        let scattered = [request(&["a"]), request(&["b"])].map(|request| request.encode_to_vec()).concat();
        assert!(Split::of(&scattered.into()).is_none());
        assert!(Split::of(&Bytes::from_static(b"\x1a\x05a")).is_none());
        assert!(Split::of(&Bytes::from_static(b"\x1a\x01\xff")).unwrap().texts().is_none());
        assert!(Split::of(&Bytes::from_static(b"\x18\x01")).unwrap().texts().is_none());
    }
}
