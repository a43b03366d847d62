//! Rule 154: who cannot be identified is refused, and who can be told apart does not share by accident.

use std::task::Waker;

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use prost::Message;
use xds_relay::relay_core::{ClientNode, EveryNode, NodeGrouping, ShareBy};
use xds_transport::server::Stream;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Node, Struct, Value, value};

use crate::support::*;

/// A field whose value is bytes.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(number, &content.to_vec(), &mut out);
    out
}

/// Metadata with one struct in another, `depth` of them, itself included.
fn nested(depth: usize) -> Vec<u8> {
    let inner = (0..depth).fold(Vec::new(), |inner, _| {
        let value = if inner.is_empty() { b"\x20\x01".to_vec() } else { field(5, &inner) };
        field(1, &[field(1, b"k"), field(2, &value)].concat())
    });
    [field(1, b"a"), field(3, &inner)].concat()
}

/// The nodes that are none, and a word of the reason.
fn broken() -> Vec<(Bytes, &'static str)> {
    let id = field(1, b"a");
    let after_id = |more: &[u8]| Bytes::from([id.as_slice(), more].concat());
    vec![
        (nested(34).into(), "recursion"),
        (nested(2000).into(), "recursion"),
        (Bytes::from(field(1, b"\xff")), "UTF-8"),
        (after_id(&field(2, b"\xff")), "UTF-8"),
        (after_id(&field(3, &field(1, &field(1, b"\xff")))), "UTF-8"),
        (after_id(&field(10, b"\xff")), "UTF-8"),
        (after_id(b"\x10\x01"), "wire type"),
        (after_id(b"\x12\x7f"), "buffer"),
        (after_id(b"\x7b\x7c\x12\x01b"), "not a protobuf message"),
    ]
}

#[test]
fn rule_154_a_node_that_cannot_be_decoded_is_refused() {
    for more in ["", "share_by: [id]", "share_by: [cluster]"] {
        let mut world = World::of(&[DELTA], &[&["a"]], more);
        world.put(0, CLUSTERS, "secret", "1");
        for (node, reason) in broken() {
            for protocol in [DELTA, SOTW] {
                let core = &world.relays[0].core;
                let mut routes = core.open_stream(protocol, Waker::noop().clone(), None);
                let mut stream = Stream::new(protocol, core.settings());
                let node = node.clone();
                let request = match protocol {
                    DELTA => {
                        DeltaDiscoveryRequest { node, type_url: CLUSTERS.into(), ..Default::default() }.encode_to_vec()
                    }
                    _ => DiscoveryRequest { node, type_url: CLUSTERS.into(), ..Default::default() }.encode_to_vec(),
                };
                let refused = stream.handle_message(world.now, request.into(), &mut routes).unwrap_err();
                assert_eq!(refused.code(), 3, "INVALID_ARGUMENT");
                let words = refused.to_string();
                assert!(words.starts_with("a node that is refused: ") && words.contains(reason), "{words}");
                assert_eq!(stream.poll_transmit(world.now, &mut routes).unwrap_err(), refused, "it stays so");
                stream.close(&mut routes);
            }
        }
        world.settle();
        assert_eq!(world.asked(0), [""; 0], "{more}");
        assert_eq!(world.scopes_of(0), [""; 0], "{more}");
    }
}

#[test]
fn metadata_as_deep_as_protobuf_allows_is_grouped() {
    let node = ClientNode::decode(nested(33).into()).unwrap();
    assert_eq!(node.canonical().unwrap(), *node.encoded());
}

