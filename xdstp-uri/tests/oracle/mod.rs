//! What must hold for any text whatever: for property tests, for fuzzing, and for replaying what fuzzing found.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "an oracle fails by panicking")]

pub(crate) mod reference;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use xdstp_uri::{Locator, MAX_LEN, NameKey, ResourceName, Urn};

/// A text read as a name.
pub(crate) fn name(text: &str) {
    let (urn, name) = (Urn::parse(text), ResourceName::parse(text));
    if let Ok(urn) = &urn {
        let name = name.as_ref().unwrap();
        assert_eq!(name, &urn.to_name());
        assert_eq!(name.id().unwrap(), urn.id());
        assert_eq!(Locator::parse(text).unwrap().to_urn().as_ref(), Some(urn));
        assert_eq!(urn.is_canonical(), urn.to_string() == text);
    }
    match &name {
        Ok(name) => {
            assert_eq!(name.is_opaque(), !text.starts_with("xdstp:"));
            assert_eq!(&ResourceName::parse(name.as_str()).unwrap(), name);
            assert!(name.answers(name));
            if !name.is_opaque() {
                let locator = name.locator().unwrap();
                assert!(locator.is_canonical());
                assert_eq!((name.is_glob(), name.id().unwrap()), (locator.is_glob(), locator.id()));
                assert_eq!(name.resource_type(), Some(&*locator.resource_type()));
            }
            if let Some(glob) = name.glob_parent() {
                assert!(glob.is_glob() && name.answers(&glob) && !glob.answers(name));
                let hasher = BuildHasherDefault::<DefaultHasher>::default();
                let key = name.glob_parent_key().unwrap();
                assert_eq!(hasher.hash_one(&key as &dyn NameKey), hasher.hash_one(&glob));
            }
        }
        Err(_) => assert!(urn.is_err() && (text.starts_with("xdstp:") || text.len() > MAX_LEN)),
    }
    for error in [urn.err(), name.err()].into_iter().flatten() {
        check_error(text, error);
    }
}

/// A text read as a locator.
pub(crate) fn locator(text: &str) {
    let read = reference::read(text);
    let locator = match Locator::parse(text) {
        Ok(locator) => locator,
        Err(error) => {
            assert_eq!(read, None, "{error} in {text:?}");
            return check_error(text, error);
        }
    };
    let canonical = locator.to_string();
    let read = read.unwrap_or_else(|| panic!("no locator: {text:?}"));
    says_the_same(&locator, &read);
    // A spelling that depends on nothing but the text, so that a finding can be seen again.
    let mut state = text.len();
    let respelled = read.respelled(&mut || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    });
    if respelled.len() <= MAX_LEN {
        assert_eq!(Locator::parse(&respelled).unwrap(), locator, "{respelled:?}");
    }
    assert!(canonical.is_ascii());
    assert_eq!(locator.is_canonical(), canonical == text);
    let again = Locator::parse(&canonical).unwrap();
    assert!(again.is_canonical(), "{canonical}");
    assert_eq!(again, locator);
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(hasher.hash_one(&again), hasher.hash_one(&locator));
    for other in [again, locator.clone().into_owned()] {
        assert_eq!(other.scheme(), locator.scheme());
        assert_eq!(other.authority(), locator.authority());
        assert_eq!(other.resource_type(), locator.resource_type());
        assert_eq!(other.id(), locator.id());
        assert_eq!(other.is_glob(), locator.is_glob());
        assert_eq!(other.context_params(), locator.context_params());
        assert!(other.context_params().iter().eq(locator.context_params().iter()));
        assert!(other.directives().eq(locator.directives()));
        assert_eq!(other.to_name(), locator.to_name());
        assert_eq!(other.without_directives(), locator.without_directives());
    }
}

/// The crate and the reference read the same.
fn says_the_same(locator: &Locator<'_>, read: &reference::Read) {
    assert_eq!(locator.scheme().as_str(), read.scheme);
    assert_eq!(locator.authority(), read.authority);
    assert_eq!(locator.resource_type(), read.resource_type);
    assert_eq!(locator.id(), read.id);
    assert_eq!(locator.is_glob(), read.is_glob());
    assert_eq!(locator.context_params().len(), read.params.len());
    assert!(locator.context_params().iter().eq(read.params.iter().map(|(key, value)| (key.into(), value.into()))));
    for (key, value) in &read.params {
        assert_eq!(locator.context_params().get(key).as_deref(), Some(value.as_str()));
    }
    assert_eq!(locator.directives().count(), read.directives.len());
    for (directive, read) in locator.directives().zip(&read.directives) {
        match read {
            reference::Directive::Alt(read) => says_the_same(&directive.alt().unwrap(), read),
            reference::Directive::Entry(name) => assert_eq!(directive.entry().as_deref(), Some(name.as_str())),
        }
    }
    assert_eq!(locator.to_canonical(), read.canonical());
}

fn check_error(text: &str, error: xdstp_uri::ParseError) {
    assert!(text.is_char_boundary(error.offset()), "{error} in {text:?}");
}
