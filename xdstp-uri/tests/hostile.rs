//! Inputs that are long, deep or broken: bounds hold, and errors say where.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::{borrow::Cow, error::Error};

use xdstp_uri::{ContextParams, Directive, Locator, MAX_ALT_DEPTH, MAX_LEN, ParseErrorKind, ResourceName, Urn};

/// A locator with this many levels of `alt=`.
fn nested(levels: usize) -> String {
    (0..levels).fold(Locator::parse("xdstp://z/T/x").unwrap().into_owned().to_string(), |inner, level| {
        format!("xdstp://h{level}/T/x#alt={}", inner.replace('%', "%25").replace('#', "%23"))
    })
}

#[test]
fn errors_say_where() {
    use ParseErrorKind as Kind;
    let cases = [
        ("", Kind::UnsupportedScheme, 0),
        ("XDSTP://a/T/x", Kind::UnsupportedScheme, 0),
        ("xdstp:", Kind::MissingResourceType, 6),
        ("xdstp:T/x", Kind::MissingResourceType, 6),
        ("xdstp://a", Kind::MissingResourceType, 9),
        ("xdstp://a//x", Kind::MissingResourceType, 10),
        ("xdstp://a?k=v", Kind::MissingResourceType, 9),
        ("xdstp://a/T%2F/x", Kind::InvalidResourceType, 11),
        ("xdstp://a/T é/x", Kind::InvalidResourceType, 11),
        ("xdstp://a/T\u{7f}/x", Kind::InvalidCharacter, 11),
        ("xdstp://a\n/T/x", Kind::InvalidCharacter, 9),
        ("xdstp://a/T/x?k=\u{1}", Kind::InvalidCharacter, 16),
        ("xdstp://a/T/x%E4%B8y", Kind::InvalidUtf8, 13),
        ("xdstp://a/T/x%E4%B8", Kind::InvalidUtf8, 13),
        ("xdstp://a/T/x?%FF=", Kind::InvalidUtf8, 14),
        ("xdstp://a/T/x#", Kind::UnknownDirective, 14),
        ("xdstp://a/T/x#entry", Kind::UnknownDirective, 14),
        ("xdstp://a/T/x#entry=a,", Kind::UnknownDirective, 22),
        ("xdstp://a/T/x#entry=", Kind::EmptyEntry, 20),
        ("xdstp://a/T/x#entry=a,entry=b", Kind::DuplicateDirective, 22),
        ("xdstp://a/T/x##", Kind::InvalidCharacter, 14),
        ("xdstp://a/T/x#alt=", Kind::UnsupportedScheme, 18),
        // Behind an escape, in text that is escaped itself: at the escape of the byte.
        ("xdstp://a/T/x#alt=xdstp://b%2FT%2Fx%09y", Kind::InvalidCharacter, 35),
        ("http:/a/T/x", Kind::MissingAuthoritySlashes, 5),
        ("http://a", Kind::MissingResourceType, 8),
        ("file:a", Kind::MissingAuthoritySlashes, 5),
        ("file://", Kind::MissingPath, 7),
        ("file://host", Kind::FileAuthority, 7),
        ("file://host/a", Kind::FileAuthority, 7),
    ];
    for (text, kind, offset) in cases {
        let error = Locator::parse(text).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{text}: {error}");
    }
    let glob = Urn::parse("xdstp://a/T/x/%2A?k=v").unwrap_err();
    assert_eq!((glob.kind(), glob.offset()), (Kind::GlobInUrn, 14));
    let fragment = Urn::parse("xdstp://a/T/*#entry=m").unwrap_err();
    assert_eq!((fragment.kind(), fragment.offset()), (Kind::FragmentInUrn, 13));
    assert_eq!(Urn::parse("http://a/T/x").unwrap_err().kind(), Kind::NotXdstp);
}