#[test]
fn rule_154_nodes_that_an_origin_can_tell_apart_do_not_share() {
    let node = |more: &[u8]| ClientNode::decode([&field(1, b"a"), more].concat().into()).unwrap();
    let entry = |key: &[u8], value: &[u8]| field(1, &[field(1, key), field(2, value)].concat());
    let (one, two) = (b"\x20\x01", b"\x1a\x01s");
    let twice = |first: &[u8], last: &[u8]| field(3, &[entry(b"k", first), entry(b"k", last)].concat());
    let both = |first: &[u8], last: &[u8]| field(3, &entry(b"k", &[first, last].concat()));
    let mut nodes = vec![
        node(b""),
        node(b"\xf8\x07\x01"),
        node(b"\xf8\x07\x02"),
        node(&field(127, b"x")),
        node(&field(3, b"")),
        node(&field(3, b"\xf8\x07\x01")),
        node(&field(3, &entry(b"k", b"\xf8\x07\x01"))),
        node(&field(4, b"\xf8\x07\x01")),
        node(&field(9, b"\xf8\x07\x01")),
        node(&field(11, b"\x0a\x01x")),
        // Of two entries with one key, and of two kinds of one value, the last counts.
        node(&twice(one, two)),
        node(&twice(two, one)),
        node(&both(one, two)),
        node(&both(two, one)),
        node(&[field(7, b"1"), field(8, b"")].concat()),
        node(&[field(8, b""), field(7, b"1")].concat()),
        node(&[field(10, b"f"), field(10, b"f")].concat()),
        node(&field(10, b"f")),
    ];
    for at in 0..nodes.len() {
        let this = nodes.swap_remove(at);
        for other in &nodes {
            assert_ne!(EveryNode.group(&this).unwrap(), EveryNode.group(other).unwrap(), "{this:?} {other:?}");
        }
        nodes.insert(at, this);
    }
}

#[test]
fn rule_154_who_lacks_what_nodes_share_by_shares_with_nobody() {
    for (share_by, lacking) in [
        ("id", Node::default()),
        ("cluster", Node::default()),
        ("locality", Node { locality: Some(Default::default()), ..Node::default() }),
        ("locality.zone", Node::default()),
        ("metadata.k", Node::default()),
        ("metadata.k", Node { metadata: Some(metadata("k", Value { kind: None })), ..Node::default() }),
        ("metadata.k.l", Node { metadata: Some(metadata("k", text("l"))), ..Node::default() }),
    ] {
        let grouping = ShareBy::new(vec![share_by.parse().unwrap()]);
        let group = |agent: &str| {
            let node = Node { user_agent_name: agent.into(), ..lacking.clone() };
            grouping.group(&ClientNode::decode(node.encode_to_vec().into()).unwrap()).unwrap()
        };
        assert_ne!(group("one"), group("two"), "{share_by}");
        assert_eq!(group("one"), group("one"), "{share_by}: equal in everything");
        let label = group("one").to_string();
        assert!(label.ends_with(&format!(", shares with nobody: it has no {share_by}")), "{label}");
    }
}

fn text(text: &str) -> Value {
    Value { kind: Some(value::Kind::StringValue(text.into())) }
}

fn metadata(key: &str, value: Value) -> Struct {
    Struct { fields: [(key.to_owned(), value)].into() }
}

/// A value of metadata, with a field nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meta {
    Text(u8),
    Unknown(u8),
    List(Vec<Self>),
    Struct(Entries),
}

type Entries = std::collections::BTreeMap<u8, Meta>;

/// What an origin sees of a node. Sets are sorted here, so that equal models are equal nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    id: u8,
    metadata: Entries,
    /// Name, and the metadata of its version.
    extensions: Vec<(u8, Entries)>,
    features: Vec<u8>,
    parameters: std::collections::BTreeMap<u8, u8>,
    unknown: Option<u8>,
}

fn models() -> impl Strategy<Value = Model> {
    let leaf = prop_oneof![(0..2_u8).prop_map(Meta::Text), (0..2_u8).prop_map(Meta::Unknown)];
    let meta = leaf.prop_recursive(4, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Meta::List),
            prop::collection::btree_map(0..3_u8, inner, 0..3).prop_map(Meta::Struct),
        ]
    });
    let entries = prop::collection::btree_map(0..3_u8, meta, 0..3);
    let sorted = |mut all: Vec<_>| {
        all.sort();
        all
    };
    (
        0..2_u8,
        entries.clone(),
        prop::collection::vec((0..2_u8, entries), 0..3).prop_map(sorted),
        prop::collection::vec(0..3_u8, 0..3).prop_map(|mut all| {
            all.sort();
            all
        }),
        prop::collection::btree_map(0..3_u8, 0..2_u8, 0..3),
        prop::option::of(0..2_u8),
    )
        .prop_map(|(id, metadata, extensions, features, parameters, unknown)| Model {
            id,
            metadata,
            extensions,
            features,
            parameters,
            unknown,
        })
}

