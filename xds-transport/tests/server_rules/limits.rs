//! How much one stream may ask for, and how often: rule 136.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{ProtocolError, Settings, Stream};
use xds_transport::wire::{DiscoveryRequest, Node};
use xds_transport::{Protocol, RateLimit};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, Server};

#[test]
fn rule_136_too_many_requests_end_their_stream_and_no_other() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut settings = Settings::default();
    settings.requests = Some(RateLimit { burst: 100, every: Duration::from_millis(10) });
    let mut hasty = Client::new(Stream::new(Protocol::Delta, settings.clone()));
    let mut steady = Client::new(Stream::new(Protocol::Delta, settings));
    let again = Ask { of: CLUSTERS, subscribe: &["a"], ..Ask::default() }.encode();
    let refused = (0..10_000).find_map(|_| {
        server.now += Duration::from_micros(100);
        hasty.try_send(&mut server, again.clone()).err()
    });
    let too_often = ProtocolError::TooOften { burst: 100, every: Duration::from_millis(10) };
    assert_eq!((refused.as_ref().map(ProtocolError::code), refused), (Some(8), Some(too_often)));
    for _ in 0..1000 {
        server.now += Duration::from_millis(10);
        steady.try_send(&mut server, again.clone()).unwrap();
    }
}

/// Each response has its ACK, however many there are in a moment.
#[test]
fn rule_136_acks_are_not_too_many_requests() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut settings = Settings::default();
    settings.requests = Some(RateLimit { burst: 2, every: Duration::from_secs(1) });
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::new(Stream::new(protocol, settings.clone()));
        client.want(&mut server, CLUSTERS, &["a"]);
        client.settle(&mut server);
        for version in 0..100 {
            server.put(CLUSTERS, "a", &format!("v{version}"));
            client.settle(&mut server);
        }
        let again = match protocol {
            Protocol::Delta => Ask { of: CLUSTERS, subscribe: &["b"], ..Ask::default() }.encode(),
            Protocol::Sotw => sotw(CLUSTERS, &["a", "b"]),
        };
        client.try_send(&mut server, again.clone()).unwrap();
        let error = client.try_send(&mut server, again).unwrap_err();
        assert_eq!(error.code(), 8, "{protocol:?}");
    }
}

#[test]
fn more_types_or_names_than_allowed_end_the_stream() {
    let mut server = Server::origin();
    let mut settings = Settings::default();
    (settings.types_per_stream, settings.names_per_stream) = (2, 3);
    let asks = [
        (Ask { of: LISTENERS, ..Ask::default() }, ProtocolError::TooMany { what: "types", limit: 2 }),
        (
            Ask { of: ENDPOINTS, subscribe: &["xdstp:not a name"], ..Ask::default() },
            ProtocolError::TooMany { what: "names", limit: 3 },
        ),
    ];
    for (ask, expected) in asks {
        let mut client = Client::new(Stream::new(Protocol::Delta, settings.clone()));
        client.subscribe(&mut server, CLUSTERS, &["a", "b"]);
        client.subscribe(&mut server, ENDPOINTS, &["a"]);
        let error = client.try_send(&mut server, ask.encode()).unwrap_err();
        assert_eq!((error.code(), error), (8, expected));
    }
}

#[test]
fn names_count_over_all_types_and_as_long_as_they_are_wanted() {
    let mut settings = Settings::default();
    settings.names_per_stream = 3;
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut server = Server::origin();
        let mut client = Client::new(Stream::new(protocol, settings.clone()));
        let ask = |of, names: &[&str]| match protocol {
            Protocol::Delta => Ask { of, subscribe: names, ..Ask::default() }.encode(),
            Protocol::Sotw => sotw(of, names),
        };
        client.try_send(&mut server, ask(CLUSTERS, &["a", "b"])).unwrap();
        // Again, they are no more of them.
        client.try_send(&mut server, ask(CLUSTERS, &["a", "b"])).unwrap();
        client.try_send(&mut server, ask(ENDPOINTS, &["a"])).unwrap();
        let leave = match protocol {
            Protocol::Delta => Ask { of: CLUSTERS, subscribe: &["c"], unsubscribe: &["a"], ..Ask::default() }.encode(),
            Protocol::Sotw => sotw(CLUSTERS, &["b", "c"]),
        };
        client.try_send(&mut server, leave).unwrap();
        let error = client.try_send(&mut server, ask(ENDPOINTS, &["a", "b"])).unwrap_err();
        assert_eq!(error, ProtocolError::TooMany { what: "names", limit: 3 }, "{protocol:?}");
    }
}

