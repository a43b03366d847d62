//! The wildcard, or a glob as a whole, is refused: TP3 has that of globs, and relays say the same of `*`.

use super::*;
use crate::wire::Duration as WireDuration;

fn failed(update: &Update) -> Vec<(&str, i32)> {
    update.errors.iter().map(|(name, error)| (name.as_str(), error.code)).collect()
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

/// A refusal of something.
fn refusal(nonce: &str, asked: &str, code: i32) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse { resource_errors: vec![error(asked, code)], ..delta(CDS, nonce, &[], &[]) }
}

const OTHER: &str = "xdstp://auth/envoy.config.cluster.v3.Cluster/dir/*?k=1";

#[test]
fn rule_118_a_glob_that_is_refused_says_nothing_of_another_whose_members_have_other_askers_too() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB, MEMBER_A, OTHER]);
    client.accept(&refusal("n1", OTHER, 7));
    let update = client.accept(&delta(CDS, "n2", &[(MEMBER_A, "1")], &[]));
    assert_eq!((answered(&update), failed(&update)), (vec![GLOB], vec![]));

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &[GLOB, MEMBER_A, OTHER]);
    let full = sotw(CDS, "v1", "n1", &[(MEMBER_A, "1")]);
    let update = client.accept(&DiscoveryResponse { resource_errors: vec![error(OTHER, 7)], ..full });
    assert_eq!((answered(&update), complete(&update)), (vec![GLOB], vec![GLOB]));
}

#[test]
fn rule_118_a_glob_is_refused_until_something_comes_that_nothing_else_asks_for() {
    for also in [MEMBER_A, "*"] {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB, also]);
        client.accept(&refusal("n1", GLOB, 7));
        let update = client.accept(&delta(CDS, "n2", &[(MEMBER_A, "1")], &[]));
        assert!(!answered(&update).contains(&GLOB), "{also}");
        let update = client.accept(&delta(CDS, "n3", &[(MEMBER_B, "1")], &[]));
        assert_eq!(answered(&update).contains(&GLOB), also != "*", "{also}");
        // A new stream is asked for all of it.
        client.reconnect();
        while client.poll().is_some() {}
        let update = client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[]));
        assert!(answered(&update).contains(&GLOB), "{also}");
    }
}

/// The error is of the collection as it is when the response is written.
#[test]
fn rule_118_what_comes_in_the_response_that_refuses_its_collection_is_no_answer() {
    for (asked, member) in [("*", "a"), (GLOB, MEMBER_A)] {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &[asked]);
        client.accept(&refusal("n1", asked, 14));
        let both = delta(CDS, "n2", &[(member, "1")], &[]);
        let update = client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error(asked, 7)], ..both });
        assert_eq!((changed_names(&update), failed(&update)), (vec![member], vec![(asked, 7)]));
        assert_eq!((answered(&update), removed(&update)), (vec![], vec![]), "{asked}");
        // That it lives on says nothing, either.
        let mut beat = delta(CDS, "n3", &[(member, "1")], &[]);
        (beat.resources[0].resource, beat.resources[0].ttl) = (None, Some(WireDuration { seconds: 9, nanos: 0 }));
        assert_eq!(answered(&client.accept(&beat)), [""; 0], "{asked}");
        let update = client.accept(&delta(CDS, "n4", &[(member, "2")], &[]));
        assert_eq!(answered(&update), [asked]);
    }
}

#[test]
fn rule_118_over_sotw_a_full_state_that_repeats_what_is_held_does_not_end_a_refusal() {
    for (asked, member) in [("*", "a"), (GLOB, MEMBER_A)] {
        let mut client = Client::subscribed(Protocol::Sotw, CDS, &[asked]);
        client.accept(&sotw(CDS, "v1", "n1", &[(member, "1")]));
        let full = sotw(CDS, "v1", "n2", &[(member, "1")]);
        client.accept(&DiscoveryResponse { resource_errors: vec![error(asked, 7)], ..full });
        assert_eq!(answered(&client.accept(&sotw(CDS, "v2", "n3", &[(member, "1")]))), [""; 0], "{asked}");
        assert_eq!(answered(&client.accept(&sotw(CDS, "v3", "n4", &[(member, "2")]))), [asked]);
    }
}

#[test]
fn rule_118_that_a_glob_does_not_exist_ends_its_refusal_and_what_is_held_of_it() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &[GLOB]);
    client.accept(&delta(CDS, "n1", &[(MEMBER_A, "1")], &[]));
    client.accept(&refusal("n2", GLOB, 14));
    let update = client.accept(&refusal("n3", GLOB, 5));
    assert_eq!((removed(&update), answered(&update)), (vec![MEMBER_A], vec![GLOB]));
}

