//! Full states of what is selected.

use xds_transport::server::ASKS_FOR_OTHERS;
use xds_transport::wire::Node;

use super::*;
use crate::support::ENDPOINTS;

#[test]
fn over_sotw_a_full_state_has_what_each_locator_selects_and_the_names() {
    let (mut server, prod, test) = with_two_variants();
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    let asked = [("cart", "env=prod"), ("cart", "env=test"), ("cart", "env=qa")];
    let told = client.want(&mut server, CLUSTERS, &["plain"], &asked);
    assert_eq!(told, ["cart{env=prod}@1 cart{env=test}@2 plain@7"]);
    change(&mut server, "cart", &[(&test, "3")], &[]);
    assert_eq!(client.poll(&mut server), ["cart{env=prod}@1 cart{env=test}@3 plain@7"]);
    change(&mut server, "cart", &[], &[&test]);
    assert_eq!(client.poll(&mut server), ["cart{env=prod}@1 plain@7"]);
    // It leaves what it has, and is told of what is new from then on.
    client.want(&mut server, CLUSTERS, &["plain"], &asked[1..]);
    change(&mut server, "cart", &[(&prod, "4")], &[]);
    assert_eq!(client.poll(&mut server), [""; 0]);
    change(&mut server, "cart", &[(&test, "5")], &[]);
    assert_eq!(client.poll(&mut server), ["cart{env=test}@5 plain@7"]);
}

#[test]
fn rule_120_over_sotw_what_is_asked_for_by_a_locator_is_wrapped_though_no_feature_says_so() {
    for dialect in [Dialect::Final, Dialect::Draft] {
        let mut server = Server::origin();
        server.put(CLUSTERS, "plain", "7");
        let mut by_name = Client::over(Protocol::Sotw, dialect, Settings::default());
        assert_eq!(by_name.want(&mut server, CLUSTERS, &["plain"], &[]), ["plain@bare"]);
        let mut by_locator = Client::over(Protocol::Sotw, dialect, Settings::default());
        assert_eq!(by_locator.want(&mut server, CLUSTERS, &[], &[("plain", "")]), ["plain@7"]);
        server.put(CLUSTERS, "plain", "8");
        assert_eq!(by_locator.poll(&mut server), ["plain@8"]);
    }
}

#[test]
fn over_sotw_a_locator_alone_is_no_wildcard() {
    let (mut server, ..) = with_two_variants();
    server.put(CLUSTERS, "other", "1");
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    assert_eq!(client.want(&mut server, CLUSTERS, &[], &[("cart", "env=prod")]), ["cart{env=prod}@1"]);
    assert_eq!(client.want(&mut server, CLUSTERS, &[], &[("other", "env=prod")]), ["other@1"]);
}

#[test]
fn over_sotw_a_type_that_is_told_by_changes_is_sent_the_variant_that_changed() {
    let mut server = Server::origin();
    let [one, two] = ["subset=1", "subset=2"].map(constraints);
    change_of(ENDPOINTS, &mut server, "cart", &[(&one, "1"), (&two, "2")], &[]);
    server.put(ENDPOINTS, "other", "1");
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    let asked = [("cart", "subset=1"), ("other", "subset=1")];
    assert_eq!(client.want(&mut server, ENDPOINTS, &[], &asked), ["cart{subset=1}@1 other@1"]);
    change_of(ENDPOINTS, &mut server, "cart", &[(&two, "3")], &[]);
    assert_eq!(client.poll(&mut server), [""; 0]);
    change_of(ENDPOINTS, &mut server, "cart", &[(&one, "4")], &[]);
    assert_eq!(client.poll(&mut server), ["cart{subset=1}@4"]);
}

#[test]
fn over_sotw_the_draft_wraps_what_it_selects() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&parameters(&[("env", "prod")]), "1")], &[]);
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::over(Protocol::Sotw, Dialect::Draft, Settings::default());
    let told = client.want(&mut server, CLUSTERS, &["plain"], &[("cart", "env=prod")]);
    assert_eq!(told, ["cart{{env=prod}}@1"], "its names are ignored");
}

