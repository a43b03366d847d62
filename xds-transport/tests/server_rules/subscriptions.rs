//! Changing a subscription: rules 48–57, 63–65.

use xdstp_cache::Options;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, Server};

const GLOB: &str = "xdstp://x/T/d/*";
const MEMBER: &str = "xdstp://x/T/d/1";

#[test]
fn rule_048_a_repeated_subscription_is_sent_again() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    server.put(CLUSTERS, MEMBER, "1");
    for (asked, line) in [("a", "C a@1"), ("*", "C a@1 b@1"), (GLOB, "C xdstp://x/T/d/1@1")] {
        let mut client = Client::delta();
        assert_eq!(client.subscribe(&mut server, CLUSTERS, &[asked]), [line]);
        assert_eq!(client.subscribe(&mut server, CLUSTERS, &[asked]), [line]);
    }
}

#[test]
fn rule_048_a_repeated_wildcard_sends_names_subscribed_beside_it_too() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*", "a"]);
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C a@1 b@1"]);
}

#[test]
fn rule_049_only_endpoints_are_sent_to_a_client_that_subscribes_to_what_it_holds() {
    let mut server = Server::with(LISTENERS, &["a"]);
    server.put(ENDPOINTS, "a", "1");
    let ask = |of| Ask { of, subscribe: &["a"], holds: &[("a", "1")], ..Ask::default() };
    assert!(Client::delta().ask(&mut server, &ask(LISTENERS)).is_empty());
    assert_eq!(Client::delta().ask(&mut server, &ask(ENDPOINTS)), ["E a@1"]);
    let old = Ask { holds: &[("a", "0")], ..ask(LISTENERS) };
    assert_eq!(Client::delta().ask(&mut server, &old), ["L a@1"]);
}

#[test]
fn rule_050_leaving_what_was_never_subscribed_is_ignored() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    assert!(client.unsubscribe(&mut server, ENDPOINTS, &["nope", "*", GLOB]).is_empty());
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
}

#[test]
fn rule_051_leaving_is_not_answered() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["a", "missing"]);
    assert!(client.unsubscribe(&mut server, ENDPOINTS, &["a", "missing"]).is_empty());
    server.put(ENDPOINTS, "a", "2");
    assert!(client.poll(&mut server).is_empty());
}

#[test]
fn rule_052_leaving_a_name_under_the_wildcard_is_answered() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*", "a", "b"]);
    assert_eq!(client.unsubscribe(&mut server, CLUSTERS, &["a", "b"]), ["C a@1", "C -b"]);
    server.put(CLUSTERS, "a", "2");
    assert_eq!(client.poll(&mut server), ["C a@2"]);
}

#[test]
fn rule_053_leaving_a_name_under_a_glob_is_answered() {
    let mut server = Server::with(CLUSTERS, &[MEMBER]);
    let mut client = Client::delta();
    let gone = "xdstp://x/T/d/2";
    client.subscribe(&mut server, CLUSTERS, &[GLOB, MEMBER, gone]);
    assert_eq!(
        client.unsubscribe(&mut server, CLUSTERS, &[MEMBER, gone]),
        [format!("C {MEMBER}@1"), format!("C -{gone}")]
    );
}

#[test]
fn rule_054_leaving_and_coming_back_is_sent_again() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    client.unsubscribe(&mut server, ENDPOINTS, &["a"]);
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
}

#[test]
fn rule_084_what_is_on_its_way_from_a_collection_left_and_asked_for_anew_is_told_as_gone() {
    for (collection, member) in [("*", "a"), (GLOB, MEMBER)] {
        let other = "xdstp://x/T/other/1";
        let mut server = Server::with(CLUSTERS, &[member, other]);
        let mut client = Client::delta();
        let sent = client.subscribe(&mut server, CLUSTERS, &[collection, other]);
        assert!(sent.concat().contains(&format!("{member}@1")), "{sent:?}");
        assert!(client.unsubscribe(&mut server, CLUSTERS, &[collection]).is_empty());
        server.remove(CLUSTERS, member);
        let anew = client.subscribe(&mut server, CLUSTERS, &[collection]);
        assert!(anew.concat().contains(&format!("-{member}")), "{anew:?}");
        assert!(!anew.concat().contains(&format!("-{other}")), "{anew:?}");
    }
}