/// The error of what was given up is none of what is asked for next.
#[test]
fn rule_118_a_refusal_that_is_older_than_the_request_withholds_nothing() {
    for (asked, member) in [("*", "a"), (GLOB, MEMBER_A)] {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &[asked, "b"]);
        client.unsubscribe(CDS, &[asked]);
        while client.poll().is_some() {}
        client.subscribe(CDS, &[asked, member]);
        assert_eq!(answered(&client.accept(&refusal("n1", asked, 7))), [""; 0]);
        while client.poll().is_some() {}
        // What answers the request may be all that there is, and asked for otherwise, too.
        let update = client.accept(&delta(CDS, "n2", &[(member, "1")], &[]));
        assert_eq!(answered(&update), [asked]);
    }
}

/// It was on its way to who asked for it, or it is to tell who leaves it that it has it still.
#[test]
fn rule_118_what_was_left_beside_a_collection_that_is_refused_says_nothing_of_that_the_first_time_it_comes() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for (type_url, asked, member) in [(CDS, "*", "a"), (EDS, "*", "a"), (CDS, GLOB, MEMBER_A)] {
            let mut client = Client::subscribed(protocol, type_url, &[asked, member]);
            let respond = |client: &mut Client, nonce: &str, code: Option<i32>, version: &str| {
                let there = [(member, version)];
                let errors = code.map(|code| error(asked, code)).into_iter().collect();
                let update = match protocol {
                    Protocol::Delta => client.accept(&DeltaDiscoveryResponse {
                        resource_errors: errors,
                        ..delta(type_url, nonce, &there, &[])
                    }),
                    Protocol::Sotw => client.accept(&DiscoveryResponse {
                        resource_errors: errors,
                        ..sotw(type_url, version, nonce, &there)
                    }),
                };
                while client.poll().is_some() {}
                let refused = update.refused.iter().map(Interest::to_string).collect::<Vec<_>>().concat();
                (answered(&update).concat(), refused)
            };
            let refused = (String::new(), asked.to_owned());
            assert_eq!(respond(&mut client, "n1", Some(7), "1"), refused, "{protocol:?} {asked}");
            client.unsubscribe(type_url, &[member]);
            while client.poll().is_some() {}
            assert_eq!(respond(&mut client, "n2", None, "2"), refused, "{protocol:?} {asked}");
            let over = (asked.to_owned(), String::new());
            assert_eq!(respond(&mut client, "n3", None, "3"), over, "{protocol:?} {asked}");
        }
    }
}

/// Beside what is sent of it, it is said again of what was refused before: two more requests have two more answers.
#[test]
fn rule_086_an_error_of_the_wildcard_that_is_said_again_answers_no_request() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*", "a"]);
    client.accept(&refusal("n1", "*", 7));
    for _ in 0..2 {
        client.unsubscribe(CDS, &["*"]);
        while client.poll().is_some() {}
        client.subscribe(CDS, &["*"]);
        while client.poll().is_some() {}
    }
    let again = delta(CDS, "n2", &[("a", "1")], &[]);
    client.accept(&DeltaDiscoveryResponse { resource_errors: vec![error("*", 7)], ..again });
    assert_eq!(complete(&client.accept(&delta(CDS, "n3", &[], &[]))), [""; 0]);
    assert_eq!(complete(&client.accept(&delta(CDS, "n4", &[], &[]))), ["*"]);
}

/// There may be very many others: what is told beside a response is not longer than that.
#[test]
fn rule_118_an_update_names_of_what_is_refused_only_what_something_of_it_is_of() {
    let (glob, member) = ("xdstp://x/T/e/*", "xdstp://x/T/e/1");
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::subscribed(protocol, EDS, &["*", GLOB, glob, MEMBER_A, member]);
        let mut respond = |nonce: &str, refused: &[&str], there: &[(&str, &str)]| {
            let errors = refused.iter().map(|name| error(name, 7)).collect();
            let update = match protocol {
                Protocol::Delta => {
                    client.accept(&DeltaDiscoveryResponse { resource_errors: errors, ..delta(EDS, nonce, there, &[]) })
                }
                Protocol::Sotw => {
                    client.accept(&DiscoveryResponse { resource_errors: errors, ..sotw(EDS, nonce, nonce, there) })
                }
            };
            update.refused.iter().map(Interest::to_string).collect::<Vec<_>>()
        };
        assert_eq!(respond("n1", &["*", GLOB, glob], &[]), ["*"], "{protocol:?}");
        assert_eq!(respond("n2", &[], &[(MEMBER_A, "1")]), ["*", GLOB], "{protocol:?}");
        assert_eq!(respond("n3", &[], &[(MEMBER_A, "2"), (member, "1")]), ["*", GLOB, glob], "{protocol:?}");
    }
}
