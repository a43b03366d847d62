//! What a client brings along: rules 84, 85, 87, 88, 101, 132.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::server::{ASKS_FOR_OTHERS, Settings, Stream};
use xds_transport::wire::DiscoveryRequest;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, Server};

#[test]
fn rule_084_what_is_gone_or_not_wanted_is_removed_in_the_first_response() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let holds = &[("a", "1"), ("b", "1")];
    assert_eq!(Client::delta().ask(&mut server, &Ask { of: CLUSTERS, holds, ..Ask::default() }), ["C -b"]);
    // Outside the subscription, though it exists.
    let holds = &[("a", "1"), ("c", "1")];
    let ask = Ask { of: CLUSTERS, subscribe: &["c"], holds, ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), ["C -a -c"]);
}

#[test]
fn rule_084_a_changed_version_is_sent_and_an_equal_one_is_not() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let holds = &[("a", "0"), ("b", "1")];
    assert_eq!(Client::delta().ask(&mut server, &Ask { of: CLUSTERS, holds, ..Ask::default() }), ["C a@1"]);
}

#[test]
fn rule_085_versions_in_a_later_request_are_ignored() {
    let mut server = Server::with(LISTENERS, &["a", "x"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, LISTENERS, &["a"]);
    let ask = Ask { of: LISTENERS, subscribe: &["x"], holds: &[("x", "1"), ("z", "1")], ..Ask::default() };
    assert_eq!(client.ask(&mut server, &ask), ["L x@1"]);
}

#[test]
fn rule_087_only_a_pure_wildcard_at_the_same_version_is_not_sent_again() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    let version = client.sotw[0].version_info.clone();
    let mut again = Client::sotw();
    assert!(again.names_at(&mut server, CLUSTERS, &[], &version).is_empty());
    server.put(CLUSTERS, "a", "2");
    assert_eq!(again.poll(&mut server), ["C a@2"]);
    let version = again.sotw[0].version_info.clone();
    assert_eq!(Client::sotw().names_at(&mut server, CLUSTERS, &["a"], &version), ["C a@2"]);
    assert_eq!(Client::sotw().names_at(&mut server, CLUSTERS, &["*", "a"], &version), ["C a@2"]);
    server.put(ENDPOINTS, "a", "1");
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    let version = client.sotw[0].version_info.clone();
    assert_eq!(Client::sotw().names_at(&mut server, ENDPOINTS, &["a"], &version), ["E a@1"]);
}

#[test]
fn rule_087_what_was_left_and_asked_for_again_is_sent_whatever_was_held() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    let version = client.sotw[0].version_info.clone();
    let mut again = Client::sotw();
    // All of it is read before anything is said.
    for (names, version) in [(&["*"][..], &*version), (&["b"], ""), (&["*"], "")] {
        let request = DiscoveryRequest {
            type_url: CLUSTERS.to_string(),
            resource_names: names.iter().map(ToString::to_string).collect(),
            version_info: version.to_owned(),
            ..Default::default()
        };
        again.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    }
    assert_eq!(again.poll(&mut server), ["C a@1"]);
}

#[test]
fn rule_036_the_version_of_an_origin_is_passed_on_over_delta_too() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    assert_eq!(client.delta[0].system_version_info, "", "nobody gave one");
    server.cache.set_type_version(&CLUSTERS.into(), Some("17".into()));
    // It alone is nothing to say.
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.put(CLUSTERS, "a", "2");
    client.poll(&mut server);
    assert_eq!(client.delta[1].system_version_info, "17");
}

#[test]
fn rule_088_nothing_of_a_stream_is_remembered_for_the_next() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*"]);
    client.ack(&mut server, CLUSTERS);
    client.stream.close(&mut server.cache);
    assert_eq!(Client::delta().subscribe(&mut server, CLUSTERS, &["*"]), ["C a@1"]);
    // A nonce of the old stream means nothing on the new one.
    let ask = Ask { of: CLUSTERS, subscribe: &["a"], nonce: "17", ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), ["C a@1"]);
    let (type_url, resource_names, response_nonce) = (CLUSTERS.into(), vec!["a".into()], "17".into());
    let request = DiscoveryRequest { type_url, resource_names, response_nonce, ..Default::default() };
    let mut client = Client::sotw();
    client.try_send(&mut server, request.encode_to_vec().into()).unwrap();
    assert_eq!(client.poll(&mut server), ["C a@1"]);
}