/// What is kept of a stream is bounded in bytes.
#[test]
fn a_long_name_counts_for_each_kib_that_it_begins_whether_it_is_one_or_not() {
    let mut settings = Settings::default();
    settings.names_per_stream = 19;
    for (name, protocol) in
        ["", "xdstp:", "xdstp://a/T/"].into_iter().flat_map(|name| [(name, Protocol::Delta), (name, Protocol::Sotw)])
    {
        let mut server = Server::origin();
        let mut client = Client::new(Stream::new(protocol, settings.clone()));
        // As written: canonically the last two are short.
        let [one, other] = match name {
            "" | "xdstp:" => ["a", "b"].map(|end| format!("{name}{}{end}", "x".repeat(10_000))),
            name => ["a", "b"].map(|id| format!("{name}{id}?{}", "&".repeat(10_000))),
        };
        let mut ask = |names: &[&str], leave: &[&str]| {
            let request = match protocol {
                Protocol::Delta => {
                    Ask { of: CLUSTERS, subscribe: names, unsubscribe: leave, ..Ask::default() }.encode()
                }
                Protocol::Sotw => sotw(CLUSTERS, names),
            };
            client.try_send(&mut server, request)
        };
        ask(&[&one, "a"], &[]).unwrap();
        ask(&[], &[&one]).unwrap();
        ask(&[&other, "a"], &[]).unwrap();
        let error = ask(&[&one, &other], &[]).unwrap_err();
        assert_eq!(error, ProtocolError::TooMany { what: "names", limit: 19 }, "{name} {protocol:?}");
    }
}

#[test]
fn versions_that_are_brought_along_are_limited_as_names_are() {
    let mut server = Server::origin();
    let mut settings = Settings::default();
    settings.names_per_stream = 3;
    let holds = &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")];
    let mut client = Client::new(Stream::new(Protocol::Delta, settings.clone()));
    client.try_send(&mut server, Ask { of: CLUSTERS, holds: &holds[..3], ..Ask::default() }.encode()).unwrap();
    let mut client = Client::new(Stream::new(Protocol::Delta, settings));
    let error = client.try_send(&mut server, Ask { of: CLUSTERS, holds, ..Ask::default() }.encode()).unwrap_err();
    assert_eq!(error, ProtocolError::TooMany { what: "names", limit: 3 });
}

#[test]
fn what_is_longer_than_a_name_may_be_ends_the_stream_before_anything_is_kept_of_it() {
    const LIMIT: usize = 64 << 10;
    let longest = "x".repeat(LIMIT);
    let long = format!("{longest}x");
    // A tag and three bytes of length go before its text.
    let node = |length: usize| Node { id: "n".repeat(length - 4), ..Node::default() }.encode_to_vec();
    let (fits, large) = (node(LIMIT), node(LIMIT + 1));
    let requests = |node: &[u8], of: &str, version: &str| {
        let delta = Ask { of, holds: &[("a", version)], node, ..Ask::default() }.encode();
        let (type_url, version_info, node) = (of.to_owned(), version.to_owned(), node.to_vec().into());
        let sotw = DiscoveryRequest { type_url, version_info, node, ..Default::default() }.encode_to_vec().into();
        [(Protocol::Delta, delta), (Protocol::Sotw, sotw)]
    };
    let mut server = Server::origin();
    for (what, requests) in [
        ("node", requests(&large, CLUSTERS, "1")),
        ("type URL", requests(b"", &long, "1")),
        ("version", requests(b"", CLUSTERS, &long)),
    ] {
        for (protocol, request) in requests {
            let mut client = Client::new(Stream::new(protocol, Settings::default()));
            let error = client.try_send(&mut server, request).unwrap_err();
            assert_eq!((error.code(), client.stream.sessions().count()), (8, 0));
            assert_eq!(error, ProtocolError::TooLong { what, length: LIMIT + 1, limit: LIMIT });
        }
    }
    for (protocol, request) in requests(&fits, &longest, &longest) {
        Client::new(Stream::new(protocol, Settings::default())).try_send(&mut server, request).unwrap();
    }
}

