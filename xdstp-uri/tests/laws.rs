//! Laws that hold for every name.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod oracle;

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
};

use proptest::prelude::*;
use xdstp_uri::{ContextParams, Directive, Locator, NameKey, ResourceName, Urn};

/// Components of few characters, chosen to meet every delimiter, escape and UTF-8 case.
fn component() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select("ab/?#&=,%[]*+ ~é中\u{1F980}\t".chars().collect::<Vec<_>>()), 0..8)
        .prop_map(|chars| chars.into_iter().collect())
}

fn params() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((component(), component()), 0..5)
}

fn urn() -> impl Strategy<Value = Urn<'static>> {
    (component(), "[A-Za-z0-9._-]{1,8}", component(), params())
        .prop_filter_map("a glob", |(authority, kind, id, params)| {
            Urn::new(&authority, &kind, &id, &ContextParams::new(params).unwrap()).ok()
        })
}

/// Text that often parses, in other spellings than the canonical one.
fn spelling() -> impl Strategy<Value = String> {
    let pieces = [
        "xdstp:",
        "//",
        "/",
        "a",
        "T",
        "?",
        "&",
        "=",
        "#",
        ",",
        "k",
        "%41",
        "%2f",
        "%2F",
        "%C3%A9",
        "%C3",
        "%",
        "é",
        "*",
        "alt=",
        "entry=",
        "xdstp://b/T",
        "http://",
        "file:///",
        "%23",
        "%252F",
        " ",
        "~",
        "[",
        "\t",
    ];
    let head =
        prop::sample::select(vec!["xdstp://a/T/", "xdstp:///T?", "http://a/T", "file:///", "xdstp://a/T/x#", ""]);
    (head, prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12))
        .prop_map(|(head, pieces)| head.to_owned() + &pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn components_survive_the_canonical_form(
        authority in component(), kind in "[A-Za-z0-9._-]{1,8}", id in component(), params in params(),
    ) {
        let sorted: BTreeMap<_, _> = params.iter().cloned().collect();
        let glob = id == "*" || id.ends_with("/*");
        match Urn::new(&authority, &kind, &id, &ContextParams::new(params).unwrap()) {
            Err(error) => prop_assert!(glob, "{error}"),
            Ok(urn) => {
                prop_assert!(!glob);
                let text = urn.to_string();
                prop_assert!(text.is_ascii());
                let parsed = Urn::parse(&text).unwrap();
                prop_assert!(parsed.is_canonical());
                prop_assert_eq!(&*parsed.authority(), authority);
                prop_assert_eq!(&*parsed.resource_type(), kind);
                prop_assert_eq!(&*parsed.id(), id);
                let read = parsed.context_params();
                let found: BTreeMap<_, _> = read.iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
                prop_assert_eq!(found, sorted);
                prop_assert_eq!(parsed.to_name(), ResourceName::parse(&text).unwrap());
            }
        }
    }

    #[test]
    fn any_text_is_one_canonical_form_or_an_error_inside_it(text in spelling()) {
        oracle::name(&text);
        oracle::locator(&text);
    }

    /// Two texts are equal as locators if and only if the reference reads the same in both.
    #[test]
    fn texts_are_equal_that_say_the_same(a in spelling(), b in spelling(), choices in prop::collection::vec(0..16_usize, 64)) {
        let mut choices = choices.into_iter().cycle();
        let Some(read) = oracle::reference::read(&a) else { return Ok(()) };
        let again = read.respelled(&mut || choices.next().unwrap_or_default());
        prop_assert_eq!(oracle::reference::read(&again), Some(read.clone()));
        oracle::locator(&again);
        prop_assert_eq!(Locator::parse(&a).unwrap(), Locator::parse(&again).unwrap());
        if let Some(other) = oracle::reference::read(&b) {
            prop_assert_eq!(Locator::parse(&a).unwrap() == Locator::parse(&b).unwrap(), read == other);
        }
    }

    #[test]
    fn the_order_of_parameters_never_matters(params in params(), shift in 0..5_usize) {
        let unique: BTreeMap<_, _> = params.into_iter().collect();
        let mut pairs: Vec<_> = unique.iter().collect();
        if !pairs.is_empty() {
            let shift = shift % pairs.len();
            pairs.rotate_left(shift);
        }
        let pieces: Vec<_> =
            pairs.iter().map(|pair| ContextParams::new([*pair]).unwrap().to_string()).collect();
        let text = format!("xdstp://a/T/x?{}", pieces.join("&"));
        let sorted = Urn::new("a", "T", "x", &ContextParams::new(unique).unwrap()).unwrap();
        prop_assert_eq!(Urn::parse(&text).unwrap(), sorted);
    }

    #[test]
    fn equal_means_equal_hash_and_order(a in spelling(), b in spelling()) {
        let hasher = RandomState::new();
        if let (Ok(a), Ok(b)) = (Locator::parse(&a), Locator::parse(&b)) {
            prop_assert_eq!(a == b, a.cmp(&b).is_eq());
            if a == b {
                prop_assert_eq!(hasher.hash_one(&a), hasher.hash_one(&b));
            }
            let owned = a.clone().into_owned();
            prop_assert_eq!(hasher.hash_one(&a), hasher.hash_one(&owned));
            prop_assert_eq!(a, owned);
        }
    }

    #[test]
    fn glob_parent_is_a_glob_of_the_same_components(urn in urn()) {
        let name = urn.to_name();
        let Some(glob) = name.glob_parent() else {
            prop_assert!(urn.id().is_empty());
            return Ok(());
        };
        prop_assert_eq!(&ResourceName::parse(glob.as_str()).unwrap(), &glob);
        prop_assert!(glob.is_glob() && name.answers(&glob) && !glob.answers(&name));
        prop_assert_eq!((glob.authority(), glob.resource_type()), (name.authority(), name.resource_type()));
        let locator = glob.locator().unwrap();
        prop_assert_eq!(locator.context_params(), urn.context_params());
        let globs = HashMap::from([(glob, ())]);
        let key = name.glob_parent_key().unwrap();
        prop_assert!(globs.contains_key(&key as &dyn NameKey));
        prop_assert!(!globs.contains_key(&name));
    }

    #[test]
    fn directives_survive(urn in urn(), alt in urn(), entry in "[a-z_/~:.-]{1,5}") {
        let alt = Directive::alt_to(alt.into()).unwrap();
        let entry = Directive::entry_named(entry).unwrap();
        let locator = Locator::from(urn.clone()).with_directive(&alt).unwrap().with_directive(&entry).unwrap();
        let text = locator.to_string();
        let parsed = Locator::parse(&text).unwrap();
        prop_assert_eq!(parsed.directives().collect::<Vec<_>>(), [alt, entry]);
        prop_assert_eq!(parsed.without_directives(), Locator::from(urn));
    }
}

