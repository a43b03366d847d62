//! What an origin is told in the metadata of every node, whoever speaks to it.

use std::sync::Arc;
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use serde_json::{Map, Value};
use tonic::metadata::MetadataMap;
use xds_transport::client::{Command, Update, Verdict};
use xds_transport::wire::Struct;
use xds_transport::wire::walk::{FieldValue, Fields, text_at};
use xdstp_cache::{ResourceError, Selector, TypeUrl};
use xdstp_client::federation::{Dial, Dialed, Position};
use xdstp_client::upstream::{Connection, Consumer};

use crate::struct_json::to_struct;

/// The key of `Node.metadata`: field 3, of a known length.
const METADATA: (u32, u8) = (3, 3 << 3 | 2);
/// The entries of a struct, and the key of each.
const ENTRY: u32 = 1;
const ENTRY_KEY: u32 = 1;

/// Streams are opened as others open them, by nodes that have this metadata, too.
struct WithMetadata {
    dial: Arc<dyn Dial>,
    metadata: Arc<Struct>,
}

/// Who asks on a stream, and names another node when it is opened again: looked at once for each stream, however many clients are
/// behind it.
struct Speaking {
    consumer: Box<dyn Consumer>,
    metadata: Arc<Struct>,
}

/// How an origin is dialed that is told this.
pub(crate) fn with_metadata(dial: &Arc<dyn Dial>, metadata: &Map<String, Value>) -> Arc<dyn Dial> {
    if metadata.is_empty() {
        return dial.clone();
    }
    Arc::new(WithMetadata { dial: dial.clone(), metadata: Arc::new(to_struct(metadata)) })
}

impl Dial for WithMetadata {
    fn dial(&self, server: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let metadata = self.metadata.clone();
        self.dial.dial(server, having(&node, &metadata), Box::new(Speaking { consumer, metadata }))
    }
}

impl Consumer for Speaking {
    fn node(&mut self) -> Option<Bytes> {
        self.consumer.node().map(|node| having(&node, &self.metadata))
    }

    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        self.consumer.commands(now, apply);
    }

    fn has_more_commands(&self) -> bool {
        self.consumer.has_more_commands()
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        self.consumer.update(now, update)
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        self.consumer.connection(now, connection);
    }

    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError) {
        self.consumer.type_ended(now, type_url, error);
    }

    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        self.consumer.type_opened(now, type_url);
    }

    fn another_server(&mut self, now: Instant) {
        self.consumer.another_server(now);
    }

    fn selector(&self) -> Selector {
        self.consumer.selector()
    }

    fn metadata(&mut self) -> MetadataMap {
        self.consumer.metadata()
    }

    fn opened(&mut self, metadata: &MetadataMap) -> Result<(), String> {
        self.consumer.opened(metadata)
    }

    fn received(&mut self, at: Instant) {
        self.consumer.received(at);
    }

    fn too_long(&mut self) {
        self.consumer.too_long();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.consumer.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.consumer.handle_timeout(now);
    }
}

/// A node that has these entries in its metadata, in place of those with the same keys: no client says what the relay says. All else stays
/// byte for byte. There is one field for the metadata, as not everybody who decodes makes one of two.
fn having(node: &Bytes, added: &Struct) -> Bytes {
    let (mut out, mut metadata) = (BytesMut::with_capacity(node.len() + added.encoded_len() + 16), Vec::new());
    let mut fields = Fields::of(node);
    while let Some(Ok((field, encoded))) = fields.next_encoded() {
        match field.value {
            FieldValue::Bytes(theirs) if field.number == METADATA.0 => keep_others(theirs, added, &mut metadata),
            _ => out.extend_from_slice(encoded),
        }
    }
    metadata.extend_from_slice(&added.encode_to_vec());
    out.put_u8(METADATA.1);
    // Of a buffer that grows it never fails.
    let _ = prost::encode_length_delimiter(metadata.len(), &mut out);
    out.extend_from_slice(&metadata);
    out.freeze()
}

fn keep_others(theirs: &[u8], added: &Struct, into: &mut Vec<u8>) {
    let mut fields = Fields::of(theirs);
    while let Some(Ok((field, encoded))) = fields.next_encoded() {
        let is_said = match field.value {
            FieldValue::Bytes(entry) if field.number == ENTRY => {
                added.fields.contains_key(text_at(entry, &[ENTRY_KEY]).unwrap_or_default())
            }
            _ => false,
        };
        if !is_said {
            into.extend_from_slice(encoded);
        }
    }
}

#[cfg(test)]
mod tests {
    use xds_transport::wire::Node;

    use super::*;

    fn metadata(json: &str) -> Struct {
        to_struct(&serde_json::from_str(json).unwrap())
    }

    fn node(json: &str) -> Vec<u8> {
        Node { id: "a".into(), metadata: Some(metadata(json)), ..Node::default() }.encode_to_vec()
    }

    #[test]
    fn what_the_relay_says_is_beside_what_the_client_says_and_before_it_where_both_say_it() {
        let added = metadata(r#"{ "relay": "r", "both": { "x": 1 } }"#);
        let of = |node: Vec<u8>| Node::decode(having(&node.into(), &added)).unwrap();
        let both = of(node(r#"{ "own": [true], "both": { "y": 2 } }"#));
        assert_eq!(both.id, "a");
        assert_eq!(both.metadata.unwrap(), metadata(r#"{ "relay": "r", "both": { "x": 1 }, "own": [true] }"#));
        assert_eq!(of(Node { id: "a".into(), ..Node::default() }.encode_to_vec()).metadata, Some(added.clone()));
        assert_eq!(of(Vec::new()), Node { metadata: Some(added.clone()), ..Node::default() });
    }

    /// As decoders differ: of two fields some take the last one, of two entries of a map some the first.
    #[test]
    fn there_is_one_field_and_one_entry_of_each_key_and_what_is_not_known_stays() {
        let added = metadata(r#"{ "b": 1 }"#);
        let unknown = b"\xf8\x07\x01";
        let twice = [node(r#"{ "a": 1, "b": 2 }"#), unknown.to_vec(), node(r#"{ "b": 3, "c": 4 }"#)].concat();
        let told = having(&twice.into(), &added);
        let fields: Vec<_> = Fields::of(&told).map(Result::unwrap).collect();
        let of: Vec<_> = fields.iter().filter(|field| field.number == 3).collect();
        assert_eq!((of.len(), fields.iter().filter(|field| field.number == 127).count()), (1, 1));
        let FieldValue::Bytes(metadata) = of[0].value else { panic!("{of:?}") };
        let keys: Vec<_> = Fields::of(metadata)
            .map(|field| match field.unwrap().value {
                FieldValue::Bytes(entry) => text_at(entry, &[1]).unwrap().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(keys, ["a", "c", "b"]);
    }
}
