//! What is absent because nothing was said of it in time.

use super::*;

#[test]
fn rule_138_silence_is_told_once_and_a_late_answer_counts() {
    for (of, interest) in [(EDS, "a"), (CDS, "a"), (CDS, GLOB)] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &[interest]);
        client.advance(14);
        assert!(client.update().is_none());
        client.advance(1);
        let update = client.update().unwrap();
        assert_eq!([missing(&update), answered(&update)].concat(), [interest]);
        client.advance(60);
        assert!(client.update().is_none(), "once");
        let late = if interest == "a" { "a" } else { MEMBER_A };
        assert_eq!(changed_names(&client.accept(&sotw(of, "v1", "n1", &[(late, "1")]))), [late]);
        client.advance(60);
        assert!(client.update().is_none(), "only at the start");
    }
}

#[test]
fn rule_074_a_name_is_absent_fifteen_seconds_after_it_was_asked_for() {
    let mut client = Client::new(Protocol::Sotw);
    client.subscribe(EDS, &["a", "b"]);
    client.advance(60);
    assert_eq!(client.stream.poll_timeout(), None, "not sent");
    client.connect();
    assert_eq!(client.stream.poll_timeout(), None, "not sent");
    client.sotw();
    assert_eq!(client.stream.poll_timeout(), Some(client.now + Duration::from_secs(15)));
    client.accept(&sotw(EDS, "v1", "n1", &[("b", "1")]));
    client.advance(14);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(missing(&client.update().unwrap()), ["a"]);
    client.advance(60);
    assert!(client.update().is_none());

    let update = client.accept(&sotw(EDS, "v2", "n2", &[("a", "1")]));
    assert_eq!(changed_names(&update), ["a"], "late is not never");
}

#[test]
fn rule_074_the_timer_stops_with_the_stream_and_does_not_run_for_what_is_cached() {
    let mut client = endpoints(&["a", "b"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("b", "1")]));
    client.stream.disconnected(client.now);
    assert_eq!(client.stream.poll_timeout(), None);
    client.advance(60);
    assert!(client.update().is_none());
    client.connect();
    client.sotw();
    client.advance(15);
    assert_eq!(missing(&client.update().unwrap()), ["a"]);
}

#[test]
fn rule_074_silence_says_nothing_of_what_came_and_has_its_verdict_late() {
    for seconds in [1, 15, 20] {
        let mut client = endpoints(&["a"]);
        client.receive(&sotw(EDS, "v1", "n1", &[("a", "1")]));
        let update = client.update().unwrap();
        client.reconnect();
        client.sotw();
        client.advance(seconds);
        client.finish(&update, Verdict::Accept);
        client.advance(20);
        assert!(client.update().is_none());
    }
}

#[test]
fn rule_074_a_name_asked_for_anew_has_its_full_time() {
    let mut client = endpoints(&["a", "b"]);
    client.advance(10);
    client.unsubscribe(EDS, &["a"]);
    client.sotw();
    client.subscribe(EDS, &["a"]);
    client.sotw();
    client.advance(5);
    assert_eq!(missing(&client.update().unwrap()), ["b"]);
    client.advance(10);
    assert_eq!(missing(&client.update().unwrap()), ["a"]);
}

#[test]
fn rule_075_a_response_stops_the_timer_even_if_it_is_invalid() {
    let mut client = endpoints(&["a"]);
    client.advance(14);
    let broken = Resource { name: "a".into(), resource: Some(body(CDS, "a", "")), ..Resource::default() };
    let response = DiscoveryResponse { resources: vec![wrapped(&broken)], ..sotw(EDS, "v1", "n1", &[]) };
    assert_eq!(client.accept(&response).rejected.len(), 1);
    client.advance(60);
    assert!(client.update().is_none());
}

#[test]
fn rule_150_to_a_relay_silence_is_no_answer_and_a_response_without_the_name_is_one_late() {
    for of in [EDS, CDS] {
        let mut client = Client::new(Protocol::Sotw);
        client.stream = client.stream.with_silence(Silence::IsNoAnswer);
        client.subscribe(of, &["a", "b"]);
        client.connect();
        client.sotw();
        client.advance(3600);
        assert!(client.update().is_none());
        assert_eq!(client.stream.poll_timeout(), None);
        client.accept(&sotw(of, "v1", "n1", &[("b", "1")]));
        client.sotw();
        client.advance(14);
        assert!(client.update().is_none());
        client.advance(1);
        assert_eq!(missing(&client.update().unwrap()), ["a"]);
        client.advance(60);
        assert!(client.update().is_none());
    }
}

#[test]
fn rule_150_to_a_relay_nothing_is_absent_while_bytes_come_that_may_be_its_answer() {
    for (silence, expected) in [(Silence::IsNoAnswer, 28), (Silence::IsAbsence, 15)] {
        let mut client = Client::new(Protocol::Sotw);
        client.stream = client.stream.with_silence(silence);
        client.subscribe(CDS, &["a", "b"]);
        client.connect();
        client.sotw();
        client.accept(&sotw(CDS, "v1", "n1", &[("b", "1")]));
        client.sotw();
        let absent = (1..60).find_map(|second| {
            client.advance(1);
            if second <= 13 {
                client.stream.received(client.now);
            }
            client.update().map(|update| (second, update.missing))
        });
        assert_eq!(absent, Some((expected, vec!["a".parse().unwrap()])));
    }
}
