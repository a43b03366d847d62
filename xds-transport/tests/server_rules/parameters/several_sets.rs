//! Several sets of parameters on one stream, as a relay has them.

use std::time::Duration;

use super::*;
use crate::support::{self, LISTENERS};

#[test]
fn two_selections_of_one_name_are_told_apart() {
    let (mut server, prod, test) = with_two_variants();
    let mut relay = Client::new(Dialect::Final);
    let asked = [("cart", "env=prod"), ("cart", "env=test"), ("cart", "env=qa")];
    assert_eq!(relay.locate(&mut server, &asked), ["-cart{env=qa} cart{env=prod}@1 cart{env=test}@2"]);
    change(&mut server, "cart", &[], &[&test]);
    assert_eq!(relay.poll(&mut server), ["-cart{env=test}"]);
    assert_eq!(relay.ask(&mut server, &Ask { leaves: &asked[1..], ..Ask::default() }), [""; 0]);
    change(&mut server, "cart", &[(&test, "3")], &[]);
    assert_eq!(relay.poll(&mut server), [""; 0], "nobody asks for it any more");
    change(&mut server, "cart", &[(&prod, "4")], &[]);
    assert_eq!(relay.poll(&mut server), ["cart{env=prod}@4"]);
}

#[test]
fn what_two_selections_select_is_sent_once_and_goes_with_the_last() {
    let mut server = Server::origin();
    let (all, prod) = (constraints("exists(env)"), constraints("env=prod"));
    change(&mut server, "cart", &[(&all, "1")], &[]);
    let mut relay = Client::new(Dialect::Final);
    let asked = [("cart", "env=prod"), ("cart", "env=test")];
    assert_eq!(relay.locate(&mut server, &asked), ["cart{exists(env)}@1"]);
    let others = constraints("exists(env) and not env=prod");
    change(&mut server, "cart", &[(&prod, "2"), (&others, "3")], &[&all]);
    let told = relay.poll(&mut server);
    assert_eq!(told, ["-cart{exists(env)} cart{env=prod}@2 cart{exists(env) and not env=prod}@3"]);
}

#[test]
fn a_variant_that_one_selection_loses_and_another_has_is_not_told_as_gone() {
    let mut server = Server::origin();
    let all = constraints("exists(env)");
    change(&mut server, "cart", &[(&all, "1")], &[]);
    let mut relay = Client::new(Dialect::Final);
    relay.locate(&mut server, &[("cart", "env=prod"), ("cart", "env=test")]);
    // A narrower one comes beside it: it overlaps, and the first in order is served to who has both.
    let prod = constraints("env=prod");
    change(&mut server, "cart", &[(&prod, "2")], &[]);
    for told in relay.poll(&mut server) {
        assert!(!told.contains("-cart{exists(env)}"), "{told}");
    }
}

#[test]
fn rule_122_what_one_of_several_sets_is_yet_to_be_sent_others_wait_for() {
    let (mut server, prod, _) = with_two_variants();
    server.put(LISTENERS, "l", "0");
    let mut client = Client::new(Dialect::Final);
    client.locate(&mut server, &[("cart", "env=prod"), ("cart", "env=test")]);
    let listeners = support::Ask { of: LISTENERS, subscribe: &["l"], ..Default::default() }.encode();
    client.stream.handle_message(server.now, listeners, &mut server.cache).unwrap();
    assert_eq!(client.poll(&mut server), ["l@0"]);
    let poll = |client: &mut Client, server: &mut Server| {
        client
            .stream
            .poll_transmit(server.now, &mut server.cache)
            .unwrap()
            .map(|transmit| transmit.type_url.to_string())
    };
    for version in 2..10 {
        change(&mut server, "cart", &[(&prod, &version.to_string())], &[]);
        assert_eq!(poll(&mut client, &mut server).as_deref(), Some(CLUSTERS));
    }
    change(&mut server, "cart", &[(&prod, "10")], &[]);
    server.put(LISTENERS, "l", "1");
    assert_eq!(poll(&mut client, &mut server), None, "its window is full, and there is more");
    server.now += Duration::from_secs(1);
    assert_eq!(poll(&mut client, &mut server).as_deref(), Some(LISTENERS));
}

#[test]
fn rule_084_what_was_sent_for_one_set_says_nothing_of_what_another_holds() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&constraints("env=prod"), "1")], &[]);
    let mut client = Client::new(Dialect::Final);
    let [prod, test] = ["env=prod", "env=test"].map(|text| ("*", text));
    let locator = |(name, selects)| Locator::new(name, client.selector(selects)).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: [prod, test].map(locator).into(),
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    assert!(client.stream.poll_transmit(server.now, &mut server.cache).unwrap().is_some(), "and is not acknowledged");
    assert_eq!(client.ask(&mut server, &Ask { leaves: &[prod], ..Ask::default() }), [""; 0]);
    let told = client.locate(&mut server, &[test]);
    assert!(told.concat().is_empty(), "there was nothing for it: {told:?}");
}
