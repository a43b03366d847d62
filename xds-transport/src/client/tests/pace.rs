//! Reading and asking no faster than is good: rules 130, 135.

use super::*;
use crate::RateLimit;

const TEN_A_SECOND: RateLimit = RateLimit { burst: 10, every: Duration::from_millis(100) };

#[test]
fn rule_130_the_next_message_waits_until_the_last_one_is_in_use() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::subscribed(protocol, EDS, &["a"]);
        assert!(!client.stream.has_unfinished());
        match protocol {
            Protocol::Delta => client.receive(&delta(EDS, "n1", &[("a", "1")], &[])),
            Protocol::Sotw => client.receive(&sotw(EDS, "v1", "n1", &[("a", "1")])),
        }
        let update = client.update().unwrap();
        // Until here the driver reads nothing, the window fills, and the server waits.
        assert!(client.stream.has_unfinished() && client.poll().is_none());
        client.finish(&update, Verdict::Accept);
        assert!(!client.stream.has_unfinished() && client.poll().is_some());
    }
}

#[test]
fn rule_135_requests_are_paced_and_what_changes_meanwhile_is_one() {
    let mut client = Client::new(Protocol::Delta);
    client.stream = client.stream.limit_requests(TEN_A_SECOND).with_silence(Silence::IsNoAnswer);
    client.connect();
    let mut sent = Vec::new();
    for n in 0..100 {
        client.subscribe(EDS, &[&format!("n{n}")]);
        while let Some(request) = client.delta() {
            sent.push(request.resource_names_subscribe.len());
        }
    }
    assert_eq!(sent, [1; 10], "the burst");
    let turn = client.stream.poll_timeout().unwrap();
    assert_eq!(turn, client.now + TEN_A_SECOND.every);
    client.now = turn;
    client.stream.handle_timeout(turn);
    assert_eq!(client.delta().unwrap().resource_names_subscribe.len(), 90);
    // There may be more to say: it is looked at once more, and then never for nothing.
    assert!(client.poll().is_none());
    client.now = client.stream.poll_timeout().unwrap();
    assert!(client.poll().is_none());
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_135_answers_neither_wait_nor_count() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::new(protocol);
        client.stream = client.stream.limit_requests(RateLimit { burst: 2, ..TEN_A_SECOND });
        client.subscribe(EDS, &["a"]);
        client.connect();
        assert!(client.poll().is_some());
        for n in 0..100 {
            let nonce = format!("n{n}");
            match protocol {
                Protocol::Delta => drop(client.accept(&delta(EDS, &nonce, &[("a", "1")], &[]))),
                Protocol::Sotw => drop(client.accept(&sotw(EDS, "v", &nonce, &[("a", "1")]))),
            }
            assert!(client.poll().is_some(), "{n}");
        }
        client.subscribe(EDS, &["b"]);
        assert!(client.poll().is_some(), "the second of the burst");
        client.subscribe(EDS, &["c"]);
        assert!(client.poll().is_none());
    }
}

#[test]
fn rule_135_a_stream_that_is_away_waits_for_nothing() {
    let mut client = Client::new(Protocol::Delta);
    client.stream = client.stream.limit_requests(RateLimit { burst: 1, ..TEN_A_SECOND });
    client.subscribe(EDS, &["a"]);
    client.connect();
    assert!(client.poll().is_some() && client.poll().is_none());
    client.stream.disconnected(client.now);
    assert_eq!(client.stream.poll_timeout(), None);
}
