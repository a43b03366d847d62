//! An origin that has a method for each type, and each type a stream of its own.

use xdstp_cache::Cause;

use super::*;

const BOTH: [Protocol; 2] = [Protocol::Delta, Protocol::Sotw];
/// One that has no service.
const OTHER: &str = "type.example.com/example.Limit";

fn client(protocol: Protocol) -> Client {
    let mut client = Client::new(protocol);
    client.stream = client.stream.per_type().with_silence(Silence::IsAbsence);
    client
}

/// The requests of types that there is room for, by the last word of the type: whether they name a node, and a nonce.
fn requests(client: &mut Client, room: &[&str]) -> Vec<(String, bool, String)> {
    let (now, protocol) = (client.now, client.stream.protocol());
    let next = || {
        let (of, request) = client.stream.poll_transmit_by_type(now, |of| room.contains(&of.as_str()))?;
        let (type_url, node, nonce) = match protocol {
            Protocol::Delta => {
                let DeltaDiscoveryRequest { type_url, node, response_nonce, .. } =
                    DeltaDiscoveryRequest::decode(request).unwrap();
                (type_url, node, response_nonce)
            }
            Protocol::Sotw => {
                let DiscoveryRequest { type_url, node, response_nonce, .. } =
                    DiscoveryRequest::decode(request).unwrap();
                (type_url, node, response_nonce)
            }
        };
        assert_eq!(type_url, of.as_str());
        let last = type_url.rsplit('.').next().unwrap().to_owned();
        Some((last, !node.is_empty(), nonce))
    };
    std::iter::from_fn(next).collect()
}

fn first(of: &str) -> (String, bool, String) {
    (of.to_owned(), true, String::new())
}

fn later(of: &str, nonce: &str) -> (String, bool, String) {
    (of.to_owned(), false, nonce.to_owned())
}

/// Whether its stream goes on.
fn receive(client: &mut Client, on: &str, of: &str, nonce: &str) -> bool {
    let message = match client.stream.protocol() {
        Protocol::Delta => delta(of, nonce, &[("a", "1")], &[]).encode_to_vec(),
        Protocol::Sotw => sotw(of, nonce, nonce, &[("a", "1")]).encode_to_vec(),
    };
    client.stream.handle_message_of(client.now, &on.into(), message.into()).is_ok()
}

fn accept(client: &mut Client, of: &str, nonce: &str) {
    assert!(receive(client, of, of, nonce));
    let update = client.update().unwrap();
    let all = [changed_names(&update), update.repeated.iter().map(|again| again.name.as_str()).collect()].concat();
    assert_eq!((update.type_url.as_str(), all.len() + update.unchanged), (of, 1), "{update:?}");
    client.finish(&update, Verdict::Accept);
}

fn errors(update: &Update) -> Vec<(&str, i32)> {
    update.errors.iter().map(|(name, error)| (name.as_str(), error.code)).collect()
}

/// How many updates wait that are of a type.
fn told_of(client: &mut Client, of: &str) -> usize {
    let updates: Vec<_> = std::iter::from_fn(|| client.update()).collect();
    updates.iter().for_each(|update| client.finish(update, Verdict::Accept));
    updates.iter().filter(|update| update.type_url.as_str() == of).count()
}

#[test]
fn rule_005_the_first_request_of_each_stream_names_the_node_and_no_other_does() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(CDS, &["*"]);
        client.subscribe(EDS, &["a"]);
        for _ in 0..2 {
            client.connect();
            assert_eq!(requests(&mut client, &[CDS, EDS]), [first("Cluster"), first("ClusterLoadAssignment")]);
            accept(&mut client, CDS, "n1");
            client.subscribe(EDS, &["b"]);
            let more = [later("Cluster", "n1"), later("ClusterLoadAssignment", "")];
            assert_eq!(requests(&mut client, &[CDS, EDS]), more, "{protocol:?}");
            client.unsubscribe(EDS, &["b"]);
            client.stream.disconnected(client.now);
        }
    }
}

#[test]
fn a_stream_that_has_no_room_holds_up_no_other() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(CDS, &["*"]);
        client.subscribe(EDS, &["a"]);
        client.connect();
        assert_eq!(requests(&mut client, &[EDS]), [first("ClusterLoadAssignment")]);
        assert_eq!(requests(&mut client, &[CDS]), [first("Cluster")]);
        // Nor an answer, or what is asked for.
        accept(&mut client, CDS, "n1");
        client.subscribe(EDS, &["b"]);
        assert_eq!(requests(&mut client, &[EDS]), [later("ClusterLoadAssignment", "")], "{protocol:?}");
        accept(&mut client, EDS, "n2");
        assert_eq!(requests(&mut client, &[EDS]), [later("ClusterLoadAssignment", "n2")]);
        assert_eq!(requests(&mut client, &[]), []);
        assert_eq!(requests(&mut client, &[CDS]), [later("Cluster", "n1")]);
    }
}