/// What is read of a name lives as long as its text, not as the value that parsing gives.
#[test]
fn components_outlive_the_handle() {
    fn id(text: &str) -> std::borrow::Cow<'_, str> {
        Urn::parse(text).unwrap().id()
    }
    fn zone(text: &str) -> Option<std::borrow::Cow<'_, str>> {
        Locator::parse(text).unwrap().context_params().iter().find(|(key, _)| key == "zone").map(|(_, value)| value)
    }
    fn fallback(text: &str) -> Option<Locator<'_>> {
        Locator::parse(text).unwrap().alt().and_then(|alt| alt.alt())
    }
    fn entry(text: &str) -> Option<std::borrow::Cow<'_, str>> {
        Locator::parse(text).unwrap().alt().unwrap().entry()
    }
    assert_eq!(id("xdstp://a/T/x"), "x");
    assert_eq!(zone("xdstp://a/T/x?zone=b"), Some("b".into()));
    assert_eq!(fallback("xdstp://a/T/x#alt=xdstp://b/T/x%23alt=xdstp://c/T/x").unwrap().authority(), "c");
    assert_eq!(entry("xdstp://a/T/x#alt=xdstp://b/T/x%23entry=m"), Some("m".into()));
    let owned: Locator<'static> = "xdstp://a/T/x?k=v#entry=m,alt=http://b/T/y".parse().unwrap();
    let read = owned.directives();
    drop(owned);
    assert_eq!(read.map(|directive| directive.to_string()).collect::<Vec<_>>(), ["entry=m", "alt=http://b/T/y"]);
}

/// As documented: one order for names, their parts and the strings that they are.
#[test]
fn the_order_is_that_of_the_canonical_texts() {
    let texts = ["xdstp://a-b/T", "xdstp://a/T", "xdstp://a/T?k=v", "xdstp://a/T-/x", "xdstp://a/T/x", "xdstp://ab/T"];
    for a in texts {
        for b in texts {
            assert_eq!(Urn::parse(a).unwrap().cmp(&Urn::parse(b).unwrap()), a.cmp(b));
            assert_eq!(Locator::parse(a).unwrap().cmp(&Locator::parse(b).unwrap()), a.cmp(b));
            assert_eq!(ResourceName::parse(a).unwrap().cmp(&ResourceName::parse(b).unwrap()), a.cmp(b));
        }
    }
}
