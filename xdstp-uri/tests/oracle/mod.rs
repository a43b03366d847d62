//! What must hold for any text whatever: for property tests, for fuzzing, and for replaying what fuzzing found.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "an oracle fails by panicking")]

pub(crate) mod reference;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use xdstp_uri::{ContextParams, Locator, MAX_LEN, NameKey, ResourceName, Urn};

use self::reference::Read;

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
    names_the_same(text, urn.as_ref().ok(), name.as_ref().ok());
    for error in [urn.err(), name.err()].into_iter().flatten() {
        check_error(text, error);
    }
}

/// The crate and the reference take the same texts for names, and the same names for globs, members and collections.
fn names_the_same(text: &str, urn: Option<&Urn<'_>>, name: Option<&ResourceName>) {
    let read = reference::read_name(text);
    assert_eq!(urn.is_some(), read.as_ref().is_some_and(|read| !read.is_glob()), "{text:?}");
    let Some(read) = read else {
        let opaque = !text.starts_with("xdstp:") && text.len() <= MAX_LEN;
        assert_eq!(name.map(ResourceName::as_str), opaque.then_some(text), "{text:?}");
        return assert!(name.is_none_or(|name| name.is_opaque() && !name.is_glob() && name.glob_parent().is_none()));
    };
    let name = name.unwrap_or_else(|| panic!("no name: {text:?}"));
    let named = |read: &Read| ResourceName::parse(&read.canonical()).unwrap();
    assert_eq!((name.as_str(), name), (read.canonical().as_str(), &named(&read)));
    assert_eq!(name.locator().unwrap().authority(), read.authority);
    assert_eq!((name.resource_type(), name.id().as_deref()), (Some(&*read.resource_type), Some(&*read.id)));
    assert_eq!(name.is_glob(), read.is_glob());
    assert_eq!(name.glob_parent(), read.parent().as_ref().map(named));
    // Who may be asked for beside it: itself, globs near it, and each of these with other parameters.
    let near = |id: String| Read { id, ..read.clone() };
    let (segments, last) = read.id.rsplit_once('/').map_or(("", &*read.id), |(directory, last)| (directory, last));
    let mut others = vec![read.clone(), near(format!("{}/*", read.id)), near("*".into()), near("*/".to_owned() + last)];
    others.extend([near(format!("{segments}/*")), near(segments.to_owned()), near(String::new())]);
    others.extend(read.parent());
    let reparametrized = |read: &Read| {
        let others = [BTreeMap::from([("k".to_owned(), "v".to_owned())]), BTreeMap::new()];
        others.map(|params| Read { params, ..read.clone() })
    };
    let reparametrized: Vec<Read> = others.iter().flat_map(reparametrized).collect();
    for other in others.into_iter().chain(reparametrized).filter(|other| other.canonical().len() <= MAX_LEN) {
        assert_eq!(name.answers(&named(&other)), read.answers(&other), "{text:?} for {other:?}");
        assert_eq!(named(&other).answers(name), other.answers(&read), "{other:?} for {text:?}");
    }
}

/// What a node subscribes to for a collection.
fn collects_the_same(locator: &Locator<'_>, read: &Read) {
    for node in [&[][..], &[("k", "n"), ("xds.node.id", "1&2")]] {
        let params = ContextParams::new(node.iter().copied()).unwrap();
        let name = locator.to_collection_name(&read.resource_type, &params).ok();
        let collection = read.collection(node).map(|read| read.canonical());
        assert_eq!(name.as_ref().map(ResourceName::as_str), collection.as_deref());
    }
    let other = locator.to_collection_name("another.Type", &ContextParams::default());
    assert!(other.is_err() || read.resource_type == "another.Type");
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
    collects_the_same(&locator, &read);
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
fn says_the_same(locator: &Locator<'_>, read: &Read) {
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
