//! The node of a downstream client, and the form of it in which equal nodes are equal bytes.

use bytes::Bytes;
use prost::Message;
use xds_transport::server::NodeError;
use xds_transport::wire::Node;
use xds_transport::wire::walk::{Field, FieldValue, Fields};

/// The node of a client's stream, decoded and as it was sent: a field that this program does not know is in the latter
/// only, and an origin may look at it.
///
/// ```
/// use xds_relay::relay_core::ClientNode;
///
/// let node = ClientNode::decode(b"\x0a\x01a".as_slice().into())?;
/// assert_eq!(node.message().id, "a");
/// let other = ClientNode::decode(b"\x0a\x01a\xf8\x07\x01".as_slice().into())?;
/// assert_eq!(node.message(), other.message());
/// assert_ne!(node.canonical()?, other.canonical()?, "field 127");
/// # Ok::<(), xds_transport::server::NodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientNode {
    encoded: Bytes,
    message: Node,
}

impl ClientNode {
    /// Decodes a node.
    ///
    /// # Errors
    /// When it is no node: not protobuf, a field of another type, text that is no UTF-8, or nested deeper than protobuf
    /// allows (100 messages).
    pub fn decode(encoded: Bytes) -> Result<Self, NodeError> {
        let undecoded =
            |error| NodeError::new(format!("{error} (or is the request of the other protocol, SotW or delta?)"));
        let message = Node::decode(encoded.clone()).map_err(undecoded)?;
        // Groups are skipped by the decoder, but what walks the fields would lose all that follows one.
        Fields::of(&encoded)
            .try_for_each(|field| field.map(drop))
            .map_err(|error| NodeError::new(error.to_string()))?;
        Ok(Self { encoded, message })
    }

    /// The fields that are known here.
    pub fn message(&self) -> &Node {
        &self.message
    }

    /// As the client sent it.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// The node with all its fields, known or not, but for what has no order: the entries of maps, extensions and client
    /// features are sorted. A protobuf message of the same length, which decodes to the same node.
    ///
    /// # Errors
    /// When something in it is of a form that has been gone since proto2 (groups).
    pub fn canonical(&self) -> Result<Vec<u8>, NodeError> {
        let mut canonical = Vec::with_capacity(self.encoded.len());
        Of::Node.write(&self.encoded, MOST_NESTED, &mut canonical)?;
        Ok(canonical)
    }
}

/// As deep as protobuf decodes.
const MOST_NESTED: usize = 100;

/// The messages of a node, as far as there is something in them that has no order.
#[derive(Clone, Copy)]
enum Of {
    Node,
    Extension,
    BuildVersion,
    Struct,
    StructEntry,
    Value,
    ListValue,
    /// A message or text of which nothing must be known.
    Other,
}

enum Kind {
    Plain,
    Message(Of),
    /// A list that is meant as a set.
    Set(Of),
    /// Entries with a key (field 1), of which the last with a key counts.
    Map(Of),
}

impl Of {
    fn kind(self, number: u32) -> Kind {
        match (self, number) {
            (Self::Node, 3) | (Self::BuildVersion, 2) | (Self::Value, 5) => Kind::Message(Self::Struct),
            (Self::Node, 8) | (Self::Extension, 4) => Kind::Message(Self::BuildVersion),
            (Self::Node, 9) => Kind::Set(Self::Extension),
            (Self::Node, 10) => Kind::Set(Self::Other),
            (Self::Node, 12) => Kind::Map(Self::Other),
            (Self::Struct, 1) => Kind::Map(Self::StructEntry),
            (Self::StructEntry, 2) | (Self::ListValue, 1) => Kind::Message(Self::Value),
            (Self::Value, 6) => Kind::Message(Self::ListValue),
            _ => Kind::Plain,
        }
    }

    /// Appends the canonical form of `message`. What has an order stays in it: of several fields the last may be the one
    /// that counts. Bytes are written once, in an extension twice, however deep they are.
    fn write(self, message: &[u8], depth: usize, into: &mut Vec<u8>) -> Result<(), NodeError> {
        let Some(depth) = depth.checked_sub(1) else { return Err(NodeError::new("nested too deep")) };
        if matches!(self, Self::Other) {
            into.extend_from_slice(message);
            return Ok(());
        }
        let mut sets: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut maps: Vec<(u32, &[u8], Delimited<'_>)> = Vec::new();
        let mut fields = Fields::of(message);
        while let Some(field) = fields.next_encoded() {
            let (field, encoded) = field.map_err(|error| NodeError::new(error.to_string()))?;
            let FieldValue::Bytes(content) = field.value else {
                into.extend_from_slice(encoded);
                continue;
            };
            let delimited =
                Delimited { head: encoded.get(..encoded.len() - content.len()).unwrap_or_default(), content };
            match self.kind(field.number) {
                Kind::Plain => into.extend_from_slice(encoded),
                Kind::Message(of) => delimited.write(of, depth, into)?,
                Kind::Set(of) => {
                    let mut member = Vec::with_capacity(encoded.len());
                    delimited.write(of, depth, &mut member)?;
                    sets.push((field.number, member));
                }
                Kind::Map(_) => maps.push((field.number, delimited.key(), delimited)),
            }
        }
        sets.sort();
        sets.iter().for_each(|(_, member)| into.extend_from_slice(member));
        // Stable: of two entries with one key the last counts.
        maps.sort_by_key(|(number, key, _)| (*number, *key));
        for (number, _, delimited) in maps {
            if let Kind::Map(of) = self.kind(number) {
                delimited.write(of, depth, into)?;
            }
        }
        Ok(())
    }
}

/// A field with content: what stands before it, and the content.
struct Delimited<'a> {
    head: &'a [u8],
    content: &'a [u8],
}

impl<'a> Delimited<'a> {
    /// The canonical form of the content is as long as the content: the head stays.
    fn write(&self, of: Of, depth: usize, into: &mut Vec<u8>) -> Result<(), NodeError> {
        into.extend_from_slice(self.head);
        of.write(self.content, depth, into)
    }

    /// The key of a map's entry, empty where it is left out.
    fn key(&self) -> &'a [u8] {
        let keys = Fields::of(self.content).flatten().filter_map(|field| match field {
            Field { number: 1, value: FieldValue::Bytes(key) } => Some(key),
            _ => None,
        });
        keys.last().unwrap_or_default()
    }
}