/// Encodes a model, with whatever has no order in the order that `shuffle` says.
struct Encoder<'a> {
    shuffle: &'a mut dyn FnMut(usize) -> usize,
}

impl Encoder<'_> {
    fn any_order(&mut self, mut parts: Vec<Vec<u8>>) -> Vec<u8> {
        for left in (1..parts.len()).rev() {
            parts.swap(left, (self.shuffle)(left + 1));
        }
        parts.concat()
    }

    fn entries(&mut self, entries: &Entries) -> Vec<u8> {
        let parts = entries.iter().map(|(key, value)| {
            field(1, &[field(1, key.to_string().as_bytes()), field(2, &self.value(value))].concat())
        });
        let parts = parts.collect();
        self.any_order(parts)
    }

    fn value(&mut self, value: &Meta) -> Vec<u8> {
        match value {
            Meta::Text(text) => field(3, text.to_string().as_bytes()),
            Meta::Unknown(byte) => field(100, &[*byte]),
            Meta::List(items) => {
                let items: Vec<_> = items.iter().map(|item| field(1, &self.value(item))).collect();
                field(6, &items.concat())
            }
            Meta::Struct(entries) => field(5, &self.entries(entries)),
        }
    }

    fn node(&mut self, model: &Model) -> Bytes {
        let mut out = BytesMut::from(field(1, &[b'0' + model.id]).as_slice());
        out.put_slice(&field(3, &self.entries(&model.metadata)));
        let extensions = model.extensions.iter().map(|(name, version)| {
            let version = field(2, &self.entries(version));
            field(9, &[field(1, &[b'0' + *name]), field(4, &version)].concat())
        });
        let extensions = extensions.collect();
        out.put_slice(&self.any_order(extensions));
        let features = model.features.iter().map(|feature| field(10, &[b'0' + *feature])).collect();
        out.put_slice(&self.any_order(features));
        let parameters = model.parameters.iter();
        let entry = |(key, value): (&u8, &u8)| field(12, &[field(1, &[b'0' + *key]), field(2, &[*value])].concat());
        let parameters = parameters.map(entry).collect();
        out.put_slice(&self.any_order(parameters));
        if let Some(unknown) = model.unknown {
            out.put_slice(&field(200, &[unknown]));
        }
        out.freeze()
    }
}

fn node_of(model: &Model, seed: u64) -> ClientNode {
    let mut state = seed | 1;
    let mut shuffle = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    ClientNode::decode(Encoder { shuffle: &mut shuffle }.node(model)).unwrap()
}

proptest! {
    #[test]
    fn rule_154_two_nodes_share_a_group_iff_they_are_equal_but_for_what_has_no_order(
        model in models(),
        other in models(),
        copies in any::<bool>(),
        seeds in any::<(u64, u64)>(),
    ) {
        let other = if copies { model.clone() } else { other };
        let (one, two) = (node_of(&model, seeds.0), node_of(&other, seeds.1));
        let (canonical_one, canonical_two) = (one.canonical().unwrap(), two.canonical().unwrap());
        prop_assert_eq!(canonical_one == canonical_two, model == other);
        let (group_one, group_two) = (EveryNode.group(&one).unwrap(), EveryNode.group(&two).unwrap());
        prop_assert_eq!(group_one == group_two, model == other);
        // The canonical form is the same node.
        prop_assert_eq!(canonical_one.len(), one.encoded().len());
        let again = ClientNode::decode(canonical_one.clone().into()).unwrap();
        prop_assert_eq!(again.canonical().unwrap(), canonical_one);
        prop_assert_eq!(again.message().metadata.clone(), one.message().metadata.clone());
    }

    #[test]
    fn no_bytes_are_too_odd_to_be_grouped_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(node) = ClientNode::decode(bytes.into())
            && let Ok(canonical) = node.canonical()
        {
            prop_assert_eq!(canonical.len(), node.encoded().len());
            let again = ClientNode::decode(canonical.into()).unwrap();
            prop_assert_eq!(&again.message().id, &node.message().id);
        }
    }
}
