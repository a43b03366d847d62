//! Whether a stream has something to send, as whoever drives it is told.

use std::time::Duration;

use prost::Message;
use xds_transport::Protocol;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::DiscoveryRequest;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, Server, seconds};

/// Whoever drives the stream looks after a request only if it is told to.
#[test]
fn what_a_stream_has_to_say_is_work() {
    let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    for (of, names) in [(CLUSTERS, &[] as &[&str]), (ENDPOINTS, &["xdstp:"]), (hosts, &["refused"]), (hosts, &[])] {
        for protocol in [Protocol::Delta, Protocol::Sotw] {
            let mut server = Server::with(CLUSTERS, &["a"]);
            let mut client = Client::new(Stream::new(protocol, Settings::default()));
            assert!(!client.stream.has_work(&server.cache));
            let resource_names: Vec<_> = names.iter().map(|name| (*name).into()).collect();
            let request = match protocol {
                Protocol::Delta => Ask { of, subscribe: names, ..Ask::default() }.encode(),
                Protocol::Sotw => {
                    let request = DiscoveryRequest { type_url: of.into(), resource_names, ..Default::default() };
                    request.encode_to_vec().into()
                }
            };
            client.try_send(&mut server, request).unwrap();
            assert!(client.stream.has_work(&server.cache), "{protocol:?} {of} {names:?}");
            assert_eq!(client.poll(&mut server).len(), 1, "{protocol:?} {of} {names:?}");
            assert!(!client.stream.has_work(&server.cache), "{protocol:?} {of} {names:?}");
        }
    }
}

/// It is polled for the sake of an ACK only where that makes a difference; what changes meanwhile the source tells.
#[test]
fn an_ack_leaves_work_where_something_waited_for_it() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*"]);
    server.put(CLUSTERS, "a", "changed");
    client.drop_ack(&mut server, CLUSTERS);
    assert!(client.stream.has_work(&server.cache));
    assert!(!client.stream.leaves_work(server.now, &server.cache));

    let mut version = 0;
    while !client.poll(&mut server).is_empty() {
        version += 1;
        server.put(CLUSTERS, "a", &version.to_string());
    }
    assert!(version > 1, "its window is full");
    client.drop_ack(&mut server, CLUSTERS);
    assert!(client.stream.leaves_work(server.now, &server.cache));
}

/// Who is not asked because there is nothing to say has not waited all the while.
#[test]
fn rule_122_a_removal_waits_though_another_that_nobody_wants_to_hear_any_more_waited_long_ago() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    server.put(LISTENERS, "l", "1");
    let mut settings = Settings::default();
    settings.removals_wait = Duration::from_millis(500);
    let mut client = Client::new(Stream::new(Protocol::Delta, settings));
    client.subscribe(&mut server, CLUSTERS, &["a", "b"]);
    client.subscribe(&mut server, LISTENERS, &["l"]);
    client.settle(&mut server);
    server.put(CLUSTERS, "a", "2");
    server.remove(CLUSTERS, "b");
    assert_eq!(client.poll(&mut server), ["C a@2"], "the removal waits for a listener that may yet come");
    client.drop_ack(&mut server, CLUSTERS);
    client.try_send(&mut server, Ask { of: CLUSTERS, unsubscribe: &["b"], ..Ask::default() }.encode()).unwrap();
    assert!(!client.stream.leaves_work(server.now, &server.cache));

    server.now += seconds(30);
    server.remove(CLUSTERS, "a");
    server.put(LISTENERS, "l", "2");
    assert_eq!(client.poll(&mut server), ["L l@2"]);
}

#[test]
fn that_another_type_has_something_to_say_is_told_after_each_response() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    server.put(ENDPOINTS, "a", "1");
    let mut client = Client::delta();
    for of in [CLUSTERS, ENDPOINTS] {
        client.try_send(&mut server, Ask { of, subscribe: &["a"], ..Ask::default() }.encode()).unwrap();
    }
    assert_eq!(client.poll_one(&mut server), Some("C a@1".into()));
    assert!(client.stream.may_continue());
    assert_eq!(client.poll_one(&mut server), Some("E a@1".into()));
    assert_eq!(client.poll_one(&mut server), None);
    assert!(!client.stream.may_continue());
}
