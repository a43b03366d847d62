//! How much one stream may ask for, and how often: rule 136.

use std::time::Duration;

use prost::Message;
use xds_transport::RateLimit;
use xds_transport::server::{ProtocolError, Settings, Stream, Variant};
use xds_transport::wire::DiscoveryRequest;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, Server};

#[test]
fn rule_136_too_many_requests_end_their_stream_and_no_other() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut settings = Settings::default();
    settings.requests = Some(RateLimit { burst: 100, every: Duration::from_millis(10) });
    let mut hasty = Client::new(Stream::new(Variant::Delta, settings.clone()));
    let mut steady = Client::new(Stream::new(Variant::Delta, settings));
    let again = Ask { of: CLUSTERS, subscribe: &["a"], ..Ask::default() }.encode();
    let refused = (0..10_000).find_map(|_| {
        server.now += Duration::from_micros(100);
        hasty.try_send(&mut server, again.clone()).err()
    });
    assert_eq!((refused.as_ref().map(ProtocolError::code), refused), (Some(8), Some(ProtocolError::TooOften)));
    for _ in 0..1000 {
        server.now += Duration::from_millis(10);
        steady.try_send(&mut server, again.clone()).unwrap();
    }
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

/// What is refused is remembered, so that it is refused once: this counts too.
#[test]
fn types_and_names_that_are_refused_count_towards_the_limits() {
    let delta_only = ["route.v3.VirtualHost", "endpoint.v3.LbEndpoint"];
    let [hosts, localities] = delta_only.map(|of| format!("type.googleapis.com/envoy.config.{of}"));
    let mut settings = Settings::default();
    (settings.types_per_stream, settings.names_per_type) = (2, 3);
    let request = |of: &str, names: &[&str]| {
        let resource_names = names.iter().map(|name| (*name).into()).collect();
        let request = DiscoveryRequest { type_url: of.into(), resource_names, ..Default::default() };
        request.encode_to_vec().into()
    };
    let mut server = Server::origin();
    let mut client = Client::new(Stream::new(Variant::Sotw, settings.clone()));
    for of in [CLUSTERS, &hosts, &hosts] {
        client.try_send(&mut server, request(of, &["a"])).unwrap();
    }
    let error = client.try_send(&mut server, request(&localities, &["a"])).unwrap_err();
    assert_eq!(error, ProtocolError::TooMany { what: "types", limit: 2 });

    for (of, names) in [(hosts.as_str(), ["a", "b", "c", "d"]), (ENDPOINTS, ["a", "b", "xdstp:c", "xdstp:d"])] {
        let mut client = Client::new(Stream::new(Variant::Sotw, settings.clone()));
        client.try_send(&mut server, request(of, &names[..3])).unwrap();
        let mut client = Client::new(Stream::new(Variant::Sotw, settings.clone()));
        let error = client.try_send(&mut server, request(of, &names)).unwrap_err();
        assert_eq!(error, ProtocolError::TooMany { what: "names of one type", limit: 3 });
    }
}
