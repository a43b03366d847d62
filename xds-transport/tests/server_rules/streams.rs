//! Streams, nodes and types: rules 1–4, 6, 7, 10–12, 93, 116, 127, 139.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{NodeError, ProtocolError, Settings, Source, Stream, Tally};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, Node};
use xds_transport::{Frame, Protocol};
use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::ResourceName;

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
fn rule_002_types_that_are_delta_only_are_refused_over_sotw() {
    for of in [
        "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
    ] {
        let mut server = Server::with(of, &["rc/a"]);
        server.put(CLUSTERS, "a", "1");
        let mut client = Client::sotw();
        let no = format!("12 (there is no state of the world of {of}: it comes over delta only)");
        assert_eq!(client.names(&mut server, of, &["rc/a", "rc/b"]), [format!("{of} !rc/a:{no} !rc/b:{no}")]);
        assert!(client.ack(&mut server, of).is_empty(), "it is said once");
        server.put(of, "rc/a", "2");
        server.remove(of, "rc/a");
        assert!(client.poll(&mut server).is_empty());
        assert_eq!(client.names(&mut server, of, &["rc/c"]), [format!("{of} !rc/c:{no}")]);
        assert!(client.names(&mut server, of, &[]).is_empty(), "who asks for nothing is not refused anything");
        assert_eq!(client.names(&mut server, CLUSTERS, &[]), ["C a@1"], "the stream goes on");
        assert_eq!(Client::sotw().names(&mut server, of, &[]), [format!("{of} !*:{no}")], "a wildcard");
        server.put(of, "rc/a", "1");
        assert_eq!(Client::delta().subscribe(&mut server, of, &["rc/a"]), [format!("{of} rc/a@1")]);
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

/// A server of two tenants: what a node sees is decided by its client features.
struct Tenants {
    plain: Cache<Frame>,
    featured: Cache<Frame>,
    is_featured: bool,
    too_long_names: usize,
}

impl Tenants {
    fn serving() -> Self {
        let cache = |version| {
            let mut server = Server::origin();
            server.put(CLUSTERS, "a", version);
            server.cache
        };
        Self { plain: cache("plain"), featured: cache("featured"), is_featured: false, too_long_names: 0 }
    }

    fn cache(&mut self) -> &mut Cache<Frame> {
        if self.is_featured { &mut self.featured } else { &mut self.plain }
    }
}

impl Source for Tenants {
    fn too_long_name(&mut self) {
        self.too_long_names += 1;
    }

    fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
        let features = Node::decode(node.clone()).map_err(|error| NodeError::new(error.to_string()))?.client_features;
        self.is_featured = features.iter().any(|feature| feature == "envoy.lb.does_not_support_overprovisioning");
        Ok(())
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.cache().open(type_url)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        Source::close(self.cache(), id, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::subscribe(self.cache(), id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::unsubscribe(self.cache(), id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        Source::resume(self.cache(), id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        Source::pull(self.cache(), id, removals, visitor)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        Source::pull_errors(self.cache(), id, removals, visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Source::visit(self.cache(), id, visitor)
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        if self.is_featured { Source::has_work(&self.featured, id) } else { Source::has_work(&self.plain, id) }
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        Source::look_up(if self.is_featured { &self.featured } else { &self.plain }, id, name, look);
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        Source::resend(self.cache(), id, name)
    }
}

/// What a stream is sent, whose requests come with these nodes.
fn versions_seen(nodes: &[&Node]) -> Vec<String> {
    let mut tenants = Tenants::serving();
    let mut stream = Stream::new(Protocol::Delta, Settings::default());
    let now = crate::support::any_moment();
    let mut seen = Vec::new();
    for node in nodes {
        let request = Ask { of: CLUSTERS, subscribe: &["a"], node: &node.encode_to_vec(), ..Ask::default() };
        stream.handle_message(now, request.encode(), &mut tenants).unwrap();
        while let Some(transmit) = stream.poll_transmit(now, &mut tenants).unwrap() {
            let response = DeltaDiscoveryResponse::decode(transmit.into_bytes()).unwrap();
            seen.extend(response.resources.into_iter().map(|resource| resource.version));
        }
    }
    seen
}

#[test]
fn rule_006_a_node_that_changes_on_a_stream_is_shown_no_other_tenant() {
    let plain = Node { id: "me".into(), ..Node::default() };
    let client_features = vec!["envoy.lb.does_not_support_overprovisioning".into()];
    let featured = Node { id: "other".into(), client_features, ..Node::default() };
    assert_eq!(versions_seen(&[&plain, &featured, &plain]), ["plain"; 3]);
    assert_eq!(versions_seen(&[&featured, &plain]), ["featured"; 2]);
}

#[test]
fn rule_116_features_of_the_client_may_decide_what_it_is_sent() {
    let client_features = vec!["envoy.lb.does_not_support_overprovisioning".into()];
    assert_eq!(versions_seen(&[&Node { client_features, ..Node::default() }]), ["featured"]);
    assert_eq!(versions_seen(&[&Node::default()]), ["plain"]);
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

#[test]
fn rule_109_a_source_hears_of_each_text_that_is_too_long_for_a_name_once() {
    let (fits, long) = ("x".repeat(64 << 10), "x".repeat((64 << 10) + 1));
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut tenants = Tenants::serving();
        let mut stream = Stream::new(protocol, Settings::default());
        for names in [&[&*fits, "a"][..], &[&*long, "a"], &[&*long, "a", "b"]] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let type_url = CLUSTERS.to_owned();
            let request = match protocol {
                Protocol::Delta => {
                    DeltaDiscoveryRequest { type_url, resource_names_subscribe: names, ..Default::default() }
                        .encode_to_vec()
                }
                Protocol::Sotw => {
                    DiscoveryRequest { type_url, resource_names: names, ..Default::default() }.encode_to_vec()
                }
            };
            stream.handle_message(crate::support::any_moment(), request.into(), &mut tenants).unwrap();
        }
        assert_eq!(tenants.too_long_names, 1, "{protocol:?}");
    }
}