#[test]
fn rule_084_a_name_left_while_it_is_on_its_way_is_of_the_wildcard_asked_for_then() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["a"]);
    client.unsubscribe(&mut server, CLUSTERS, &["a"]);
    server.remove(CLUSTERS, "a");
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C -a"]);
}

#[test]
fn rule_084_so_it_is_of_one_that_has_xdstp_names() {
    for (left, asked) in [(MEMBER, "*"), (GLOB, "*"), ("*", GLOB)] {
        let mut options = Options::default();
        options.wildcard_covers_xdstp = true;
        let mut server = Server::new(options);
        server.put(CLUSTERS, MEMBER, "1");
        let mut client = Client::delta();
        client.subscribe(&mut server, CLUSTERS, &[left]);
        client.unsubscribe(&mut server, CLUSTERS, &[left]);
        server.remove(CLUSTERS, MEMBER);
        let anew = client.subscribe(&mut server, CLUSTERS, &[asked]);
        assert!(anew.concat().contains(&format!("-{MEMBER}")), "{asked} after {left}: {anew:?}");
    }
}

#[test]
fn rule_084_so_it_is_when_the_request_that_asks_for_it_answers_what_was_on_its_way() {
    for (collection, member) in [("*", "a"), (GLOB, MEMBER)] {
        let mut server = Server::with(CLUSTERS, &[member]);
        let mut client = Client::delta();
        client.subscribe(&mut server, CLUSTERS, &[collection]);
        client.unsubscribe(&mut server, CLUSTERS, &[collection]);
        server.remove(CLUSTERS, member);
        // It asked before it read that, and says so with the ACK of it.
        let ask = Ask { of: CLUSTERS, subscribe: &[collection], nonce: &client.nonce(CLUSTERS), ..Ask::default() };
        let anew = client.ask(&mut server, &ask);
        assert!(anew.concat().contains(&format!("-{member}")), "{anew:?}");

        // Who asks later has read it.
        client.ack(&mut server, CLUSTERS);
        client.unsubscribe(&mut server, CLUSTERS, &[collection]);
        let anew = client.subscribe(&mut server, CLUSTERS, &[collection]);
        assert!(!anew.concat().contains(&format!("-{member}")), "{anew:?}");
    }
}

/// That says that it was read, whatever else is on its way.
#[test]
fn rule_084_what_was_left_is_on_its_way_until_the_request_is_handled_that_answers_it_and_no_longer() {
    for error in [None, Some("bad")] {
        let mut server = Server::with(CLUSTERS, &["a"]);
        let mut client = Client::delta();
        client.subscribe(&mut server, CLUSTERS, &["*"]);
        let first = client.nonce(CLUSTERS);
        server.put(CLUSTERS, "b", "1");
        assert_eq!(client.poll(&mut server), ["C b@1"]);
        client.unsubscribe(&mut server, CLUSTERS, &["*"]);
        client.ask(&mut server, &Ask { of: CLUSTERS, nonce: &first, error, ..Ask::default() });
        server.remove(CLUSTERS, "a");
        server.remove(CLUSTERS, "b");
        assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C -b"], "{error:?}");
    }
}

#[test]
fn rule_084_what_crossed_and_was_told_as_gone_is_not_told_again() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*", "a"]);
    client.unsubscribe(&mut server, CLUSTERS, &["*"]);
    server.remove(CLUSTERS, "a");
    assert_eq!(client.poll(&mut server), ["C -a"]);
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C"]);

    // It was told so before the client left anything that it is of.
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*", "x"]);
    client.unsubscribe(&mut server, CLUSTERS, &["x"]);
    server.remove(CLUSTERS, "a");
    assert_eq!(client.poll(&mut server), ["C -a"]);
    client.unsubscribe(&mut server, CLUSTERS, &["*"]);
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C b@1"]);
}

#[test]
fn rule_063_of_a_glob_that_was_left_nothing_is_told_to_who_asks_for_the_wildcard() {
    let mut server = Server::with(CLUSTERS, &[MEMBER, "a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*", GLOB]);
    client.unsubscribe(&mut server, CLUSTERS, &["*", GLOB]);
    server.remove(CLUSTERS, MEMBER);
    server.remove(CLUSTERS, "a");
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C -a"]);
}

#[test]
fn rule_054_what_was_acknowledged_before_a_collection_was_left_is_not_held_any_more() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*"]);
    client.ack(&mut server, CLUSTERS);
    client.unsubscribe(&mut server, CLUSTERS, &["*"]);
    server.remove(CLUSTERS, "a");
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C"]);
}