#[test]
fn rule_088_what_one_replica_was_told_another_takes_up_from_the_first_request() {
    let replica = || {
        let mut server = Server::with(CLUSTERS, &["a", "b"]);
        server.put(ENDPOINTS, "a", "1");
        server
    };
    let (mut first, mut second) = (replica(), replica());
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut first, CLUSTERS, &[]), ["C a@1 b@1"]);
    client.settle(&mut first);
    second.put(CLUSTERS, "b", "2");
    second.remove(CLUSTERS, "a");
    let holds = &[("a", "1"), ("b", "1")];
    let resumes = Ask { of: CLUSTERS, holds, ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut second, &resumes), ["C b@2 -a"]);
    // And back, where nothing changed: an answer is owed, and nothing is in it.
    assert_eq!(Client::delta().ask(&mut first, &resumes), ["C"]);
    // Over SotW the version says it, and is the same on both.
    let version = |server: &mut Server| {
        let mut client = Client::sotw();
        client.names(server, ENDPOINTS, &["a"]);
        client.sotw[0].version_info.clone()
    };
    assert_eq!(version(&mut first), version(&mut second));
    let mut client = Client::sotw();
    client.names(&mut first, CLUSTERS, &[]);
    let held = client.sotw[0].version_info.clone();
    assert_eq!(Client::sotw().names_at(&mut replica(), CLUSTERS, &[], &held), [""; 0]);
    assert_eq!(Client::sotw().names_at(&mut second, CLUSTERS, &[], &held), ["C b@2"]);
}

#[test]
fn a_sotw_client_of_a_relay_is_not_told_a_part_of_what_it_holds() {
    let mut server = Server::relay();
    let mut client = Client::sotw();
    client.names_at(&mut server, CLUSTERS, &["a", "b"], "5");
    server.put(CLUSTERS, "a", "1");
    assert!(client.poll(&mut server).is_empty(), "b would be deleted because it was not asked for yet");
    server.put(CLUSTERS, "b", "1");
    assert_eq!(client.poll(&mut server), ["C a@1 b@1"]);
    // One that comes without a version holds nothing: it gets what there is.
    let mut fresh = Client::sotw();
    assert_eq!(fresh.names(&mut server, CLUSTERS, &["a", "c"]), ["C a@1"]);
}

/// A relay may hold nothing itself, and ask for those who do.
#[test]
fn rule_151_who_asks_for_others_is_told_no_part_either() {
    let mut server = Server::relay();
    let mut client = Client::sotw().with_features(&[ASKS_FOR_OTHERS]);
    client.names(&mut server, CLUSTERS, &["a", "b"]);
    server.put(CLUSTERS, "a", "1");
    assert_eq!(client.poll(&mut server), [""; 0]);
    server.put(CLUSTERS, "b", "1");
    assert_eq!(client.poll(&mut server), ["C a@1 b@1"]);
}

#[test]
fn rule_132_a_first_request_may_list_more_than_four_mebibytes_of_versions() {
    let filler = "x".repeat(200);
    let names: Vec<_> =
        (0..20_000).map(|n| format!("xdstp://authority/some.v3.Type/directory/{filler}{n:06}")).collect();
    let holds: Vec<_> = names.iter().map(|name| (name.as_str(), "0123456789abcdef0123456789abcdef")).collect();
    let mut server = Server::with(LISTENERS, &names.iter().take(2).map(String::as_str).collect::<Vec<_>>());
    let subscribe = &["xdstp://authority/some.v3.Type/directory/*"];
    let mut client = Client::delta();
    let request = Ask { of: LISTENERS, subscribe, holds: &holds, ..Ask::default() };
    assert!(request.encode().len() > 4 << 20);
    client.ask(&mut server, &request);
    client.settle(&mut server);
    let put: usize = client.delta.iter().map(|response| response.resources.len()).sum();
    let removed: usize = client.delta.iter().map(|response| response.removed_resources.len()).sum();
    assert_eq!((put, removed), (2, 19_998));
}

/// Megabytes for each client of a fleet that came back, for as long as it stays.
#[test]
fn nothing_of_a_request_is_kept_once_it_is_handled() {
    let ask = Ask { of: CLUSTERS, node: b"\x0a\x01n", subscribe: &["*", "a"], holds: &[("a", "1")], ..Ask::default() };
    let delta = ask.encode();
    let sotw = DiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_names: vec!["*".into(), "a".into()],
        node: Bytes::from_static(b"\x0a\x01n"),
        ..Default::default()
    };
    let sotw = Bytes::from(sotw.encode_to_vec());
    for (protocol, request) in [(Protocol::Delta, delta), (Protocol::Sotw, sotw)] {
        let mut server = Server::with(CLUSTERS, &["a", "b"]);
        let mut stream = Stream::new(protocol, Settings::default());
        stream.handle_message(server.now, request.clone(), &mut server.cache).unwrap();
        assert!(stream.node().is_some() && request.is_unique(), "{protocol:?}");
    }
}

#[test]
fn rule_101_a_client_that_lists_glob_members_is_told_which_are_gone() {
    let glob = "xdstp://x/T/d/*";
    let mut server = Server::with(CLUSTERS, &["xdstp://x/T/d/1"]);
    let holds = &[("xdstp://x/T/d/1", "1"), ("xdstp://x/T/d/2", "1")];
    let ask = Ask { of: CLUSTERS, subscribe: &[glob], holds, ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), ["C -xdstp://x/T/d/2"]);
    // Removed while it was known here: told once all the same.
    server.put(CLUSTERS, "xdstp://x/T/d/2", "1");
    server.remove(CLUSTERS, "xdstp://x/T/d/2");
    assert_eq!(Client::delta().ask(&mut server, &ask), ["C -xdstp://x/T/d/2"]);
}
