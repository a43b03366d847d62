//! Parsing allocates nothing; reading a component only where it holds an escape; a canonical string once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use allocation_counter::measure;
use xdstp_uri::{Locator, ResourceName, Urn};

const SHORT: &str = "xdstp://xds.example.com/envoy.config.listener.v3.Listener/web";
const ESCAPED: &str = "xdstp://a/T/x%20y?zone=b&env=a%26b&j=1&a=2";
const ALT: &str = "xdstp://a/T/foo?env=prod#alt=xdstp://b/T/foo?env=prod,entry=vhost_1";

#[track_caller]
fn allocations(expected: u64, run: impl FnOnce()) {
    assert_eq!(measure(run).count_total, expected);
}

#[test]
fn parsing_allocates_nothing() {
    for text in [SHORT, ESCAPED, ALT] {
        allocations(0, || drop(Locator::parse(text).unwrap()));
    }
    allocations(0, || assert!(Urn::parse(SHORT).unwrap().is_canonical()));
    allocations(0, || assert!(Locator::parse("xdstp://a/T#entry=m,entry=n").is_err()));
}

#[test]
fn reading_allocates_what_it_decodes() {
    let alt = Locator::parse(ALT).unwrap();
    allocations(0, || {
        let fallback = alt.alt().unwrap();
        assert_eq!((&*fallback.authority(), &*alt.id(), alt.entry().as_deref()), ("b", "foo", Some("vhost_1")));
        assert_eq!(fallback.context_params().iter().count(), 1);
    });
    let escaped = Urn::parse(ESCAPED).unwrap();
    allocations(1, || assert_eq!(escaped.id(), "x y"));
    allocations(0, || assert_eq!(escaped.context_params().get("zone").as_deref(), Some("b")));
}

#[test]
fn canonical_strings_allocate_once() {
    allocations(0, || drop(Locator::parse(ALT).unwrap().to_canonical()));
    allocations(1, || drop(Locator::parse("xdstp://a/T/x?b=1&a=2").unwrap().to_canonical()));
    allocations(1, || drop(ResourceName::parse(SHORT).unwrap()));
    let name = ResourceName::parse(SHORT).unwrap();
    allocations(0, || drop(name.clone()));
    let glob = name.glob_parent().unwrap();
    allocations(0, || assert!(name.answers(&glob)));
}
