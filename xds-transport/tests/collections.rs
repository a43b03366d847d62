//! List collections and redirects, in the form of TP1's text and in that of the protocol buffers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use prost::{Message, Oneof};
use xds_transport::Frame;
use xds_transport::wire::Any;
use xds_transport::wire::collection::{CollectionEntry, CollectionError, entries, redirect};
use xds_transport::wire::xdstp::{MessageError, decode_locator, decode_name, encode_locator, encode_name};
use xdstp_uri::Locator;

const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.ListenerCollection";
const REDIRECT: &str = "type.googleapis.com/xds.core.v3.ResourceLocator";

/// `xds.core.v3.ResourceLocator`.
#[derive(Clone, PartialEq, Message)]
struct WireLocator {
    #[prost(int32, tag = "1")]
    scheme: i32,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(string, tag = "3")]
    authority: String,
    #[prost(string, tag = "4")]
    resource_type: String,
    #[prost(message, optional, tag = "5")]
    exact_context: Option<WireParams>,
    #[prost(message, repeated, tag = "6")]
    directives: Vec<WireDirective>,
}

/// `xds.core.v3.ResourceName`.
#[derive(Clone, PartialEq, Message)]
struct WireName {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    authority: String,
    #[prost(string, tag = "3")]
    resource_type: String,
    #[prost(message, optional, tag = "4")]
    context: Option<WireParams>,
}

