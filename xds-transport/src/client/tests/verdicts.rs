//! Verdicts that come in another order than the responses they are about.

use super::*;

/// The order of the verdicts on two responses, the first of which is `false`.
const ORDERS: [[bool; 2]; 2] = [[false, true], [true, false]];

#[test]
fn rule_015_an_older_version_never_goes_with_a_newer_nonce() {
    for type_url in [CDS, EDS] {
        for order in ORDERS {
            for polls_between in [false, true] {
                for reconnects in [false, true] {
                    let mut client = Client::subscribed(Protocol::Sotw, type_url, &["a"]);
                    client.receive(&sotw(type_url, "v1", "n1", &[("a", "1")]));
                    let first = client.update().unwrap();
                    if reconnects {
                        client.reconnect();
                        client.sotw();
                    }
                    client.receive(&sotw(type_url, "v2", "n2", &[("a", "2")]));
                    let second = client.update().unwrap();
                    let mut requests = Vec::new();
                    for newer in order {
                        client.finish(if newer { &second } else { &first }, Verdict::Accept);
                        requests.extend(client.sotw().filter(|_| polls_between));
                    }
                    client.subscribe(type_url, &["b"]);
                    requests.extend(std::iter::from_fn(|| client.sotw()));
                    let said =
                        |request: &DiscoveryRequest| (request.version_info.clone(), request.response_nonce.clone());
                    let said: Vec<_> = requests.iter().map(said).collect();
                    assert!(!said.is_empty());
                    assert!(said.iter().all(|said| *said == ("v2".into(), "n2".into())), "{order:?} {said:?}");
                }
            }
        }
    }
}

#[test]
fn rule_026_a_newer_response_that_is_refused_leaves_the_version_to_an_older_one() {
    for order in ORDERS {
        let mut client = Client::subscribed(Protocol::Sotw, EDS, &["a"]);
        client.receive(&sotw(EDS, "v1", "n1", &[("a", "1")]));
        client.receive(&sotw(EDS, "v2", "n2", &[("a", "2")]));
        let [first, second] = [client.update().unwrap(), client.update().unwrap()];
        for newer in order {
            match newer {
                true => client.finish(&second, Verdict::Reject { reasons: vec![Rejected::new("a", "no")] }),
                false => client.finish(&first, Verdict::Accept),
            }
        }
        let nack = client.sotw().unwrap();
        assert_eq!((nack.version_info.as_str(), nack.response_nonce.as_str()), ("v1", "n2"), "{order:?}");
        assert!(nack.error_detail.is_some());
    }
}

#[test]
fn rule_083_the_version_that_came_last_is_held_whichever_is_accepted_first() {
    for order in ORDERS {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &["*"]);
        client.receive(&delta(CDS, "n1", &[("a", "1"), ("b", "1"), ("c", "1")], &[]));
        client.receive(&delta(CDS, "n2", &[("a", "2")], &["b"]));
        let updates = [client.update().unwrap(), client.update().unwrap()];
        for newer in order {
            client.finish(&updates[usize::from(newer)], Verdict::Accept);
        }
        client.reconnect();
        let request = client.delta().unwrap();
        assert_eq!(initial_versions(&request), owned(&[("a", "2"), ("c", "1")]), "{order:?}");
    }
}

#[test]
fn rule_066_what_is_missing_from_a_newer_full_state_is_gone_before_the_verdict_on_the_older_one() {
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*"]);
    client.receive(&sotw(CDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    client.receive(&sotw(CDS, "v2", "n2", &[("a", "1")]));
    let updates = [client.update().unwrap(), client.update().unwrap()];
    assert_eq!(removed(&updates[1]), ["b"]);
    for update in &updates {
        client.finish(update, Verdict::Accept);
    }
    let update = client.accept(&sotw(CDS, "v3", "n3", &[("a", "2")]));
    assert_eq!((changed_names(&update), removed(&update)), (vec!["a"], vec![]), "once");
}
