//! Streams, and what is true of all that come over one: rules 1, 3, 4, 12, 93, 127, 139.

use std::time::Duration;

use xds_transport::Protocol;
use xds_transport::server::{ProtocolError, Settings, Stream};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, ROUTES, Server, seconds};

#[test]
fn rule_001_all_ways_to_ask_lead_to_the_same_resources() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let one_type = Stream::of_type(protocol, CLUSTERS.into(), Settings::default());
        for stream in [Stream::new(protocol, Settings::default()), one_type] {
            let mut client = Client::new(stream);
            assert_eq!(client.want(&mut server, CLUSTERS, &["*"]), ["C a@1 b@1"]);
            client.ack(&mut server, CLUSTERS);
            server.put(CLUSTERS, "a", "2");
            assert!(client.settle(&mut server).join(" ").contains("a@2"));
            server.put(CLUSTERS, "a", "1");
        }
    }
}

#[test]
fn rule_003_an_aggregated_stream_needs_a_type() {
    let mut server = Server::origin();
    for mut client in [Client::delta(), Client::sotw()] {
        let error = client.try_send(&mut server, Ask::default().encode()).unwrap_err();
        assert_eq!((&error, error.code()), (&ProtocolError::MissingType, 3));
    }
}

#[test]
fn rule_003_a_stream_of_one_type_implies_it_and_refuses_another() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::new(Stream::of_type(protocol, CLUSTERS.into(), Settings::default()));
        client.try_send(&mut server, Ask::default().encode()).unwrap();
        assert_eq!(client.poll(&mut server), ["C a@1"]);
        // The type URL is field 2 of one request and 4 of the other.
        let other = match protocol {
            Protocol::Delta => Ask { of: ENDPOINTS, ..Ask::default() }.encode(),
            Protocol::Sotw => [b"\x22".as_slice(), &[ENDPOINTS.len() as u8], ENDPOINTS.as_bytes()].concat().into(),
        };
        let error = client.try_send(&mut server, other).unwrap_err();
        assert!(matches!(error, ProtocolError::WrongType { .. }), "{error}");
        assert_eq!(error.code(), 3);
    }
}

#[test]
fn rule_004_the_node_of_the_first_request_counts_for_all_types() {
    let mut server = Server::origin();
    let mut client = Client::delta();
    client.ask(&mut server, &Ask { of: CLUSTERS, node: b"\x0a\x01n", ..Ask::default() });
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    assert_eq!(client.stream.node().map(|node| &node[..]), Some(b"\x0a\x01n".as_slice()));
    // Rule 6: and a later one changes nothing.
    client.ask(&mut server, &Ask { of: LISTENERS, node: b"\x0a\x01m", ..Ask::default() });
    assert_eq!(client.stream.node().map(|node| &node[..]), Some(b"\x0a\x01n".as_slice()));
}

#[test]
fn rule_004_client_features_count_for_types_asked_for_later() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    server.put(CLUSTERS, "c", "1");
    let ttl = Some(seconds(60));
    let frame = server.cache.resource(&ENDPOINTS.into(), &"a".parse().unwrap()).unwrap().value.clone();
    server.put_frame(ENDPOINTS, "a", "2", frame.with_wrapper(Default::default(), ttl, false));
    let mut client = Client::sotw().with_features(&["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"]);
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ENDPOINTS, &["a"]);
    let resource = &client.sotw[1].resources[0];
    assert_eq!(resource.type_url, xds_transport::wire::RESOURCE_TYPE_URL);
}

#[test]
fn rule_093_a_stream_ends_when_it_is_old_and_not_before() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut ends = Vec::new();
    for age in [50, 55, 60] {
        let mut client = Client::delta();
        client.stream.end_at(server.now + seconds(age));
        client.subscribe(&mut server, CLUSTERS, &["a"]);
        ends.push(client);
    }
    for client in &mut ends {
        assert_eq!(client.stream.poll_timeout().map(|at| at > server.now), Some(true));
        server.now = client.stream.poll_timeout().unwrap() - Duration::from_nanos(1);
        server.put(CLUSTERS, "a", &format!("{:?}", server.now));
        assert_eq!(client.poll(&mut server).len(), 1);
        server.now += Duration::from_nanos(1);
        let error = client.stream.poll_transmit(server.now, &mut server.cache).unwrap_err();
        assert_eq!((error.code(), error), (14, ProtocolError::Aged));
    }
}

