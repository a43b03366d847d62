//! Rules that hold in either protocol alike, by code of its own in each.

use super::*;

const BOTH: [Protocol; 2] = [Protocol::Delta, Protocol::Sotw];

/// What either kind of request has.
struct Request {
    node: Bytes,
    nonce: String,
    error: Option<String>,
}

impl Client {
    /// A response with resources as (name, version).
    fn receives(&mut self, type_url: &str, nonce: &str, resources: &[(&str, &str)]) {
        match self.stream.protocol() {
            Protocol::Delta => self.receive(&delta(type_url, nonce, resources, &[])),
            Protocol::Sotw => self.receive(&sotw(type_url, nonce, nonce, resources)),
        }
    }

    fn requests(&mut self) -> Vec<Request> {
        let next =
            || match self.stream.protocol() {
                Protocol::Delta => {
                    self.delta().map(|DeltaDiscoveryRequest { node, response_nonce, error_detail, .. }| Request {
                        node,
                        nonce: response_nonce,
                        error: error_detail.map(|error| error.message),
                    })
                }
                Protocol::Sotw => self.sotw().map(|DiscoveryRequest { node, response_nonce, error_detail, .. }| {
                    Request { node, nonce: response_nonce, error: error_detail.map(|error| error.message) }
                }),
            };
        std::iter::from_fn(next).collect()
    }
}

#[test]
fn rule_005_the_node_is_named_once_on_every_stream_by_either_protocol() {
    for protocol in BOTH {
        let mut client = Client::new(protocol);
        client.subscribe(CDS, &["*"]);
        client.subscribe(EDS, &["a"]);
        for stream in 0..3 {
            client.connect();
            let nodes: Vec<_> = client.requests().iter().map(|request| request.node.len()).collect();
            assert_eq!(nodes, [4, 0], "{protocol:?} {stream}");
            client.receives(CDS, "n1", &[("a", "1")]);
            let update = client.update().unwrap();
            client.finish(&update, Verdict::Accept);
            assert!(client.requests().iter().all(|request| request.node.is_empty()), "nor by answers");
            client.stream.disconnected(client.now);
        }
    }
}

#[test]
fn rule_008_what_nobody_asked_for_is_not_answered_in_either_protocol() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*"]);
        for type_url in [EDS, "type.example.com/bogus"] {
            client.receives(type_url, "n1", &[("a", "1")]);
            assert!(client.update().is_none() && client.requests().is_empty(), "{protocol:?} {type_url}");
        }
        // It was subscribed, on a stream before this one.
        client.subscribe(EDS, &["a"]);
        client.requests();
        client.unsubscribe(EDS, &["a"]);
        client.requests();
        client.reconnect();
        client.requests();
        client.receives(EDS, "n1", &[("a", "1")]);
        assert!(client.update().is_none() && client.requests().is_empty(), "{protocol:?}: rule 88");
    }
}

#[test]
fn rule_062_what_was_not_asked_for_is_dropped_and_acknowledged_in_either_protocol() {
    for protocol in BOTH {
        for type_url in [CDS, EDS] {
            let mut client = Client::subscribed(protocol, type_url, &["a"]);
            client.receives(type_url, "n1", &[("a", "1"), ("extra", "1")]);
            let update = client.update().unwrap();
            assert_eq!(changed_names(&update), ["a"], "{protocol:?}");
            client.finish(&update, Verdict::Accept);
            let [ack] = &client.requests()[..] else { panic!("{protocol:?}") };
            assert_eq!((ack.nonce.as_str(), ack.error.as_ref()), ("n1", None));
            // Nor is it held: its absence is nothing.
            client.receives(type_url, "n2", &[("a", "2")]);
            assert_eq!(removed(&client.update().unwrap()), [""; 0], "{protocol:?}");
        }
    }
}

