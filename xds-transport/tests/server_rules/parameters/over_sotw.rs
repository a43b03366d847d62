//! Full states of what is selected.

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
