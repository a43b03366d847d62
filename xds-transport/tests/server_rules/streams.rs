//! Streams, nodes and types: rules 3, 4, 7, 10, 11, 12, 139.

use xds_transport::server::{ProtocolError, Settings, Stream, Variant};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, Server};

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
    for variant in [Variant::Delta, Variant::Sotw] {
        let mut client = Client::new(Stream::of_type(variant, CLUSTERS.into(), Settings::default()));
        client.try_send(&mut server, Ask::default().encode()).unwrap();
        assert_eq!(client.poll(&mut server), ["C a@1"]);
        // The type URL is field 2 of one request and 4 of the other.
        let other = match variant {
            Variant::Delta => Ask { of: ENDPOINTS, ..Ask::default() }.encode(),
            Variant::Sotw => [b"\x22".as_slice(), &[ENDPOINTS.len() as u8], ENDPOINTS.as_bytes()].concat().into(),
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
    let ttl = Some(crate::support::seconds(60));
    let frame = server.cache.resource(&ENDPOINTS.into(), &"a".parse().unwrap()).unwrap().value.clone();
    server.put_frame(ENDPOINTS, "a", "2", frame.with_wrapper(Default::default(), ttl, false));
    let mut client = Client::sotw().with_features(&["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"]);
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ENDPOINTS, &["a"]);
    let resource = &client.sotw[1].resources[0];
    assert_eq!(resource.type_url, xds_transport::wire::RESOURCE_TYPE_URL);
}

#[test]
fn rule_007_types_have_nonces_and_wildcards_of_their_own() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    server.put(ENDPOINTS, "a", "1");
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, CLUSTERS, &[]), ["C a@1"]);
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
    server.put(ENDPOINTS, "a", "2");
    assert!(client.ack(&mut server, CLUSTERS).is_empty(), "an ACK of clusters frees no endpoints");
    assert_eq!(client.ack(&mut server, ENDPOINTS), ["E a@2"]);
    server.put(CLUSTERS, "a", "2");
    assert_eq!(client.poll(&mut server)[0], "C a@2");
}

#[test]
fn rule_010_a_type_that_was_not_asked_for_is_not_sent() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    for mut client in [Client::delta(), Client::sotw()] {
        client.want(&mut server, ENDPOINTS, &["a"]);
        server.put(LISTENERS, "l", "1");
        server.put(CLUSTERS, "a", "2");
        assert!(client.poll(&mut server).is_empty());
    }
}

#[test]
fn rule_011_any_type_url_is_served() {
    let of = "type.googleapis.com/foo.Bar";
    let mut server = Server::with(of, &["a", "b"]);
    assert_eq!(Client::delta().subscribe(&mut server, of, &["a"]), [format!("{of} a@1")]);
    assert_eq!(Client::sotw().names(&mut server, of, &["a"]), [format!("{of} a@1")]);
}

#[test]
fn rule_012_a_closed_stream_leaves_nothing() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    for n in 0..1000 {
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
    let mut delta = Client::new(Stream::new(Variant::Delta, settings.clone()));
    delta.subscribe(&mut server, CLUSTERS, &["a"]);
    assert_eq!(delta.delta[0].control_plane.as_ref().unwrap().identifier, "relay-7");
    let mut sotw = Client::new(Stream::new(Variant::Sotw, settings));
    sotw.names(&mut server, CLUSTERS, &["a"]);
    assert_eq!(sotw.sotw[0].control_plane.as_ref().unwrap().identifier, "relay-7");
}

#[test]
fn more_types_or_names_than_allowed_end_the_stream() {
    let mut server = Server::origin();
    let mut settings = Settings::default();
    (settings.types_per_stream, settings.names_per_type) = (2, 3);
    let mut client = Client::new(Stream::new(Variant::Delta, settings));
    client.subscribe(&mut server, CLUSTERS, &["a", "b", "c"]);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let error = client.try_send(&mut server, Ask { of: LISTENERS, ..Ask::default() }.encode()).unwrap_err();
    assert_eq!(error, ProtocolError::TooMany { what: "types", limit: 2 });
    let ask = Ask { of: ENDPOINTS, subscribe: &["b", "c", "xdstp:not a name"], ..Ask::default() };
    let error = client.try_send(&mut server, ask.encode()).unwrap_err();
    assert_eq!((error.code(), error), (8, ProtocolError::TooMany { what: "names of one type", limit: 3 }));
}

#[test]
fn what_is_no_request_ends_the_stream() {
    let mut server = Server::origin();
    for mut client in [Client::delta(), Client::sotw()] {
        let error = client.try_send(&mut server, b"\x0a\xff".as_slice().into()).unwrap_err();
        assert!(matches!(error, ProtocolError::Malformed(_)) && error.code() == 3);
    }
}