/// Who asks by locators alone is told as others are, and each error once in a response.
#[test]
fn rule_118_over_sotw_what_is_sent_of_a_collection_that_is_refused_comes_with_its_error_to_locators_too() {
    for of in [CLUSTERS, ENDPOINTS] {
        // To who holds nothing of what is not answered, a wildcard's full state is not written (rule 151).
        let wildcard = (of == ENDPOINTS).then_some(("*", "a"));
        for (asked, member) in wildcard.into_iter().chain([("xdstp://x/T/d/*", "xdstp://x/T/d/1")]) {
            let mut server = Server::relay();
            crate::support::Client::delta().subscribe(&mut server, of, &[member]);
            let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
            client.want(&mut server, of, &[], &[(asked, "env=prod")]);
            server.put(of, member, "1");
            client.poll(&mut server);
            server.fail(of, asked, 7);
            let told = client.poll(&mut server);
            let refusal = format!("!{asked}:7 why");
            assert_eq!(told.concat().matches(&refusal).count(), 1, "{of} {asked}: {told:?}");
            for version in ["2", "3"] {
                server.put(of, member, version);
                assert_eq!(client.poll(&mut server), [format!("{refusal} {member}@{version}")], "{of} {asked}");
            }
        }
    }
}

/// What is in a response before it is known that something is refused is of that, too.
#[test]
fn rule_118_over_sotw_a_refusal_that_comes_with_what_is_sent_to_locators_is_told_beside_it() {
    let mut server = Server::relay();
    crate::support::Client::delta().subscribe(&mut server, ENDPOINTS, &["a"]);
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    client.want(&mut server, ENDPOINTS, &[], &[("*", "env=prod")]);
    server.put(ENDPOINTS, "a", "1");
    assert_eq!(client.poll(&mut server), ["a@1"]);
    server.put(ENDPOINTS, "a", "2");
    server.fail(ENDPOINTS, "*", 7);
    assert_eq!(client.poll(&mut server), ["!*:7 why a@2"]);
}

/// A relay that came from another one, and may hold what is not here: it asks for these, by locators or by name.
fn relay(server: &mut Server, by_locators: bool, asked: &[&str]) -> (Client, Vec<String>) {
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    let client_features = vec![ASKS_FOR_OTHERS.into(), "xds.config.resource-in-sotw".into()];
    client.request.node = Node { client_features, ..Node::default() }.encode_to_vec().into();
    let locators: Vec<_> = asked.iter().map(|name| (*name, "env=prod")).collect();
    let told = match by_locators {
        true => client.want(server, CLUSTERS, &[], &locators),
        false => client.want(server, CLUSTERS, asked, &[]),
    };
    (client, told)
}

/// All that lacks in it is gone to a relay that is not told why, and so it is to all that ask that relay.
#[test]
fn rule_151_a_full_state_has_the_error_of_all_that_is_asked_for_and_refused_though_nothing_of_it_is_sent() {
    let (glob, other) = ("xdstp://x/T/g/*", "xdstp://x/T/h/*");
    for by_locators in [false, true] {
        for (refused, first) in [(glob, false), (glob, true), ("*", false), ("*", true)] {
            let mut server = Server::relay();
            let (mut client, told) = relay(&mut server, by_locators, &[refused, "c"]);
            assert_eq!(told, [""; 0]);
            let mut told = Vec::new();
            // The error comes first, or what it is sent with.
            for errs in [first, !first] {
                match errs {
                    true => server.fail(CLUSTERS, refused, 7),
                    false => server.put(CLUSTERS, "c", "1"),
                }
                told.extend(client.poll(&mut server));
            }
            let state = told.iter().find(|line| line.contains("c@1"));
            assert_eq!(state, Some(&format!("!{refused}:7 why c@1")), "{by_locators} {refused} {first}: {told:?}");
            server.put(CLUSTERS, "c", "2");
            assert_eq!(client.poll(&mut server), [format!("!{refused}:7 why c@2")]);
        }
        // It was answered as empty, before its origin was lost and refused it.
        for refused in [glob, "*"] {
            let mut server = Server::relay();
            let _first = relay(&mut server, by_locators, &[refused, other]);
            server.answered(CLUSTERS, refused);
            server.cache.origin_lost();
            server.fail(CLUSTERS, refused, 7);
            let (_, told) = relay(&mut server, by_locators, &[refused]);
            assert_eq!(told, [format!("!{refused}:7 why")], "{by_locators} {refused}");
        }
    }
}

/// The state that answers it is the first that could say so.
#[test]
fn rule_117_a_full_state_that_answers_a_request_has_the_errors_of_what_it_lacks_to_locators_too() {
    for by_locators in [false, true] {
        let mut server = Server::relay();
        let (mut client, _) = relay(&mut server, by_locators, &["c", "x"]);
        server.fail(CLUSTERS, "x", 14);
        assert_eq!(client.poll(&mut server), [""; 0]);
        server.put(CLUSTERS, "c", "1");
        assert_eq!(client.poll(&mut server), ["!x:14 why c@1"], "{by_locators}");
    }
}