#[test]
fn a_list_that_is_repeated_has_a_version_and_a_node_of_bounded_length_too() {
    const LIMIT: usize = 64 << 10;
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let request = |version: &str, node: usize| {
        let node = Node { id: "n".repeat(node), ..Node::default() }.encode_to_vec().into();
        let (type_url, version_info, resource_names) = (ENDPOINTS.to_owned(), version.to_owned(), vec!["a".to_owned()]);
        DiscoveryRequest { type_url, version_info, node, resource_names, ..Default::default() }.encode_to_vec().into()
    };
    for (what, long) in [("version", request(&"v".repeat(LIMIT + 1), 1)), ("node", request("", LIMIT))] {
        let mut client = Client::new(Stream::new(Protocol::Sotw, Settings::default()));
        client.try_send(&mut server, request("", 1)).unwrap();
        client.try_send(&mut server, request("", 1)).unwrap();
        let error = client.try_send(&mut server, long).unwrap_err();
        assert!(matches!(error, ProtocolError::TooLong { what: of, .. } if of == what), "{error:?}");
    }
}

/// Of fields that nobody knows there may be any number.
#[test]
fn what_takes_long_to_read_is_handled_where_nobody_waits_however_few_its_names() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let request = |unknown: usize| -> Bytes {
            let asks = match protocol {
                Protocol::Delta => Ask { of: ENDPOINTS, subscribe: &["a"], ..Ask::default() }.encode(),
                Protocol::Sotw => sotw(ENDPOINTS, &["a"]),
            };
            // Field 15, a varint of one byte.
            [&asks[..], &b"\x78\x00".repeat(unknown)].concat().into()
        };
        let mut server = Server::with(ENDPOINTS, &["a"]);
        let mut stream = Stream::new(protocol, Settings::default());
        let long = request(1 << 19);
        let back = stream.handle_quickly(server.now, long.clone(), &mut server.cache).unwrap();
        assert_eq!(back, Some(long.clone()), "{protocol:?}");
        assert_eq!(stream.names(), 0, "nothing was done about it");
        assert_eq!(stream.handle_quickly(server.now, request(1 << 18), &mut server.cache), Ok(None));
        stream.handle_message(server.now, long, &mut server.cache).unwrap();
    }
}

#[test]
fn rule_109_a_name_that_is_too_long_is_one_of_nothing_and_its_client_is_told_why() {
    let mut settings = Settings::default();
    (settings.name_bytes, settings.node_bytes) = (1024, 2048);
    let fits = "f".repeat(1024);
    let mut server = Server::with(ENDPOINTS, &[&fits, "ok"]);
    let long = "x".repeat(1025);
    // Short as it is written, and canonically each of these is three bytes.
    let grows = format!("xdstp://a/T/{}", "é".repeat(200));
    for (name, length) in [(long, 1025), (grows, 12 + 6 * 200)] {
        server.put(ENDPOINTS, &name, "1");
        let error = format!("!{name}:3 (a name of {length} bytes, 1024 are taken)");
        let mut client = Client::new(Stream::new(Protocol::Delta, settings.clone()));
        let said = client.subscribe(&mut server, ENDPOINTS, &[&fits, &name, "ok"]);
        assert_eq!(said, [format!("E {fits}@1 ok@1 -{name} {error}")]);
        assert_eq!(client.subscribe(&mut server, ENDPOINTS, &[&name]), [format!("E -{name} {error}")], "again");
        let mut client = Client::new(Stream::new(Protocol::Delta, settings.clone()));
        let ask =
            Ask { of: ENDPOINTS, subscribe: &[&name, "ok"], holds: &[(&name, "1"), ("ok", "1")], ..Ask::default() };
        assert_eq!(
            client.ask(&mut server, &ask),
            [format!("E ok@1 -{name} {error}")],
            "once, though it brought it along"
        );
        // To leave it is not answered, and takes nothing else.
        assert_eq!(client.unsubscribe(&mut server, ENDPOINTS, &[&name]), [""; 0]);

        let mut client = Client::new(Stream::new(Protocol::Sotw, settings.clone()));
        assert_eq!(client.names(&mut server, ENDPOINTS, &[&fits, &name]), [format!("E {fits}@1")]);
        assert_eq!(client.ack(&mut server, ENDPOINTS), [format!("E {error}")]);
        assert_eq!(client.ack(&mut server, ENDPOINTS), [""; 0]);
    }
    for (what, length, limit) in [("node", 2049, 2048), ("type URL", 1025, 1024)] {
        let node =
            Node { id: "n".repeat(if what == "node" { 2049 - 3 } else { 1 }), ..Node::default() }.encode_to_vec();
        let of = "t".repeat(if what == "node" { 1 } else { 1025 });
        let mut client = Client::new(Stream::new(Protocol::Delta, settings.clone()));
        let error = client.try_send(&mut server, Ask { of: &of, node: &node, ..Ask::default() }.encode()).unwrap_err();
        assert_eq!(error, ProtocolError::TooLong { what, length, limit });
    }
}