#[test]
fn rule_055_a_name_that_comes_back_is_sent_at_the_version_it_had() {
    for (of, last) in [(ENDPOINTS, "E A@1"), (CLUSTERS, "C A@1 B@1")] {
        let mut server = Server::with(of, &["A", "B"]);
        let mut client = Client::sotw();
        client.names(&mut server, of, &["A", "B"]);
        client.names(&mut server, of, &["B"]);
        client.settle(&mut server);
        assert_eq!(client.names(&mut server, of, &["A", "B"]), [last]);
    }
}

#[test]
fn rule_056_a_name_asked_for_is_sent_though_it_was_sent_unasked() {
    let mut server = Server::with(CLUSTERS, &["A", "B"]);
    server.put(ENDPOINTS, "A", "1");
    server.put(ENDPOINTS, "B", "1");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &["A"]);
    assert_eq!(client.names(&mut server, CLUSTERS, &["A", "B"]), ["C A@1 B@1"]);
    client.names(&mut server, ENDPOINTS, &["A"]);
    assert_eq!(client.names(&mut server, ENDPOINTS, &["A", "B"]), ["E B@1"]);
}

#[test]
fn rule_057_no_names_any_more_stop_every_push() {
    for of in [LISTENERS, CLUSTERS, ENDPOINTS] {
        let mut server = Server::with(of, &["a"]);
        let mut client = Client::sotw();
        client.names(&mut server, of, &["a"]);
        assert!(client.names(&mut server, of, &[]).is_empty());
        server.put(of, "a", "2");
        server.remove(of, "a");
        assert!(client.poll(&mut server).is_empty());
        server.put(of, "a", "3");
        assert_eq!(client.names(&mut server, of, &["a"]).len(), 1, "and it may come back");
    }
}

#[test]
fn rule_063_what_is_not_subscribed_is_not_sent() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    assert_eq!(Client::delta().subscribe(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
    assert_eq!(Client::sotw().names(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
}

#[test]
fn rule_064_many_names_and_many_requests_before_the_first_response() {
    let names: Vec<_> = (0..10_000).map(|n| format!("n{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut server = Server::with(ENDPOINTS, &names);
    let mut client = Client::delta();
    for half in names.chunks(5000) {
        client.try_send(&mut server, Ask { of: ENDPOINTS, subscribe: half, ..Ask::default() }.encode()).unwrap();
    }
    client.settle(&mut server);
    assert_eq!(client.delta.iter().map(|response| response.resources.len()).sum::<usize>(), 10_000);
}

#[test]
fn rule_065_a_name_that_did_not_exist_is_sent_when_it_does() {
    let mut server = Server::origin();
    let mut delta = Client::delta();
    assert_eq!(delta.subscribe(&mut server, ENDPOINTS, &["a"]), ["E -a"]);
    let mut sotw = Client::sotw();
    assert!(sotw.names(&mut server, ENDPOINTS, &["a"]).is_empty());
    server.put(ENDPOINTS, "a", "1");
    assert_eq!(delta.poll(&mut server), ["E a@1"]);
    assert_eq!(sotw.poll(&mut server), ["E a@1"]);
}

#[test]
fn what_was_left_on_its_way_is_no_part_of_a_glob_that_it_is_not_in() {
    let other = "xdstp://x/T/other/1";
    let mut server = Server::with(CLUSTERS, &[MEMBER, other]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[other]);
    client.unsubscribe(&mut server, CLUSTERS, &[other]);
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &[GLOB]), [format!("C {MEMBER}@1")]);
}

#[test]
fn what_crossed_and_was_told_as_gone_is_not_told_again_though_an_older_response_was_answered_meanwhile() {
    let mut server = Server::with(CLUSTERS, &["x"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*", "a"]);
    let first = client.delta.last().unwrap().nonce.clone();
    server.put(CLUSTERS, "a", "1");
    assert_eq!(client.poll(&mut server), ["C a@1"]);
    client.unsubscribe(&mut server, CLUSTERS, &["*"]);
    client.ask(&mut server, &Ask { of: CLUSTERS, nonce: &first, ..Ask::default() });
    server.remove(CLUSTERS, "a");
    assert_eq!(client.poll(&mut server), ["C -a"]);
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["*"]), ["C x@1"]);
}
