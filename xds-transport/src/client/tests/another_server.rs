//! A stream whose next server is another one, to which no version means anything that the one before gave.

use super::*;

#[test]
fn rule_083_another_server_is_told_what_is_held_and_no_version_of_it() {
    // A name that a glob covers, too: whatever it is held by, it is not as this server has it.
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*", "named", GLOB, MEMBER_B]);
    client.accept(&delta(CDS, "n1", &[("a", "1"), ("named", "1"), (MEMBER_A, "1"), (MEMBER_B, "1")], &[]));
    client.stream.of_another_server(client.now);
    assert!(client.poll().is_none(), "the stream that was open is over");
    client.connect();
    let first = client.delta().unwrap();
    assert_eq!(first.resource_names_subscribe, ["*", "named", GLOB, MEMBER_B]);
    assert_eq!(initial_versions(&first), owned(&[("a", ""), ("named", ""), (MEMBER_A, ""), (MEMBER_B, "")]));
    // What it gives, it may be told; what it did not speak of, it may not.
    client.accept(&delta(CDS, "n1", &[("a", "7"), (MEMBER_A, "1")], &["named"]));
    client.reconnect();
    let expected = [("a", "7"), (MEMBER_A, "1"), (MEMBER_B, "")];
    assert_eq!(initial_versions(&client.delta().unwrap()), owned(&expected));
}

#[test]
fn what_another_server_has_alike_is_no_news_if_it_calls_it_alike() {
    let mut client = Client::subscribed(Protocol::Delta, CDS, &["*"]);
    client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    client.stream.of_another_server(client.now);
    client.connect();
    client.delta().unwrap();
    let update = client.accept(&delta(CDS, "n1", &[("a", "1")], &[]));
    assert_eq!((update.changed.len(), update.repeated.len()), (0, 1));
}

#[test]
fn over_sotw_it_is_told_once_that_another_server_has_something_alike() {
    for of in [CDS, EDS] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &["a"]);
        client.accept(&sotw(of, "1", "n1", &[("a", "1")]));
        client.sotw().unwrap();
        client.stream.of_another_server(client.now);
        client.connect();
        client.sotw().unwrap();
        let update = client.accept(&sotw(of, "7", "n1", &[("a", "1")]));
        assert_eq!((update.changed.len(), update.repeated.len(), update.removed.len()), (0, 1, 0), "{of}");
        client.sotw().unwrap();
        assert!(client.accept(&sotw(of, "8", "n2", &[("a", "1")])).repeated.is_empty(), "{of}");
    }
}

#[test]
fn rule_015_another_server_is_told_no_version_of_a_type() {
    for of in [CDS, EDS] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &["a", "b"]);
        client.accept(&sotw(of, "1", "n1", &[("a", "1"), ("b", "1")]));
        client.sotw().unwrap();
        client.stream.of_another_server(client.now);
        client.connect();
        let first = client.sotw().unwrap();
        assert_eq!((first.version_info.as_str(), first.response_nonce.as_str()), ("?", ""), "{of}");
        assert_eq!(first.resource_names, ["a", "b"]);
        let update = client.accept(&sotw(of, "1", "n1", &[("a", "2")]));
        assert_eq!(changed_names(&update), ["a"], "{of}");
        // Only where a response is all there is, absence is a word.
        assert_eq!(removed(&update), if of == CDS { vec!["b"] } else { vec![] }, "{of}");
        assert_eq!(client.sotw().unwrap().version_info, "1", "that is its own");
    }
}

#[test]
fn rule_030_a_verdict_that_comes_late_is_about_the_server_before() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::subscribed(protocol, EDS, &["a"]);
        match protocol {
            Protocol::Delta => client.receive(&delta(EDS, "n1", &[("a", "1")], &[])),
            Protocol::Sotw => client.receive(&sotw(EDS, "1", "n1", &[("a", "1")])),
        }
        let update = client.update().unwrap();
        client.stream.of_another_server(client.now);
        client.finish(&update, Verdict::Accept);
        client.connect();
        match protocol {
            Protocol::Delta => assert_eq!(initial_versions(&client.delta().unwrap()), owned(&[("a", "")])),
            Protocol::Sotw => assert_eq!(client.sotw().unwrap().version_info, "?"),
        }
    }
}
