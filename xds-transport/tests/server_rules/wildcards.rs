//! What `*` and no names mean: rules 39–47, 86.

use std::sync::Arc;

use xds_transport::server::{Settings, Stream};
use xds_transport::{Protocol, TypeRule, TypeRules};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, ROUTES, SCOPED_ROUTES, Server};

#[test]
fn rule_039_an_asterisk_is_everything() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    assert_eq!(Client::delta().subscribe(&mut server, CLUSTERS, &["*"]), ["C a@1 b@1"]);
    assert_eq!(Client::sotw().names(&mut server, CLUSTERS, &["*"]), ["C a@1 b@1"]);
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    assert_eq!(Client::delta().subscribe(&mut server, ENDPOINTS, &["*"]), ["E a@1 b@1"]);
    assert_eq!(Client::sotw().names(&mut server, ENDPOINTS, &["*"]), ["E a@1 b@1"]);
}

#[test]
fn rule_040_no_names_mean_everything_until_the_first_name() {
    let mut server = Server::with(CLUSTERS, &["A", "B"]);
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, CLUSTERS, &[]), ["C A@1 B@1"]);
    assert_eq!(client.names(&mut server, CLUSTERS, &["A"]), ["C A@1"]);
    assert!(client.names(&mut server, CLUSTERS, &[]).is_empty());
    server.put(CLUSTERS, "A", "2");
    server.put(CLUSTERS, "B", "2");
    assert!(client.poll(&mut server).is_empty(), "subscribed to nothing");
}

#[test]
fn rule_041_types_without_a_wildcard_take_no_names_for_nothing() {
    let mut server = Server::origin();
    for of in [ENDPOINTS, ROUTES] {
        server.put(of, "a", "1");
        assert!(Client::sotw().names(&mut server, of, &[]).is_empty());
        assert!(Client::delta().subscribe(&mut server, of, &[]).is_empty());
    }
    for (of, letter) in [(LISTENERS, "L"), (CLUSTERS, "C")] {
        server.put(of, "a", "1");
        assert_eq!(Client::sotw().names(&mut server, of, &[]), [format!("{letter} a@1")]);
        assert_eq!(Client::delta().subscribe(&mut server, of, &[]), [format!("{letter} a@1")]);
    }
}

#[test]
fn rule_041_every_type_has_a_wildcard_without_names_or_has_none() {
    for (of, wildcard, sotw) in [
        (LISTENERS, true, true),
        (CLUSTERS, true, true),
        (SCOPED_ROUTES, true, true),
        ("type.googleapis.com/envoy.config.route.v3.VirtualHost", true, false),
        ("type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint", false, false),
        ("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", false, true),
        ("type.googleapis.com/envoy.service.runtime.v3.Runtime", false, true),
        ("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", false, true),
        ("type.example.com/of.somebody.Else", false, true),
    ] {
        let mut server = Server::with(of, &["a"]);
        let mut delta = Client::delta();
        delta.subscribe(&mut server, of, &[]);
        assert_eq!(delta.delta.len(), usize::from(wildcard), "{of}");
        if sotw {
            let mut client = Client::sotw();
            client.names(&mut server, of, &[]);
            assert_eq!(client.sotw.len(), usize::from(wildcard), "{of}");
        }
    }
}

#[test]
fn rule_042_the_legacy_wildcard_can_be_turned_off() {
    let mut rules = TypeRules::envoy();
    let listeners = rules.of(&LISTENERS.into()).clone();
    rules.insert(LISTENERS.into(), TypeRule { legacy_wildcard: false, ..listeners });
    let mut settings = Settings::default();
    settings.rules = Arc::new(rules);
    let mut server = Server::with(LISTENERS, &["a"]);
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::new(Stream::new(protocol, settings.clone()));
        assert!(client.want(&mut server, LISTENERS, &[]).is_empty());
        server.put(LISTENERS, "b", &format!("{protocol:?}"));
        assert!(client.poll(&mut server).is_empty());
        assert_eq!(client.want(&mut server, LISTENERS, &["a"]), ["L a@1"], "and a name is a name");
    }
}

#[test]
fn rule_043_a_sotw_stream_steps_in_and_out_of_the_wildcard() {
    let mut server = Server::with(CLUSTERS, &["A", "B"]);
    let mut client = Client::sotw();
    let mut version = 1;
    for (names, both) in [
        (&[] as &[&str], Some("C A@{} B@{}")),
        (&["*", "A"], Some("C A@{} B@{}")),
        (&["A"], Some("C A@{}")),
        (&[], None),
    ] {
        client.names(&mut server, CLUSTERS, names);
        client.settle(&mut server);
        version += 1;
        server.put(CLUSTERS, "A", &version.to_string());
        server.put(CLUSTERS, "B", &version.to_string());
        let expected: Vec<_> = both.iter().map(|line| line.replace("{}", &version.to_string())).collect();
        assert_eq!(client.settle(&mut server), expected, "{names:?}");
    }
}