#[test]
fn a_type_without_a_service_is_an_error_of_each_name_and_is_never_asked_for() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(OTHER, &["a", "*"]);
        client.subscribe(CDS, &["*"]);
        let update = client.update().unwrap();
        assert_eq!(errors(&update), [("*", 12), ("a", 12)], "all at once");
        let (_, error) = &update.errors[0];
        assert!(error.message.contains(OTHER) && error.is_transient() && error.cause == Cause::Unasked);
        assert!(removed(&update).is_empty() && missing(&update).is_empty());
        client.finish(&update, Verdict::Accept);
        assert!(client.update().is_none());
        for _ in 0..2 {
            client.connect();
            assert_eq!(requests(&mut client, &[CDS, OTHER]), [first("Cluster")], "{protocol:?}");
            client.advance(60);
            assert_eq!(told_of(&mut client, OTHER), 0, "silence says nothing of what was not asked for");
            client.stream.disconnected(client.now);
        }
    }
}

#[test]
fn a_type_that_the_origin_has_no_method_for_is_refused_until_the_next_connection() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(EDS, &["a", "b"]);
        client.subscribe(CDS, &["*"]);
        client.connect();
        requests(&mut client, &[CDS, EDS]);
        let why = || xdstp_cache::ResourceError::new(12, "no such method");
        client.stream.refuse_type(&EDS.into(), why());
        let update = client.update().unwrap();
        assert_eq!((update.type_url.as_str(), errors(&update)), (EDS, vec![("a", 12), ("b", 12)]));
        client.finish(&update, Verdict::Accept);
        // Nothing of it is gone, however long.
        client.advance(60);
        assert_eq!(told_of(&mut client, EDS), 0, "{protocol:?}");
        // Who asks meanwhile is told, and what comes late is not for it.
        client.subscribe(EDS, &["c"]);
        assert_eq!(errors(&client.update().unwrap()), [("c", 12)]);
        assert!(receive(&mut client, EDS, EDS, "n1"));
        assert!(client.update().is_none());
        // Others go on.
        accept(&mut client, CDS, "n2");
        assert_eq!(requests(&mut client, &[CDS, EDS]), [later("Cluster", "n2")]);
        client.reconnect();
        assert_eq!(requests(&mut client, &[CDS, EDS]), [first("Cluster"), first("ClusterLoadAssignment")]);
        accept(&mut client, EDS, "n3");
    }
}

#[test]
fn a_stream_that_brings_another_type_or_nothing_that_can_be_read_is_over_and_no_other_is() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(CDS, &["*"]);
        client.subscribe(EDS, &["a"]);
        client.connect();
        requests(&mut client, &[CDS, EDS]);
        for is_readable in [true, false] {
            if is_readable {
                assert!(!receive(&mut client, EDS, CDS, "n1"), "its stream is to be closed");
            } else {
                let garbage = client.stream.handle_message_of(client.now, &EDS.into(), vec![0x0a, 0x70].into());
                assert!(garbage.is_err());
            }
            assert!(client.update().is_none());
            assert_eq!(requests(&mut client, &[CDS, EDS]), [], "{protocol:?}: no answer on the other stream");
            client.stream.ask_again(&EDS.into());
            assert_eq!(requests(&mut client, &[CDS, EDS]), [first("ClusterLoadAssignment")]);
        }
        accept(&mut client, CDS, "n2");
    }
}

fn why() -> xdstp_cache::ResourceError {
    xdstp_cache::ResourceError::new(12, "no such method")
}

fn refused(client: &mut Client) -> Vec<String> {
    client.stream.refuse_type(&EDS.into(), why());
    let Some(update) = client.update() else { return Vec::new() };
    client.finish(&update, Verdict::Accept);
    errors(&update).iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn a_refused_type_is_asked_for_again_and_each_of_its_names_is_told_once() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(EDS, &["a", "b"]);
        client.connect();
        requests(&mut client, &[EDS]);
        assert_eq!(refused(&mut client), ["a", "b"]);
        for _ in 0..2 {
            assert_eq!(requests(&mut client, &[EDS]), []);
            client.stream.ask_again(&EDS.into());
            assert_eq!(requests(&mut client, &[EDS]), [first("ClusterLoadAssignment")], "{protocol:?}");
            assert_eq!(refused(&mut client), [""; 0]);
        }
        // Who asks while it is tried is told if that fails, too.
        client.stream.ask_again(&EDS.into());
        client.subscribe(EDS, &["c"]);
        client.unsubscribe(EDS, &["b"]);
        client.subscribe(EDS, &["b"]);
        assert!(client.update().is_none());
        assert_eq!(refused(&mut client), ["b", "c"]);
        client.stream.ask_again(&EDS.into());
        requests(&mut client, &[EDS]);
        accept(&mut client, EDS, "n1");
        // What was answered since may be refused anew.
        assert_eq!(refused(&mut client), ["a", "b", "c"]);
    }
}

