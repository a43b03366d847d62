//! Inputs that are long, deep or broken: bounds hold, and errors say where.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use xdstp_uri::{Locator, MAX_ALT_DEPTH, MAX_LEN, ParseErrorKind, ResourceName, Urn};

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