#[test]
fn rule_127_streams_do_not_wait_for_each_other() {
    let mut server = Server::with(CLUSTERS, &["c"]);
    server.put(ENDPOINTS, "xdstp://a/T/c", "1");
    for [mut clusters, mut endpoints] in [[Client::delta(), Client::delta()], [Client::sotw(), Client::sotw()]] {
        // Neither polled nor acknowledged from here on.
        assert_eq!(clusters.want(&mut server, CLUSTERS, &[]).len(), 1);
        server.put(CLUSTERS, "c", &format!("{:?}", endpoints.stream.protocol()));
        assert_eq!(endpoints.want(&mut server, ENDPOINTS, &["xdstp://a/T/c"]), ["E xdstp://a/T/c@1"]);
        assert_eq!(endpoints.stream.poll_timeout(), None);
    }
}

#[test]
fn rule_127_routes_on_one_stream_do_not_wait_for_clusters_on_another() {
    let mut server = Server::with(CLUSTERS, &["c"]);
    server.put(ROUTES, "r", "0");
    for [mut clusters, mut routes] in [[Client::delta(), Client::delta()], [Client::sotw(), Client::sotw()]] {
        clusters.want(&mut server, CLUSTERS, &[]);
        assert_eq!(routes.want(&mut server, ROUTES, &["r"]).len(), 1);
        routes.settle(&mut server);
        // Its window is full, and there is more: on one stream routes would wait for it.
        for version in 0..20 {
            server.put(CLUSTERS, "c", &format!("{:?}{version}", clusters.stream.protocol()));
            clusters.poll(&mut server);
        }
        let version = format!("{:?}", clusters.stream.protocol());
        server.put(ROUTES, "r", &version);
        assert_eq!(routes.settle(&mut server), [format!("R r@{version}")]);
        assert_eq!(routes.stream.poll_timeout(), None);
        assert_eq!(clusters.want(&mut server, ROUTES, &["r"]), [""; 0]);
        assert_eq!(clusters.stream.poll_timeout(), Some(server.now + Duration::from_secs(1)));
    }
}

#[test]
fn rule_012_a_closed_stream_leaves_nothing() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    for n in 0..10_000 {
        let mut client = if n % 2 == 0 { Client::delta() } else { Client::sotw() };
        client.want(&mut server, CLUSTERS, &[]);
        client.want(&mut server, ENDPOINTS, &["a", "xdstp://x/T/*"]);
        client.stream.close(&mut server.cache);
        client.stream.close(&mut server.cache);
    }
    assert_eq!(server.cache.subscriber_count(), 0);
    server.woken.clear();
    server.put(CLUSTERS, "a", "2");
    assert!(server.woken.is_empty());
}

#[test]
fn rule_139_every_response_says_who_answers() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut settings = Settings::default();
    settings.identifier = "relay-7".into();
    let mut delta = Client::new(Stream::new(Protocol::Delta, settings.clone()));
    delta.subscribe(&mut server, CLUSTERS, &["a"]);
    assert_eq!(delta.delta[0].control_plane.as_ref().unwrap().identifier, "relay-7");
    let mut sotw = Client::new(Stream::new(Protocol::Sotw, settings));
    sotw.names(&mut server, CLUSTERS, &["a"]);
    assert_eq!(sotw.sotw[0].control_plane.as_ref().unwrap().identifier, "relay-7");
}

/// Answers that are empty, errors and refusals are responses as well.
#[test]
fn rule_139_responses_without_resources_say_it_too_and_have_nonces_of_their_own() {
    let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    let mut settings = Settings::default();
    settings.identifier = "relay-7".into();
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut server = Server::origin();
        server.fail(ENDPOINTS, "failed", 14);
        let mut client = Client::new(Stream::new(protocol, settings.clone()));
        client.want(&mut server, CLUSTERS, &[]);
        client.want(&mut server, ENDPOINTS, &["failed"]);
        client.want(&mut server, hosts, &["refused"]);
        let delta = client.delta.into_iter().map(|response| (response.control_plane, response.nonce));
        let sotw = client.sotw.into_iter().map(|response| (response.control_plane, response.nonce));
        let (says, mut nonces): (Vec<_>, Vec<_>) = delta.chain(sotw).unzip();
        assert!(says.len() >= 3, "{protocol:?} {says:?}");
        assert!(says.into_iter().all(|plane| plane.unwrap().identifier == "relay-7"), "{protocol:?}");
        let count = nonces.len();
        nonces.sort();
        nonces.dedup();
        assert_eq!(nonces.len(), count, "{protocol:?}: rule 13");
    }
}