#[test]
fn rule_118_the_error_of_a_refused_type_is_over_with_what_comes_back_as_it_was() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(EDS, &["a"]);
        client.connect();
        requests(&mut client, &[EDS]);
        accept(&mut client, EDS, "n1");
        requests(&mut client, &[EDS]);
        assert_eq!(refused(&mut client), ["a"]);
        client.stream.ask_again(&EDS.into());
        let now = client.now;
        let (_, request) = client.stream.poll_transmit_by_type(now, |_| true).unwrap();
        if protocol == Protocol::Delta {
            // To a version the origin might say nothing.
            let request = DeltaDiscoveryRequest::decode(request).unwrap();
            let versions: Vec<_> =
                request.initial_resource_versions.iter().map(|entry| entry.contains(&b'1')).collect();
            assert_eq!(versions, [false]);
        }
        receive(&mut client, EDS, EDS, "n1");
        let update = client.update().unwrap();
        assert_eq!(update.changed.len() + update.repeated.len(), 1, "{protocol:?}: {update:?}");
    }
}

#[test]
fn a_wildcard_that_was_refused_is_answered_anew() {
    let mut client = client(Protocol::Delta);
    client.subscribe(CDS, &["*"]);
    client.connect();
    requests(&mut client, &[CDS]);
    accept(&mut client, CDS, "n1");
    client.stream.refuse_type(&CDS.into(), why());
    let update = client.update().unwrap();
    assert_eq!((errors(&update), update.withheld().count()), (vec![("*", 12)], 1));
    client.finish(&update, Verdict::Accept);
    client.stream.ask_again(&CDS.into());
    requests(&mut client, &[CDS]);
    receive(&mut client, CDS, CDS, "n2");
    assert_eq!(answered(&client.update().unwrap()), ["*"]);
}

/// Over delta the origin may have nothing to say to who has it all, and over SotW to who has its version.
#[test]
fn rule_118_what_has_an_error_that_nobody_said_is_asked_for_so_that_the_origin_says_something() {
    for (protocol, of, wanted) in [(Protocol::Delta, CDS, "*"), (Protocol::Sotw, EDS, "a")] {
        let mut client = client(protocol);
        client.subscribe(of, &[wanted]);
        client.connect();
        requests(&mut client, &[of]);
        accept(&mut client, of, "n1");
        for is_told in [false, true] {
            if is_told {
                client.stream.refuse_type(&of.into(), why());
                assert_eq!(errors(&client.update().unwrap()), [(wanted, 12)]);
            } else {
                client.stream.type_ended(&of.into());
            }
            client.stream.ask_again(&of.into());
            let (_, request) = client.stream.poll_transmit_by_type(client.now, |_| true).unwrap();
            let says = match protocol {
                Protocol::Delta => {
                    let request = DeltaDiscoveryRequest::decode(request).unwrap();
                    request.initial_resource_versions.iter().any(|entry| !entry.contains(&b'1'))
                }
                Protocol::Sotw => DiscoveryRequest::decode(request).unwrap().version_info != "n1",
            };
            assert_eq!(says, is_told, "{protocol:?}");
        }
        // Once it has, all is as before.
        accept(&mut client, of, "n1");
        client.stream.type_ended(&of.into());
        client.stream.ask_again(&of.into());
        let (_, request) = client.stream.poll_transmit_by_type(client.now, |_| true).unwrap();
        if protocol == Protocol::Sotw {
            assert_eq!(DiscoveryRequest::decode(request).unwrap().version_info, "n1");
        }
    }
}

#[test]
fn what_waits_to_be_told_is_held_up_by_no_answer_that_has_no_room() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(CDS, &["*"]);
        client.connect();
        requests(&mut client, &[CDS]);
        accept(&mut client, CDS, "n1");
        assert!(client.stream.has_answer() && client.stream.has_answer_by_type(|_| true));
        assert!(!client.stream.has_answer_by_type(|of| of.as_str() != CDS), "{protocol:?}");
        client.stream.type_ended(&CDS.into());
        assert!(!client.stream.has_answer_by_type(|_| true));
    }
}

#[test]
fn silence_says_nothing_of_a_type_that_has_no_stream() {
    for protocol in BOTH {
        let mut client = client(protocol);
        client.subscribe(EDS, &["a"]);
        client.subscribe(CDS, &["*"]);
        client.connect();
        requests(&mut client, &[CDS, EDS]);
        client.stream.type_ended(&EDS.into());
        client.advance(60);
        assert_eq!(told_of(&mut client, EDS), 0, "{protocol:?}");
        client.stream.ask_again(&EDS.into());
        assert_eq!(requests(&mut client, &[EDS]), [first("ClusterLoadAssignment")]);
        client.advance(60);
        assert_eq!(told_of(&mut client, EDS), 1, "{protocol:?}: now it does");
    }
}

#[test]
fn what_has_no_method_is_kept_for_as_long_as_it_is_wanted() {
    let mut client = client(Protocol::Delta);
    let kept = |client: &Client| client.stream.over.as_ref().unwrap().len();
    client.subscribe(OTHER, &["a"]);
    client.subscribe("type.example.com/example.Another", &["a"]);
    client.unsubscribe(OTHER, &["a"]);
    client.connect();
    client.reconnect();
    assert_eq!(kept(&client), 1);
    client.unsubscribe("type.example.com/example.Another", &["a"]);
    client.reconnect();
    assert_eq!(kept(&client), 0);
}
