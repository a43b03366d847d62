//! How much a client may ask for, and how much goes into a response.

use bytes::Bytes;
use xds_transport::wire::DiscoveryResponse;

use super::*;
use crate::support::ENDPOINTS;

#[test]
fn a_stream_has_so_many_sets_of_parameters() {
    let mut settings = Settings::default();
    settings.selectors_per_stream = 2;
    let mut client = Client::over(Protocol::Delta, Dialect::Final, settings);
    let (mut server, ..) = with_two_variants();
    client.locate(&mut server, &[("cart", "a=1"), ("cart", "a=2"), ("shop", "a=2")]);
    client.ask(&mut server, &Ask { leaves: &[("cart", "a=1")], ..Ask::default() });
    client.locate(&mut server, &[("cart", "a=3")]);
    let fourth = Locator::new("cart", client.selector("a=4")).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![fourth],
        ..Default::default()
    };
    let refused = client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache);
    assert_eq!(refused.unwrap_err().to_string(), "more than 2 sets of dynamic parameters on one stream");
    client.stream.close(&mut server.cache);
    assert_eq!(server.cache.subscriber_count(), 0);
}

/// As many names with as long a set of parameters as make far more than a response may have.
#[test]
fn what_there_is_none_of_is_told_in_parts() {
    let mut server = Server::origin();
    let mut client = Client::new(Dialect::Final);
    let long = format!("a={}", "x".repeat(50_000));
    let names: Vec<_> = (0..100).map(|n| format!("n{n}")).collect();
    let mut locators: Vec<_> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
    locators.push(("other", "a=1"));
    let told = client.locate(&mut server, &locators);
    assert!(told.len() > 10, "{} responses", told.len());
    let gone: usize = told.iter().map(|line| line.split_whitespace().count()).sum();
    assert_eq!(gone, 101);
    assert!(told.iter().all(|line| line.len() < 512 * 1024));
}

#[test]
fn what_a_client_brings_along_counts_for_each_set_that_may_have_it() {
    let mut settings = Settings::default();
    settings.names_per_stream = 1000;
    let mut client = Client::over(Protocol::Delta, Dialect::Final, settings);
    let server = &mut Server::origin();
    let selectors: Vec<_> = (0..90).map(|n| format!("a={n}")).collect();
    let locator = |selects: &String| Locator::new("*", client.selector(selects)).encode(Dialect::Final).unwrap();
    let entry = |n: usize| [b"\x0a\x05", format!("n{n:04}").as_bytes(), b"\x12\x011"].concat().into();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: selectors.iter().map(locator).collect(),
        initial_resource_versions: (0..900).map(entry).collect(),
        ..Default::default()
    };
    let refused = client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache);
    assert_eq!(refused.unwrap_err().to_string(), "more than 1000 names on one stream");
    client.stream.close(&mut server.cache);
    assert_eq!(server.cache.subscriber_count(), 0);
}

#[test]
fn a_set_of_parameters_is_no_longer_than_a_name_may_be() {
    let mut client = Client::new(Dialect::Final);
    let server = &mut Server::origin();
    let long = client.selector(&format!("a={}", "x".repeat(70_000)));
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![Locator::new("cart", long).encode(Dialect::Final).unwrap()],
        ..Default::default()
    };
    let refused = client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache);
    assert!(refused.unwrap_err().to_string().starts_with("a set of dynamic parameters of 70004 bytes, "));
}

#[test]
fn a_long_set_of_parameters_counts_for_each_kib_that_it_begins() {
    let ask = |limit| {
        let mut settings = Settings::default();
        settings.names_per_stream = limit;
        let client = &mut Client::over(Protocol::Delta, Dialect::Final, settings);
        let server = &mut Server::origin();
        let long = client.selector(&format!("a={}", "x".repeat(5_000)));
        let request = DeltaDiscoveryRequest {
            type_url: CLUSTERS.into(),
            resource_locators_subscribe: vec![Locator::new("cart", long).encode(Dialect::Final).unwrap()],
            ..Default::default()
        };
        client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache)
    };
    ask(10).unwrap();
    assert_eq!(ask(5).unwrap_err().to_string(), "more than 5 names on one stream");
}

#[test]
fn what_is_refused_twice_counts_once() {
    let mut settings = Settings::default();
    settings.names_per_stream = 3;
    let mut client = Client::over(Protocol::Delta, Dialect::Draft, settings);
    let mut server = Server::origin();
    // A range without bounds, of the name `bad`.
    let bad = b"\x0a\x03bad\x12\x11\x0a\x0f\x0a\x05shard\x12\x06\x12\x04\x12\x02\x0a\x00";
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![Bytes::from_static(bad); 3],
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    assert_eq!(client.poll(&mut server).len(), 1);
    assert_eq!(client.stream.names(), 0, "it was told");
}

/// The longest resource beside which there is room for another fills the response but for one byte.
#[test]
fn rule_133_a_response_is_full_at_its_budget() {
    const BUDGET: usize = 256 * 1024;
    /// What a resource counts for beside its bytes.
    const RESOURCE: usize = 384;
    let first = |length: usize| {
        let mut server = Server::origin();
        let (of, prod) = (ENDPOINTS.into(), constraints("env=prod"));
        for (name, length) in [("a", length), ("b", 1)] {
            let mut edit = server.cache.edit(server.now);
            let frame = Frame::of_message(&of, &payload(name, &"x".repeat(length)));
            edit.put_variant(&of, &name.parse().unwrap(), &prod, frame.into_resource(Some("1".into())));
            _ = edit.finish();
        }
        let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
        let locator = |name| Locator::new(name, client.selector("env=prod")).encode(Dialect::Final).unwrap();
        let resource_locators = vec![locator("a"), locator("b")];
        let request = DiscoveryRequest { type_url: ENDPOINTS.into(), resource_locators, ..Default::default() };
        client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
        let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
        DiscoveryResponse::decode(told.into_bytes()).unwrap()
    };
    let (mut fits, mut fills) = (BUDGET - 2 * 1024, BUDGET);
    while fills - fits > 1 {
        let length = usize::midpoint(fits, fills);
        if first(length).resources.len() > 1 { fits = length } else { fills = length }
    }
    let mut full = first(fills);
    let whole = full.encoded_len();
    assert_eq!(std::mem::take(&mut full.resources).len(), 1);
    assert_eq!(whole - full.encoded_len() + RESOURCE, BUDGET);
}
