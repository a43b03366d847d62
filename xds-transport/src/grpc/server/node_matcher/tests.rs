use super::*;
use crate::wire::ListValue;
use crate::wire::matcher::{DoubleRange, ListMatcher, OrMatcher};
use string_matcher::MatchPattern as Text;
use value::Kind;
use value_matcher::MatchPattern as Is;

fn text(pattern: Text, ignore_case: bool) -> StringMatcher {
    StringMatcher { match_pattern: Some(pattern), ignore_case }
}

fn of_id(pattern: Text, ignore_case: bool) -> NodeMatcher {
    NodeMatcher { node_id: Some(text(pattern, ignore_case)), node_metadatas: Vec::new() }
}

fn of_metadata(path: &[&str], pattern: Is) -> StructMatcher {
    let segment = |key: &&str| struct_matcher::PathSegment {
        segment: Some(struct_matcher::path_segment::Segment::Key((*key).to_owned())),
    };
    StructMatcher {
        path: path.iter().map(segment).collect(),
        value: Some(ValueMatcher { match_pattern: Some(pattern) }),
    }
}

fn is(pattern: Is) -> ValueMatcher {
    ValueMatcher { match_pattern: Some(pattern) }
}

fn some(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn structure(fields: Vec<(&str, Value)>) -> Struct {
    Struct { fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

/// `{ zone: "b", n: 7, on: true, none: null, list: ["x", 1], in: { deep: "Down" } }`
fn node() -> Bytes {
    let list = ListValue { values: vec![some(Kind::StringValue("x".to_owned())), some(Kind::NumberValue(1.0))] };
    let inner = structure(vec![("deep", some(Kind::StringValue("Down".to_owned())))]);
    let metadata = structure(vec![
        ("zone", some(Kind::StringValue("b".to_owned()))),
        ("n", some(Kind::NumberValue(7.0))),
        ("on", some(Kind::BoolValue(true))),
        ("none", some(Kind::NullValue(0))),
        ("list", some(Kind::ListValue(list))),
        ("in", some(Kind::StructValue(inner))),
    ]);
    Node { id: "Shop-1".to_owned(), metadata: Some(metadata), ..Node::default() }.encode_to_vec().into()
}

fn picks(matchers: &[NodeMatcher]) -> bool {
    let encoded: Vec<Bytes> = matchers.iter().map(|matcher| matcher.encode_to_vec().into()).collect();
    NodeMatchers::read(&encoded).unwrap().match_encoded(&node())
}

fn picks_by(path: &[&str], pattern: Is) -> bool {
    picks(&[NodeMatcher { node_id: None, node_metadatas: vec![of_metadata(path, pattern)] }])
}

#[test]
fn a_node_is_picked_by_its_id() {
    let own = |text: &str| text.to_owned();
    for (pattern, cased, ignoring) in [
        (Text::Exact(own("Shop-1")), true, true),
        (Text::Exact(own("shop-1")), false, true),
        (Text::Exact(own("Shop")), false, false),
        (Text::Prefix(own("Shop-")), true, true),
        (Text::Prefix(own("SHOP-")), false, true),
        (Text::Prefix(own("-1")), false, false),
        (Text::Suffix(own("p-1")), true, true),
        (Text::Suffix(own("P-1")), false, true),
        (Text::Suffix(own("Shop")), false, false),
        (Text::Contains(own("op")), true, true),
        (Text::Contains(own("OP")), false, true),
        (Text::Contains(own("x")), false, false),
    ] {
        assert_eq!(
            [false, true].map(|ignore| picks(&[of_id(pattern.clone(), ignore)])),
            [cased, ignoring],
            "{pattern:?}"
        );
    }
}

#[test]
fn a_node_is_picked_by_its_metadata() {
    let word = |word: &str| Is::StringMatch(text(Text::Exact(word.to_owned()), false));
    let number = |pattern| Is::DoubleMatch(DoubleMatcher { match_pattern: Some(pattern) });
    let range = |start, end| number(double_matcher::MatchPattern::Range(DoubleRange { start, end }));
    let list = |one: Is| {
        Is::ListMatch(Box::new(ListMatcher {
            match_pattern: Some(list_matcher::MatchPattern::OneOf(Box::new(is(one)))),
        }))
    };
    let any = |all: Vec<Is>| Is::OrMatch(OrMatcher { value_matchers: all.into_iter().map(is).collect() });
    for (path, pattern, expected) in [
        (&["zone"][..], word("b"), true),
        (&["zone"], word("a"), false),
        (&["absent"], word("b"), false),
        (&["zone", "b"], word("b"), false),
        (&["in", "deep"], word("Down"), true),
        (&["in", "deep"], word("down"), false),
        (&["in"], word("Down"), false),
        (&["n"], number(double_matcher::MatchPattern::Exact(7.0)), true),
        (&["n"], number(double_matcher::MatchPattern::Exact(8.0)), false),
        (&["n"], range(7.0, 8.0), true),
        (&["n"], range(6.0, 7.0), false),
        (&["on"], Is::BoolMatch(true), true),
        (&["on"], Is::BoolMatch(false), false),
        (&["none"], Is::NullMatch(value_matcher::NullMatch {}), true),
        (&["absent"], Is::NullMatch(value_matcher::NullMatch {}), false),
        (&["zone"], Is::PresentMatch(true), true),
        (&["zone"], Is::PresentMatch(false), false),
        (&["absent"], Is::PresentMatch(true), false),
        (&["absent"], Is::PresentMatch(false), false),
        (&["in"], Is::PresentMatch(true), true),
        (&["in"], Is::PresentMatch(false), false),
        (&["list"], Is::PresentMatch(true), true),
        (&["list"], Is::PresentMatch(false), false),
        (&["none"], Is::PresentMatch(true), true),
        (&["in", "deep"], Is::PresentMatch(true), true),
        (&["in", "absent"], Is::PresentMatch(true), false),
        (&["list", "x"], Is::PresentMatch(true), false),
        (&["list"], list(word("x")), true),
        (&["list"], list(word("y")), false),
        (&["list"], list(number(double_matcher::MatchPattern::Exact(1.0))), true),
        (&["list"], list(Is::PresentMatch(true)), true),
        (&["list"], list(any(vec![word("y"), word("x")])), true),
        (&["zone"], list(word("b")), false),
        (&["in"], list(Is::PresentMatch(true)), false),
        (&["absent"], list(Is::PresentMatch(true)), false),
        (&["zone"], any(vec![word("a"), word("b")]), true),
        (&["zone"], any(vec![word("a"), word("c")]), false),
        (&["in"], any(vec![word("a"), Is::PresentMatch(true)]), true),
        (&["list"], any(vec![word("x"), list(word("x"))]), true),
        (&["absent"], any(vec![word("a"), Is::PresentMatch(true)]), false),
    ] {
        assert_eq!(picks_by(path, pattern.clone()), expected, "{path:?} {pattern:?}");
    }
}

#[test]
fn one_means_all_that_it_says_and_several_mean_any_of_them() {
    let shop = of_id(Text::Prefix("Shop".to_owned()), false);
    let bank = of_id(Text::Prefix("Bank".to_owned()), false);
    let zone = |zone: &str| of_metadata(&["zone"], Is::StringMatch(text(Text::Exact(zone.to_owned()), false)));
    let with = |of: &NodeMatcher, more: Vec<StructMatcher>| NodeMatcher { node_metadatas: more, ..of.clone() };
    assert!(picks(&[]) && picks(&[NodeMatcher::default()]));
    assert!(picks(&[bank.clone(), shop.clone()]) && !picks(std::slice::from_ref(&bank)));
    assert!(picks(&[with(&shop, vec![zone("b")])]) && !picks(&[with(&shop, vec![zone("b"), zone("a")])]));
    assert!(!picks(&[with(&bank, vec![zone("b")])]));
}

#[test]
fn what_is_not_supported_is_refused_by_its_name() {
    let why = |matcher: NodeMatcher| NodeMatchers::read(&[Bytes::new(), matcher.encode_to_vec().into()]).unwrap_err();
    let by = |pattern: Option<Is>| {
        let mut of = of_metadata(&["a"], Is::BoolMatch(true));
        of.value = Some(ValueMatcher { match_pattern: pattern });
        why(NodeMatcher { node_id: None, node_metadatas: vec![of_metadata(&["a"], Is::BoolMatch(true)), of] })
    };
    let regex = || Text::SafeRegex(Bytes::from_static(b"\x12\x01."));
    assert_eq!(why(of_id(regex(), false)), "node_matchers[1].node_id.safe_regex: not supported");
    assert_eq!(why(of_id(Text::Custom(Bytes::new()), false)), "node_matchers[1].node_id.custom: not supported");
    let metadata = "node_matchers[1].node_metadatas[1].value";
    assert_eq!(by(None), format!("{metadata}: says nothing, or what is not known here"));
    assert_eq!(
        by(Some(Is::StringMatch(text(regex(), false)))),
        format!("{metadata}.string_match.safe_regex: not supported")
    );
    let list = ListMatcher { match_pattern: None };
    assert!(by(Some(Is::ListMatch(Box::new(list)))).starts_with(&format!("{metadata}.list_match: says nothing")));
    let any = OrMatcher { value_matchers: vec![is(Is::BoolMatch(true)), ValueMatcher::default()] };
    assert!(by(Some(Is::OrMatch(any))).starts_with(&format!("{metadata}.or_match.value_matchers[1]: says nothing")));
    let none = DoubleMatcher { match_pattern: None };
    assert!(by(Some(Is::DoubleMatch(none))).starts_with(&format!("{metadata}.double_match: says nothing")));
    let nowhere = NodeMatcher { node_id: None, node_metadatas: vec![of_metadata(&[], Is::BoolMatch(true))] };
    assert!(why(nowhere).starts_with("node_matchers[1].node_metadatas[0].path: expected"));
    assert!(NodeMatchers::read(&[Bytes::from_static(b"\xff")]).unwrap_err().starts_with("node_matchers[0]: "));
    let one = OrMatcher { value_matchers: vec![is(Is::BoolMatch(true))] };
    let path = format!("{metadata}.or_match.value_matchers");
    assert_eq!(by(Some(Is::OrMatch(one))), format!("{path}: 1; expected two at the least"));
    for (field, pattern) in [
        ("prefix", Text::Prefix(String::new())),
        ("suffix", Text::Suffix(String::new())),
        ("contains", Text::Contains(String::new())),
    ] {
        let expected = format!("node_matchers[1].node_id.{field}: empty; expected some text");
        assert_eq!(why(of_id(pattern, true)), expected);
    }
    let long = vec![Bytes::from(vec![0; MOST_BYTES + 1])];
    assert_eq!(NodeMatchers::read(&long).unwrap_err(), "node_matchers: longer than 65536 bytes");
}

#[test]
fn so_many_values_are_compared_and_no_more() {
    let flag = || is(Is::BoolMatch(true));
    let any = |count| Is::OrMatch(OrMatcher { value_matchers: vec![flag(); count] });
    let read = |matchers: &[NodeMatcher]| {
        let encoded: Vec<Bytes> = matchers.iter().map(|matcher| matcher.encode_to_vec().into()).collect();
        NodeMatchers::read(&encoded).map(|_| ())
    };
    let of = |count| NodeMatcher { node_id: None, node_metadatas: vec![of_metadata(&["a"], any(count))] };
    let most = vec![NodeMatcher::default(); MOST_VALUES];
    assert_eq!(read(&most), Ok(()));
    let words = |at: usize| Err(format!("node_matchers[{at}]: with those before it more than 256 values are compared"));
    assert_eq!(read(&[most, vec![NodeMatcher::default()]].concat()), words(256));
    assert_eq!((read(&[of(254)]), read(&[of(255)])), (Ok(()), words(0)));
    let listed = |of: ValueMatcher| {
        is(Is::ListMatch(Box::new(ListMatcher {
            match_pattern: Some(list_matcher::MatchPattern::OneOf(Box::new(of))),
        })))
    };
    let in_lists = Is::OrMatch(OrMatcher { value_matchers: vec![listed(flag()); 128] });
    let of_lists = NodeMatcher { node_id: None, node_metadatas: vec![of_metadata(&["a"], in_lists)] };
    assert_eq!(read(&[of_lists]), words(0), "what is within counts");
}

#[test]
fn text_is_compared_whole_whatever_letters_it_has() {
    let of = |id: &str, pattern: Text, ignore: bool| {
        let node: Bytes = Node { id: id.to_owned(), ..Node::default() }.encode_to_vec().into();
        let encoded: Bytes = of_id(pattern, ignore).encode_to_vec().into();
        NodeMatchers::read(&[encoded]).unwrap().match_encoded(&node)
    };
    let own = |text: &str| text.to_owned();
    for ignore in [false, true] {
        assert!(of("Äb", Text::Prefix(own("Ä")), ignore) && of("bÄ", Text::Suffix(own("Ä")), ignore));
        assert!(!of("Ä", Text::Suffix(own("bÄ")), ignore) && !of("Ä", Text::Prefix(own("Äb")), ignore));
        assert!(!of("ä", Text::Exact(own("Ä")), ignore), "case is that of ASCII letters");
        assert!(of("xÄy", Text::Contains(own("Äy")), ignore));
        assert!(of("", Text::Exact(String::new()), ignore));
    }
}
