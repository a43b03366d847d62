use alloc::format;

use super::*;
use crate::ParseErrorKind;

fn name(text: &str) -> ResourceName {
    ResourceName::parse(text).unwrap()
}

#[test]
fn is_small_and_shareable() {
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<ResourceName>();
    assert_eq!(size_of::<Option<ResourceName>>(), 24);
}

#[test]
fn what_is_not_xdstp_is_opaque() {
    for text in ["", "*", "web", "XDSTP://a/T/x", "xdst", "http://a/T/x", "a#b"] {
        let name = name(text);
        assert!(name.is_opaque() && !name.is_glob());
        assert_eq!((name.as_str(), name.authority(), name.resource_type()), (text, None, None));
        assert_eq!(name.glob_parent(), None);
    }
}

#[test]
fn an_opaque_name_is_no_longer_than_another() {
    assert!(name(&"x".repeat(MAX_LEN)).is_opaque());
    let long = "é".repeat(MAX_LEN / 2) + "x";
    let error = ResourceName::parse(&long).unwrap_err();
    assert_eq!((error.kind(), &long[error.offset()..]), (ParseErrorKind::TooLong, "x"));
}

#[test]
fn components_are_those_of_the_canonical_form() {
    let parsed = name("xdstp:/T/%78?b=1&a=2&b=3&");
    assert_eq!(parsed.as_str(), "xdstp:///T/x?a=2&b=3");
    assert_eq!(parsed.authority(), Some(""));
    assert_eq!((parsed.resource_type(), parsed.id().as_deref()), (Some("T"), Some("x")));
    assert_eq!(parsed, name(parsed.as_str()));
    assert_eq!(name("xdstp://a%2Fb/T").authority(), Some("a%2Fb"));
    assert_eq!(format!("{:>15}", name("xdstp://a/T")), "    xdstp://a/T");
}

#[test]
fn a_fragment_is_refused_where_it_starts() {
    let error = ResourceName::parse("xdstp://a/T/x#entry=e").unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ParseErrorKind::FragmentInUrn, 13));
}

#[test]
fn glob_parents() {
    for (member, glob) in [
        ("xdstp://a/T/x", "xdstp://a/T/*"),
        ("xdstp://a/T/x/y?k=/v", "xdstp://a/T/x/*?k=/v"),
        ("xdstp://a/T/x/", "xdstp://a/T/x/*"),
        ("xdstp:///T//", "xdstp:///T//*"),
    ] {
        assert!(name(glob).is_glob());
        assert_eq!(name(member).glob_parent(), Some(name(glob)));
        assert!(name(member).answers(&name(glob)));
        assert!(!name(glob).answers(&name(member)));
    }
    for text in ["xdstp://a/T", "xdstp://a/T/*", "xdstp://a/T/x/%2A", "web/*"] {
        assert_eq!(name(text).glob_parent(), None);
        assert!(name(text).answers(&name(text)));
    }
}

/// What is made keeps the limits of what is parsed.
#[test]
fn a_glob_that_would_be_too_long_is_none() {
    let id = "x".repeat(MAX_LEN - "xdstp://a/T//".len());
    let text = format!("xdstp://a/T/{id}/");
    assert_eq!(name(&text).glob_parent(), None);
    assert_eq!(name(&text[..MAX_LEN - 2]).glob_parent(), Some(name("xdstp://a/T/*")));
}