fn sotw(of: &str, names: &[&str]) -> Bytes {
    let resource_names = names.iter().map(|name| (*name).into()).collect();
    DiscoveryRequest { type_url: of.into(), resource_names, ..Default::default() }.encode_to_vec().into()
}

/// What is refused is remembered, so that it is refused once: this counts too.
#[test]
fn types_and_names_that_are_refused_count_towards_the_limits() {
    let delta_only = ["route.v3.VirtualHost", "endpoint.v3.LbEndpoint"];
    let [hosts, localities] = delta_only.map(|of| format!("type.googleapis.com/envoy.config.{of}"));
    let mut settings = Settings::default();
    (settings.types_per_stream, settings.names_per_stream) = (2, 3);
    let mut server = Server::origin();
    let mut client = Client::new(Stream::new(Protocol::Sotw, settings.clone()));
    for of in [CLUSTERS, &hosts, &hosts] {
        client.try_send(&mut server, sotw(of, &["a"])).unwrap();
    }
    let error = client.try_send(&mut server, sotw(&localities, &["a"])).unwrap_err();
    assert_eq!(error, ProtocolError::TooMany { what: "types", limit: 2 });

    for (of, names) in [(hosts.as_str(), ["a", "b", "c", "d"]), (ENDPOINTS, ["a", "b", "xdstp:c", "xdstp:d"])] {
        let mut client = Client::new(Stream::new(Protocol::Sotw, settings.clone()));
        client.try_send(&mut server, sotw(of, &names[..3])).unwrap();
        let mut client = Client::new(Stream::new(Protocol::Sotw, settings.clone()));
        let error = client.try_send(&mut server, sotw(of, &names)).unwrap_err();
        assert_eq!(error, ProtocolError::TooMany { what: "names", limit: 3 });
    }
    let long = "x".repeat(1024);
    let mut client = Client::new(Stream::new(Protocol::Sotw, settings));
    let error = client.try_send(&mut server, sotw(&hosts, &["a", "b", &long])).unwrap_err();
    assert_eq!(error, ProtocolError::TooMany { what: "names", limit: 3 });
}

#[test]
fn versions_that_are_brought_along_count_over_all_types_and_for_each_kib() {
    let mut settings = Settings::default();
    settings.names_per_stream = 6;
    let long = "v".repeat(3 * 1024);
    for (holds, fits) in [(&[("c", "1"), ("d", "1")][..], true), (&[("c", &*long)], false)] {
        let mut server = Server::origin();
        let mut client = Client::new(Stream::new(Protocol::Delta, settings.clone()));
        let first = Ask { of: CLUSTERS, holds: &[("a", "1"), ("b", "1"), ("c", "1")], ..Ask::default() };
        client.try_send(&mut server, first.encode()).unwrap();
        let second = client.try_send(&mut server, Ask { of: ENDPOINTS, holds, ..Ask::default() }.encode());
        assert_eq!(second.is_ok(), fits, "{second:?}");
    }
}

/// An ACK over SotW lists all that is wanted.
#[test]
fn a_list_that_is_repeated_does_not_take_long_however_many_names_it_has() {
    let mut server = Server::origin();
    let names: Vec<_> = (0..2000).map(|n| format!("n{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut stream = Stream::new(Protocol::Sotw, Settings::default());
    let all = sotw(ENDPOINTS, &names);
    assert!(stream.handle_quickly(server.now, all.clone(), &mut server.cache).unwrap().is_some());
    stream.handle_message(server.now, all.clone(), &mut server.cache).unwrap();
    assert_eq!(stream.handle_quickly(server.now, all, &mut server.cache), Ok(None));
    let others = sotw(ENDPOINTS, &names[1..]);
    assert!(stream.handle_quickly(server.now, others, &mut server.cache).unwrap().is_some());
}