#[test]
fn rule_062_what_was_left_before_it_was_heard_of_is_in_no_update_though_it_is_asked_for_again() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*", "a"]);
        client.receives(CDS, "n1", &[("a", "1"), ("b", "1")]);
        client.unsubscribe(CDS, &["*"]);
        client.subscribe(CDS, &["*"]);
        let update = client.update().unwrap();
        assert_eq!(changed_names(&update), ["a"], "{protocol:?}");
        client.finish(&update, Verdict::Accept);
        client.requests();
        client.receives(CDS, "n2", &[("b", "1")]);
        assert_eq!(changed_names(&client.update().unwrap()), ["b"], "{protocol:?}: it is news");
    }
}

/// Who asks for it again waits for the answer to that.
#[test]
fn rule_062_what_is_said_of_what_was_left_before_it_was_heard_of_is_no_answer_though_it_is_asked_for_again() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*", "a"]);
        let again = |client: &mut Client, interest: &str| {
            client.unsubscribe(CDS, &[interest]);
            client.subscribe(CDS, &[interest]);
            let update = client.update().unwrap();
            client.finish(&update, Verdict::Accept);
            client.requests();
            update
        };
        client.receives(CDS, "n1", &[]);
        let update = again(&mut client, "*");
        assert_eq!((answered(&update), complete(&update)), (vec![], vec![]), "{protocol:?}");
        client.receives(CDS, "n2", &[("a", "1")]);
        let update = client.update().unwrap();
        client.finish(&update, Verdict::Accept);
        assert_eq!(answered(&update), ["*"], "{protocol:?}");

        client.subscribe(CDS, &["b"]);
        client.requests();
        match protocol {
            Protocol::Delta => client.advance(15),
            Protocol::Sotw => client.receives(CDS, "n3", &[("a", "1")]),
        }
        let update = again(&mut client, "b");
        assert_eq!((missing(&update), lacking(&update)), (vec![], vec![]), "{protocol:?}");
        client.advance(15);
        assert_eq!(missing(&client.update().unwrap()), ["b"], "{protocol:?}");
    }
}

#[test]
fn rule_032_a_nack_names_all_that_failed_and_the_rest_is_used_in_either_protocol() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*"]);
        client.receives(CDS, "n1", &[("good", "1"), ("red", "1"), ("blue", "1")]);
        let update = client.update().unwrap();
        let reasons = ["red", "blue"].map(|name| Rejected::new(name, "too much of it"));
        client.finish(&update, Verdict::Reject { reasons: reasons.into() });
        let [nack] = &client.requests()[..] else { panic!("{protocol:?}") };
        assert_eq!(nack.error.as_deref(), Some("red: too much of it; blue: too much of it"));
        // Rule 29: what was fine is held, and is no news.
        client.receives(CDS, "n2", &[("good", "1"), ("red", "2"), ("blue", "2")]);
        let update = client.update().unwrap();
        let news: Vec<_> = update.changed.iter().filter(|changed| !changed.touched).collect();
        assert_eq!(news.iter().map(|changed| changed.name.as_str()).collect::<Vec<_>>(), ["red", "blue"]);
    }
}

#[test]
fn rule_088_no_answer_outlives_its_stream_in_either_protocol() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*"]);
        client.receives(CDS, "n1", &[("a", "1")]);
        let told = client.update().unwrap();
        // There is no room for its answer.
        client.finish(&told, Verdict::Reject { reasons: vec![Rejected::new("a", "no")] });
        client.receives(CDS, "n2", &[("a", "2")]);
        let late = client.update().unwrap();
        client.reconnect();
        client.finish(&late, Verdict::Reject { reasons: vec![Rejected::new("a", "no")] });
        let requests = client.requests();
        assert_eq!(requests.len(), 1, "{protocol:?}");
        assert!(requests.iter().all(|request| request.nonce.is_empty() && request.error.is_none()), "{protocol:?}");
    }
}

