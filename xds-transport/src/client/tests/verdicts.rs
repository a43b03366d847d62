//! Verdicts that come in another order than the responses they are about.

use crate::wire::Duration as WireDuration;

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

/// An origin that refreshes what it sent does not know whether its client is through with it.
#[test]
fn rule_112_a_heartbeat_counts_for_what_waits_for_its_verdict() {
    let ttl = |seconds| Some(WireDuration { seconds, nanos: 0 });
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["a"]);
    client.accept(&delta(CDS, "n0", &[("a", "0")], &[]));
    client.delta();
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = ttl(30);
    client.receive(&response);
    let update = client.update().unwrap();
    client.advance(20);
    let mut heartbeat = DeltaDiscoveryResponse { nonce: "n2".into(), ..response.clone() };
    heartbeat.resources[0].resource = None;
    assert_eq!(client.accept(&heartbeat).refreshed, [(name("a"), Duration::from_secs(30))]);
    assert!(client.delta().unwrap().error_detail.is_none());
    client.finish(&update, Verdict::Accept);
    client.advance(29);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);

    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*"]);
    let resource = Resource { resource: Some(body(CDS, "a", "1")), ..response.resources[0].clone() };
    let refresh = Resource { resource: None, ..resource.clone() };
    let full_state =
        |nonce, resource| DiscoveryResponse { resources: vec![wrapped(resource)], ..sotw(CDS, "v1", nonce, &[]) };
    client.receive(&full_state("n1", &resource));
    let update = client.update().unwrap();
    client.advance(20);
    assert_eq!(client.accept(&full_state("n2", &refresh)).refreshed, [(name("a"), Duration::from_secs(30))]);
    client.finish(&update, Verdict::Accept);
    client.advance(29);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);
}

#[test]
fn rule_028_reasons_are_told_as_they_are_up_to_8_kib() {
    const MOST: usize = 8 * 1024;
    for (length, whole) in [(MOST, true), (MOST + 1, false)] {
        let mut client = Client::subscribed(Protocol::Delta, CDS, &["a"]);
        // Behind its name, a colon and a space.
        client.reject(&delta(CDS, "n1", &[("a", "1")], &[]), "a", &"x".repeat(length - 3));
        let message = client.delta().unwrap().error_detail.unwrap().message;
        assert_eq!((message.len(), message.ends_with('x')), (MOST, whole));
    }
}

#[test]
fn that_there_are_more_reasons_than_8_kib_is_told() {
    const MOST: usize = 8 * 1024;
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["a", "b"]);
    client.receive(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
    let update = client.update().unwrap();
    // The first of them fills it, behind its name, a colon and a space.
    let reasons = vec![Rejected::new("a", "x".repeat(MOST - 3)), Rejected::new("b", "y")];
    client.finish(&update, Verdict::Reject { reasons });
    let message = client.delta().unwrap().error_detail.unwrap().message;
    assert_eq!((message.len(), message.ends_with("(truncated)")), (MOST, true));
}
