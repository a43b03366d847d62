//! The wildcard, or a glob as a whole, is refused: TP3 has that of globs, and relays say the same of `*`.

use super::*;

fn failed(update: &Update) -> Vec<(&str, i32)> {
    update.errors.iter().map(|(name, error)| (name.as_str(), error.code)).collect()
}

fn complete(update: &Update) -> Vec<&str> {
    update.complete.iter().map(Interest::as_str).collect()
}

/// Of a wildcard no error says what is in it; of a glob only that it does not exist.
fn cases() -> impl Iterator<Item = (&'static str, &'static str, i32)> {
    let codes = |asked, member, codes: &'static [i32]| codes.iter().map(move |code| (asked, member, *code));
    codes("*", "a", &[5, 7, 12, 14]).chain(codes(GLOB, MEMBER_A, &[7, 14]))
}

#[test]
fn rule_118_over_delta_a_collection_that_is_refused_is_not_answered_and_what_is_held_of_it_stays() {
    for (asked, member, code) in cases() {
        // Beside the error of a glob is a removal for clients that know no errors.
        for beside in [&[] as &[&str], &[asked]] {
            let mut client = Client::subscribed(Protocol::Delta, CDS, &[asked]);
            client.accept(&delta(CDS, "n1", &[(member, "1")], &[]));
            client.reconnect();
            client.delta();
            let beside = if asked == "*" { &[] } else { beside };
            let refusal = delta(CDS, "n1", &[], beside);
            let refusal = DeltaDiscoveryResponse { resource_errors: vec![error(asked, code)], ..refusal };
            let update = client.accept(&refusal);
            assert_eq!(failed(&update), [(asked, code)]);
            assert_eq!(update.withheld().map(|of| of.to_string()).collect::<Vec<_>>(), [asked]);
            assert_eq!((answered(&update), complete(&update), removed(&update)), (vec![], vec![], vec![]), "{asked}");
            client.advance(60);
            assert!(client.update().is_none());
            client.reconnect();
            let held = initial_versions(&client.delta().unwrap());
            assert_eq!(held.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [member]);
        }
    }
}

#[test]
fn rule_118_over_sotw_a_collection_that_is_refused_is_not_answered_and_what_is_held_of_it_stays() {
    for type_url in [CDS, EDS] {
        for (asked, member, code) in cases().filter(|(asked, ..)| type_url == CDS || *asked == "*") {
            let mut client = Client::subscribed(Protocol::Sotw, type_url, &[asked]);
            client.accept(&sotw(type_url, "v1", "n1", &[(member, "1")]));
            client.reconnect();
            client.sotw();
            for nonce in ["n1", "n2"] {
                let refusal = sotw(type_url, "v2", nonce, &[]);
                let errors = if nonce == "n1" { vec![error(asked, code)] } else { vec![] };
                let update = client.accept(&DiscoveryResponse { resource_errors: errors, ..refusal });
                assert_eq!(failed(&update).len(), usize::from(nonce == "n1"), "{asked}: said once, and remembered");
                let said = (answered(&update), complete(&update), removed(&update));
                assert_eq!(said, (vec![], vec![], vec![]), "{asked} {code}");
            }
            client.advance(60);
            assert!(client.update().is_none());
            client.reconnect();
            let version = client.sotw().unwrap().version_info;
            assert!(type_url != CDS || version != "v2", "it is not the version of what is held");
        }
    }
}

#[test]
fn rule_118_what_else_comes_says_nothing_of_a_wildcard_that_is_refused() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*", "a"]);
    let refusal = DeltaDiscoveryResponse { resource_errors: vec![error("*", 7)], ..delta(CDS, "n1", &[], &[]) };
    client.accept(&refusal);
    let update = client.accept(&delta(CDS, "n2", &[("a", "1")], &[]));
    assert_eq!((changed_names(&update), answered(&update)), (vec!["a"], vec![]));
    // Something that only the wildcard asks for: it may be asked for now.
    let update = client.accept(&delta(CDS, "n3", &[("b", "1")], &[]));
    assert_eq!((changed_names(&update), answered(&update)), (vec!["b"], vec!["*"]));

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*", "a"]);
    let refusal = DiscoveryResponse { resource_errors: vec![error("*", 7)], ..sotw(CDS, "v1", "n1", &[("a", "1")]) };
    let update = client.accept(&refusal);
    assert_eq!((changed_names(&update), answered(&update), complete(&update)), (vec!["a"], vec![], vec![]));
    let update = client.accept(&sotw(CDS, "v2", "n2", &[]));
    assert_eq!((removed(&update), complete(&update)), (vec!["a"], vec![]), "it was asked for by its name");
    let update = client.accept(&sotw(CDS, "v3", "n3", &[("b", "1")]));
    assert_eq!((answered(&update), complete(&update)), (vec!["*"], vec!["*"]));
    assert_eq!(removed(&client.accept(&sotw(CDS, "v4", "n4", &[]))), ["b"]);
}

#[test]
fn rule_086_a_wildcard_that_was_refused_and_has_nothing_is_answered_by_an_empty_response() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*"]);
    let refusal = DeltaDiscoveryResponse { resource_errors: vec![error("*", 7)], ..delta(CDS, "n1", &[], &[]) };
    client.accept(&refusal);
    let update = client.accept(&delta(CDS, "n2", &[], &[]));
    assert_eq!((answered(&update), complete(&update)), (vec!["*"], vec!["*"]));
    // And one that is given up and asked for again is asked for anew.
    client.accept(&refusal);
    client.unsubscribe(CDS, &["*"]);
    client.subscribe(CDS, &["*"]);
    let update = client.accept(&delta(CDS, "n3", &[("b", "1")], &[]));
    assert!(answered(&update).len() <= 1 && complete(&update).is_empty());
}