#[test]
fn rule_076_what_comes_before_the_request_is_no_answer_to_it_in_either_protocol() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["a"]);
        client.subscribe(CDS, &["*"]);
        let mut told = Vec::new();
        for nonce in ["n1", "n2"] {
            client.receives(CDS, nonce, &[("a", nonce)]);
            let update = client.update().unwrap();
            client.finish(&update, Verdict::Accept);
            told.push(answered(&update).join(" "));
            client.requests();
        }
        assert_eq!(told, ["", "*"], "{protocol:?}");
    }
}

/// Types are named by a relay's clients.
#[test]
fn a_type_that_nobody_wants_any_more_leaves_nothing_behind_on_the_next_stream() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*"]);
        client.subscribe(EDS, &["a"]);
        client.requests();
        client.unsubscribe(EDS, &["a"]);
        client.reconnect();
        assert_eq!(client.stream.sessions.len(), 1, "{protocol:?}");
    }
}

/// What was under way on a stream is nothing to the next: its first request names all that is wanted, as a first one does.
#[test]
fn rule_088_a_first_request_is_one_whatever_was_said_before() {
    let mut client = Client::subscribed(Protocol::Sotw, EDS, &["a", "b"]);
    client.receives(EDS, "n1", &[("a", "1"), ("b", "1")]);
    let update = client.update().unwrap();
    client.finish(&update, Verdict::Accept);
    client.requests();
    client.unsubscribe(EDS, &["a"]);
    client.requests();
    client.stream.disconnected(client.now);
    client.subscribe(EDS, &["a"]);
    client.connect();
    assert_eq!(client.sotw().unwrap().resource_names, ["a", "b"]);
    assert!(client.requests().is_empty());

    // Rule 43: the wildcard is an empty list until names were sent.
    let mut client = Client::subscribed(Protocol::Sotw, CDS, &["*", "x"]);
    client.receives(CDS, "n1", &[("x", "1")]);
    let update = client.update().unwrap();
    client.finish(&update, Verdict::Accept);
    client.unsubscribe(CDS, &["x"]);
    assert_eq!(client.sotw().unwrap().resource_names, ["*"]);
    client.reconnect();
    assert_eq!(client.sotw().unwrap().resource_names, [""; 0]);
}

#[test]
fn a_stream_that_failed_stays_failed_until_there_is_another() {
    for protocol in BOTH {
        let mut client = Client::subscribed(protocol, CDS, &["*"]);
        client.receives(CDS, "n1", &[("a", "1")]);
        let update = client.update().unwrap();
        let fatal = client.stream.handle_message(client.now, Bytes::from_static(b"\x12\xff")).unwrap_err();
        client.finish(&update, Verdict::Accept);
        client.subscribe(EDS, &["a"]);
        for _ in 0..2 {
            let sound = delta(CDS, "n2", &[("a", "2")], &[]).encode_to_vec();
            assert_eq!(client.stream.handle_message(client.now, sound.into()).unwrap_err(), fatal, "{protocol:?}");
            assert!(client.update().is_none() && client.requests().is_empty() && !client.stream.has_answer());
            client.advance(60);
        }
        client.reconnect();
        assert_eq!(client.requests().len(), 2, "{protocol:?}");
        client.receives(CDS, "n1", &[("a", "2")]);
        assert_eq!(changed_names(&client.update().unwrap()), ["a"], "{protocol:?}");
    }
}

#[test]
fn rule_005_a_new_node_is_named_by_the_next_stream() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::subscribed(protocol, EDS, &["a"]);
        let node = Node { id: "another".into(), ..Node::default() }.encode_to_vec();
        client.stream.set_node(node.clone().into());
        client.subscribe(EDS, &["b"]);
        let named = |client: &mut Client| match protocol {
            Protocol::Delta => client.delta().unwrap().node,
            Protocol::Sotw => client.sotw().unwrap().node,
        };
        assert!(named(&mut client).is_empty(), "{protocol:?}: this one has named its own");
        client.reconnect();
        assert_eq!(named(&mut client), node, "{protocol:?}");
    }
}