#[test]
fn alt_is_read_to_its_bound() {
    let deepest = nested(MAX_ALT_DEPTH);
    let mut locator = Locator::parse(&deepest).unwrap();
    assert!(locator.is_canonical());
    for level in (0..MAX_ALT_DEPTH).rev() {
        assert_eq!(locator.authority(), format!("h{level}"));
        locator = locator.alt().unwrap().into_owned();
    }
    assert_eq!(locator.to_string(), "xdstp://z/T/x");
    assert_eq!(Locator::parse(&nested(MAX_ALT_DEPTH + 1)).unwrap_err().kind(), ParseErrorKind::AltTooDeep);
    assert_eq!(Locator::parse(&nested(200)).unwrap_err().kind(), ParseErrorKind::AltTooDeep);
}

#[test]
fn names_are_read_to_their_bound() {
    let head = "xdstp://a/T/";
    let longest = format!("{head}{}", "x".repeat(MAX_LEN - head.len()));
    assert_eq!(ResourceName::parse(&longest).unwrap().as_str(), longest);
    let error = Locator::parse(&(longest + "x")).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ParseErrorKind::TooLong, MAX_LEN));
    // The canonical form of this one would be three times as long.
    let growing = format!("{head}{}", "<".repeat(MAX_LEN / 2));
    assert_eq!(ResourceName::parse(&growing).unwrap_err().kind(), ParseErrorKind::TooLong);
    let growing = format!("{head}{}", "<".repeat(MAX_LEN / 4));
    let name = ResourceName::parse(&growing).unwrap();
    assert_eq!(ResourceName::parse(name.as_str()).unwrap(), name);
}

#[test]
fn many_parameters_are_fine() {
    let pairs: Vec<_> = (0..8000).rev().map(|n| format!("{n}=")).collect();
    let text = format!("xdstp://a/T/x?{}", pairs.join("&"));
    let urn = Urn::parse(&text).unwrap();
    assert_eq!(urn.context_params().len(), 8000);
    assert_eq!(urn, Urn::parse(&urn.to_string()).unwrap());
}

/// A text of three-byte characters in which the bound falls inside one.
fn long_text(head: &str) -> String {
    let mut text = head.to_owned();
    while !(MAX_LEN - text.len()).is_multiple_of(3) {
        text.push('x');
    }
    text.push('x');
    text + &"中".repeat(MAX_LEN / 3)
}

#[test]
fn too_long_points_at_a_character() {
    let errors = |text: &str| {
        [
            Urn::parse(text).err(),
            Locator::parse(text).err(),
            ResourceName::parse(text).err(),
            ContextParams::parse(text).err(),
            Directive::parse(text).err(),
        ]
    };
    for head in ["xdstp://a/T/", "xdstp://a/T/x?k=", "k=", "entry=", "alt=xdstp://a/T/"] {
        let text = long_text(head);
        assert!(!text.is_char_boundary(MAX_LEN));
        for error in errors(&text).into_iter().flatten() {
            assert!(!text[error.offset()..].is_empty(), "{error}");
            assert!(MAX_LEN - error.offset() < 4 || error.kind() != ParseErrorKind::TooLong, "{error}");
        }
    }
}

#[test]
fn what_is_displayed_can_be_parsed_again() {
    // The canonical form of `<` is three times as long.
    let growing = "<".repeat(MAX_LEN / 2);
    assert_eq!(ContextParams::parse(&growing).unwrap_err().kind(), ParseErrorKind::TooLong);
    for text in
        [format!("entry={growing}"), format!("alt=file:///{growing}"), format!("alt=file:///{}", "é".repeat(7000))]
    {
        assert_eq!(Directive::parse(&text).unwrap_err().kind(), ParseErrorKind::TooLong, "{}", &text[..16]);
    }
    let many = (0..MAX_LEN).map(|n| (n.to_string(), ""));
    assert_eq!(ContextParams::new(many).unwrap_err().kind(), ParseErrorKind::TooLong);
    let endless = (0_u64..).map(|n| (n.to_string(), ""));
    assert_eq!(ContextParams::new(endless).unwrap_err().kind(), ParseErrorKind::TooLong);
    // The values that count are few, however many there were.
    let again = (0..MAX_LEN).map(|n| ("k", n.to_string()));
    assert_eq!(ContextParams::new(again).unwrap().to_string(), "k=65535");
    let node = ContextParams::new([("k", "<".repeat(20_000))]).unwrap();
    let features = ["x"; 3].map(|feature| feature.repeat(10_000));
    let features = features.iter().map(String::as_str);
    assert_eq!(
        ContextParams::compose(&node, &ContextParams::default(), features, []).unwrap_err().kind(),
        ParseErrorKind::TooLong
    );
}