#[derive(Clone, PartialEq, Message)]
struct WireParams {
    #[prost(btree_map = "string, string", tag = "1")]
    params: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct WireDirective {
    #[prost(oneof = "DirectiveKind", tags = "1, 2")]
    kind: Option<DirectiveKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum DirectiveKind {
    #[prost(message, tag = "1")]
    Alt(WireLocator),
    #[prost(string, tag = "2")]
    Entry(String),
}

/// `xds.core.v3.CollectionEntry`; `text` is field 1 as TP1's text has it.
#[derive(Clone, PartialEq, Message)]
struct WireEntry {
    #[prost(message, optional, tag = "1")]
    locator: Option<WireLocator>,
    #[prost(message, optional, tag = "2")]
    inline: Option<WireInline>,
}

#[derive(Clone, PartialEq, Message)]
struct WireInline {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(message, optional, tag = "3")]
    resource: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct TextEntry {
    #[prost(string, tag = "1")]
    locator: String,
}

#[derive(Clone, PartialEq, Message)]
struct Collection {
    #[prost(bytes = "vec", repeated, tag = "1")]
    entries: Vec<Vec<u8>>,
}

fn of_type(type_url: &str, message: &impl Message) -> Bytes {
    Frame::of_message(&type_url.into(), &message.encode_to_vec()).any().clone()
}

fn listener(id: &str) -> WireLocator {
    WireLocator {
        id: id.into(),
        authority: "some-authority".into(),
        resource_type: "envoy.config.listener.v3.Listener".into(),
        ..WireLocator::default()
    }
}

fn locator(text: &str) -> CollectionEntry {
    CollectionEntry::Locator(Locator::parse(text).unwrap().into_owned())
}

#[test]
fn both_forms_of_a_list_collection_hold_the_same_members() {
    let text = |id| format!("xdstp://some-authority/envoy.config.listener.v3.Listener/{id}");
    let message = |id| WireEntry { locator: Some(listener(id)), inline: None }.encode_to_vec();
    let messages = Collection { entries: vec![message("bar"), message("baz/*")] };
    let texts = ["bar", "baz/*"].map(|id| TextEntry { locator: text(id) }.encode_to_vec());
    let expected = vec![locator(&text("bar")), locator(&text("baz/*"))];
    for collection in [messages, Collection { entries: texts.into() }] {
        assert_eq!(entries(&of_type(LISTENERS, &collection)).unwrap().unwrap(), expected);
    }
}

#[test]
fn members_may_be_inlined() {
    let resource = Any { type_url: "type.googleapis.com/T".into(), value: Bytes::from_static(b"body") };
    let inline = WireInline { name: "a".into(), version: "1".into(), resource: Some(resource.clone()) };
    let entry = WireEntry { locator: None, inline: Some(inline) }.encode_to_vec();
    let read = entries(&of_type(LISTENERS, &Collection { entries: vec![entry] })).unwrap().unwrap();
    let resource = Bytes::from(resource.encode_to_vec());
    assert_eq!(read, [CollectionEntry::Inline { name: "a".into(), version: "1".into(), resource }]);
}

#[test]
fn an_empty_collection_is_a_collection_and_another_type_is_none() {
    assert_eq!(entries(&of_type(LISTENERS, &Collection::default())), Ok(Some(Vec::new())));
    for other in ["type.googleapis.com/envoy.config.listener.v3.Listener", "Collection", "a.Collection", ""] {
        assert_eq!(entries(&of_type(other, &Collection::default())), Ok(None), "{other}");
        assert_eq!(redirect(&of_type(other, &Collection::default())), Ok(None), "{other}");
    }
}

#[test]
fn both_forms_of_a_redirect_lead_to_the_same_place() {
    let to = "xdstp://some-authority/envoy.config.listener.v3.Listener/baz";
    for any in [of_type(REDIRECT, &TextEntry { locator: to.into() }), of_type(REDIRECT, &listener("baz"))] {
        assert_eq!(redirect(&any).unwrap().unwrap().to_string(), to);
    }
}

#[test]
fn every_part_of_a_locator_message_keeps_its_place() {
    let params = [("b", "1&2"), ("a", "x=y")].map(|(key, value)| (key.into(), value.into()));
    let alt = WireLocator { scheme: 1, authority: "cdn/x".into(), ..listener("a?b#c") };
    let message = WireLocator {
        authority: "au%th".into(),
        exact_context: Some(WireParams { params: params.into() }),
        directives: vec![
            WireDirective { kind: Some(DirectiveKind::Alt(alt)) },
            WireDirective { kind: Some(DirectiveKind::Entry("e,1".into())) },
        ],
        ..listener("dir/100%\n?#é")
    };
    let read = redirect(&of_type(REDIRECT, &message)).unwrap().unwrap();
    assert_eq!((&*read.authority(), &*read.id()), ("au%th", "dir/100%\n?#é"));
    assert_eq!(read.context_params().get("b").as_deref(), Some("1&2"));
    assert_eq!(read.context_params().get("a").as_deref(), Some("x=y"));
    assert_eq!(read.entry().as_deref(), Some("e,1"));
    let alt = read.alt().unwrap();
    assert_eq!((&*alt.authority(), &*alt.id()), ("cdn/x", "a?b#c"));

    assert_eq!(WireLocator::decode(encode_locator(&read)).unwrap(), message, "nothing is lost");

    let file = WireLocator { scheme: 2, id: "etc/x?y".into(), ..WireLocator::default() };
    let read = redirect(&of_type(REDIRECT, &file)).unwrap().unwrap();
    assert_eq!((read.scheme(), &*read.id()), (xdstp_uri::Scheme::File, "etc/x?y"));
    assert_eq!(WireLocator::decode(encode_locator(&read)).unwrap(), file);
}

#[test]
fn a_name_is_the_same_as_a_message_and_as_text() {
    let params = [("env".to_owned(), "a&b".to_owned()), ("é".to_owned(), String::new())].into();
    let exact_context = Some(WireParams { params });
    let message = WireName {
        id: "dir/100%?#é".into(),
        authority: "au%th/x".into(),
        resource_type: "a.v3.Type".into(),
        context: exact_context,
    };
    let name = decode_name(&message.encode_to_vec()).unwrap();
    assert_eq!(name.to_string(), "xdstp://au%25th%2Fx/a.v3.Type/dir/100%25%3F%23%C3%A9?env=a%26b&%C3%A9=");
    assert_eq!(WireName::decode(encode_name(&name)).unwrap(), message);

    let nothing = WireName { resource_type: String::new(), ..message.clone() };
    assert!(matches!(decode_name(&nothing.encode_to_vec()), Err(MessageError::Locator(_))));
    assert_eq!(decode_name(b"\x0a\x01\xff"), Err(MessageError::Text("id")));
    assert_eq!(decode_locator(b"\x1a\x01\xff"), Err(MessageError::Text("authority")));
    assert!(matches!(decode_locator(b"\x0a"), Err(MessageError::Malformed(_))));
}

#[test]
fn what_cannot_be_read_is_an_error_that_says_why() {
    let of_entry = |entry: Vec<u8>| entries(&of_type(LISTENERS, &Collection { entries: vec![entry] })).unwrap_err();
    assert_eq!(of_entry(Vec::new()), CollectionError::Empty(0));
    assert!(matches!(of_entry(b"\x0a\xff".to_vec()), CollectionError::Malformed(_)));
    let text = TextEntry { locator: "xdstp://no-type".into() };
    assert!(matches!(of_entry(text.encode_to_vec()), CollectionError::Locator(_)));
    let unknown = WireLocator { scheme: 7, ..listener("a") };
    assert_eq!(redirect(&of_type(REDIRECT, &unknown)), Err(CollectionError::Scheme(7)));
}

#[test]
fn alternatives_are_followed_only_so_deep() {
    let nested = |levels: usize| {
        (0..levels).fold(listener("last"), |inner, _| WireLocator {
            directives: vec![WireDirective { kind: Some(DirectiveKind::Alt(inner)) }],
            ..listener("x")
        })
    };
    assert!(redirect(&of_type(REDIRECT, &nested(8))).is_ok());
    for levels in [9, 10, 90] {
        assert!(matches!(redirect(&of_type(REDIRECT, &nested(levels))), Err(CollectionError::Locator(_))), "{levels}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..64), of in 0..2_usize) {
        let type_url = [LISTENERS, REDIRECT][of];
        let any = Frame::of_message(&type_url.into(), &bytes).any().clone();
        let _ = (entries(&any), redirect(&any), entries(&Bytes::from(bytes)));
    }
}