#[test]
fn rule_044_a_delta_stream_steps_in_and_out_of_the_wildcard() {
    let mut server = Server::with(CLUSTERS, &["A", "B"]);
    let mut client = Client::delta();
    let mut version = 1;
    let steps: [(&[&str], &[&str], Option<&str>); 4] = [
        (&[], &[], Some("C A@{} B@{}")),
        (&["A"], &[], Some("C A@{} B@{}")),
        (&[], &["*"], Some("C A@{}")),
        (&[], &["A"], None),
    ];
    for (subscribe, unsubscribe, both) in steps {
        client.ask(&mut server, &Ask { of: CLUSTERS, subscribe, unsubscribe, ..Ask::default() });
        client.settle(&mut server);
        version += 1;
        server.put(CLUSTERS, "A", &version.to_string());
        server.put(CLUSTERS, "B", &version.to_string());
        let expected: Vec<_> = both.iter().map(|line| line.replace("{}", &version.to_string())).collect();
        assert_eq!(client.settle(&mut server), expected, "+{subscribe:?} -{unsubscribe:?}");
    }
}

#[test]
fn rule_045_leaving_an_unknown_name_does_not_end_the_wildcard() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    client.unsubscribe(&mut server, CLUSTERS, &["nope"]);
    server.put(CLUSTERS, "b", "1");
    assert_eq!(client.poll(&mut server), ["C b@1"]);
}

#[test]
fn rule_046_a_stream_that_opens_with_no_endpoints_is_answered_with_silence() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::sotw();
    assert!(client.names_at(&mut server, ENDPOINTS, &[], "e1").is_empty());
    server.put(ENDPOINTS, "a", "2");
    assert!(client.poll(&mut server).is_empty());
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a"]), ["E a@2"]);
}

#[test]
fn rule_047_to_ask_for_everything_and_leave_it_at_once_is_to_ask_for_nothing() {
    let mut server = Server::with(CLUSTERS, &["x", "y"]);
    let mut client = Client::delta();
    let ask = Ask { of: CLUSTERS, subscribe: &["*"], unsubscribe: &["*"], ..Ask::default() };
    assert!(client.ask(&mut server, &ask).is_empty());
    server.put(CLUSTERS, "y", "2");
    assert!(client.poll(&mut server).is_empty());
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["x"]), ["C x@1"]);
}

#[test]
fn rule_086_an_empty_wildcard_is_answered_once() {
    let mut server = Server::origin();
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &[]), ["C"]);
    assert!(client.ack(&mut server, CLUSTERS).is_empty());
    assert_eq!(Client::delta().subscribe(&mut server, ENDPOINTS, &["*"]), ["E"]);
    assert_eq!(Client::sotw().names(&mut server, CLUSTERS, &[]), ["C"]);
}

#[test]
fn rule_037_who_was_sent_a_member_is_not_answered_once_more() {
    let glob = "xdstp://x/T/d/*";
    for (of, collection, member) in [(CLUSTERS, "*", "a"), (ENDPOINTS, glob, "xdstp://x/T/d/1")] {
        let mut server = Server::relay();
        let mut client = Client::delta();
        assert!(client.subscribe(&mut server, of, &[collection]).is_empty());
        server.put(of, member, "1");
        assert_eq!(client.poll(&mut server).len(), 1);
        server.answered(of, collection);
        assert_eq!(client.poll(&mut server), [""; 0]);
        assert_eq!(client.subscribe(&mut server, of, &[collection]).len(), 1, "who asks is answered");
    }
}

#[test]
fn rule_086_a_relay_answers_an_empty_wildcard_when_its_origin_did() {
    let mut server = Server::relay();
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    assert!(delta.subscribe(&mut server, CLUSTERS, &[]).is_empty());
    assert!(sotw.names(&mut server, CLUSTERS, &[]).is_empty());
    server.put(CLUSTERS, "a", "1");
    assert!(sotw.poll(&mut server).is_empty(), "absence is deletion: what else there is, nobody knows yet");
    server.answered(CLUSTERS, "*");
    assert_eq!(delta.poll(&mut server), ["C a@1"]);
    assert_eq!(sotw.poll(&mut server), ["C a@1"]);
}