#[test]
fn directives_are_made_as_they_are_parsed() {
    assert_eq!(Directive::entry_named("").unwrap_err().kind(), ParseErrorKind::EmptyEntry);
    assert_eq!(Directive::entry_received("").unwrap_err().kind(), ParseErrorKind::EmptyEntry);
    assert_eq!(Directive::entry_received("a,b").unwrap(), Directive::parse("entry=a%2Cb").unwrap());
    let long = "x".repeat(MAX_LEN);
    assert_eq!(Directive::entry_named(&*long).unwrap_err().kind(), ParseErrorKind::TooLong);
    assert_eq!(Directive::entry_received(&*long).unwrap_err().kind(), ParseErrorKind::TooLong);
    for name in ["".to_owned(), "x".repeat(MAX_LEN - 5), "é".repeat(MAX_LEN / 4), "€".repeat(MAX_LEN)] {
        for error in [Directive::entry_named(&*name), Directive::entry_received(&*name)].map(Result::unwrap_err) {
            assert!(name.is_char_boundary(error.offset()), "{error} in a name of {} bytes", name.len());
        }
    }
    // An alternative may have one level less than the locator that it is for.
    let deepest = nested(MAX_ALT_DEPTH);
    let too_deep = Directive::alt_to(Locator::parse(&deepest).unwrap()).unwrap_err();
    assert_eq!(too_deep.kind(), ParseErrorKind::AltTooDeep);
    let less = nested(MAX_ALT_DEPTH - 1);
    let directive = Directive::alt_to(Locator::parse(&less).unwrap()).unwrap();
    assert_eq!(Directive::parse(&directive.to_string()).unwrap(), directive);
}

#[test]
fn keys_are_compared_decoded_once() {
    let get = |text: &str, key: &str| ContextParams::parse(text).unwrap().get(key).map(Cow::into_owned);
    assert_eq!(get("%41=x", "%41"), None);
    assert_eq!(get("%41=x", "A"), Some("x".to_owned()));
    assert_eq!(get("%2541=x", "%41"), Some("x".to_owned()));
    assert_eq!(get("%=x&%4=y", "%"), Some("x".to_owned()));
    assert_eq!(get("%41=x&A=y&%2541=z", "A"), Some("y".to_owned()));
}

#[test]
fn an_error_and_its_source_say_different_things() {
    let node = ContextParams::new([("k", "<".repeat(20_000))]).unwrap();
    let locator = format!("xdstp://a/T/{}", "x".repeat(10_000));
    let error = Locator::parse(&locator).unwrap().to_collection_name("T", &node).unwrap_err();
    let source = error.source().unwrap().to_string();
    assert_eq!(error.as_str(), "too_long");
    assert!(!error.to_string().contains(&source), "{error}: {source}");
}

#[test]
fn all_that_is_ordered_is_ordered_as_its_text() {
    let directives = ["entry=a%20b", "entry=a!b", "entry=%C3%A9", "entry=z", "alt=xdstp://a/T/x", "alt=http://a/T/x"];
    for (a, b) in directives.iter().flat_map(|a| directives.map(|b| (*a, b))) {
        let (one, other) = (Directive::parse(a).unwrap(), Directive::parse(b).unwrap());
        assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()), "{a} {b}");
        assert_eq!(one == other, a == b);
    }
}
