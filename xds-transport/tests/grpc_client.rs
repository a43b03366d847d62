//! The gRPC client against the gRPC server, over loopback.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test above the layer line, whose helpers fail by panicking"
)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::Request;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint, Server};
use tower::ServiceExt as _;
use xds_transport::client::{Command, Event, Interest, Stream, Update, Verdict};
use xds_transport::grpc::client::{Ads, DEFAULT_MAX_MESSAGE_SIZE, PerType, TypeEvent};
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service};
use xds_transport::{Frame, Protocol, TypeRules, TypeService};
use xdstp_cache::Cache;
use xdstp_uri::ResourceName;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LARGE: usize = 20 << 20;

/// One cluster of 20 MiB for everybody. It says so before anything else, and repeats what it was told.
struct Large;

impl Accept for Large {
    type Source = Cache<Frame>;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Cache<Frame>>, Status> {
        let mut payload = b"\x0a\x05large\x12".to_vec();
        let (length, mut rest) = (LARGE, LARGE);
        while rest >= 0x80 {
            payload.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        payload.push(rest as u8);
        payload.resize(payload.len() + length, b'x');
        let mut cache = Cache::new(Default::default());
        let resource = Frame::of_message(&CDS.into(), &payload).into_resource(None);
        let name = ResourceName::parse("large").expect("an opaque name");
        let mut edit = cache.edit(Instant::now());
        edit.put(&CDS.into(), &name, resource);
        let _ = edit.finish();
        let mut metadata = MetadataMap::new();
        if let Some(said) = opened.metadata().get("x-say") {
            metadata.insert("x-said", said.clone());
        }
        Ok(Accepted { source: cache, metadata, client: None })
    }
}

async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let routes = Service::new(Large).into_routes();
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

async fn connect() -> Channel {
    let address = serve().await;
    Endpoint::from_shared(format!("http://{address}")).expect("a URI").connect().await.expect("a server")
}

async fn first_update(protocol: Protocol, max_message_size: usize) -> Result<Update, Status> {
    let channel = connect().await;
    let mut machine = Stream::new(protocol, Default::default(), Arc::new(TypeRules::envoy()));
    machine.apply(Command::Subscribe(CDS.into(), Interest::Wildcard));
    machine.connected(Instant::now());
    let mut ads = Ads::open(channel, protocol, max_message_size);
    let message = ads.next(|| machine.poll_transmit(Instant::now())).await?.expect("a response");
    machine.handle_message(Instant::now(), message).expect("a sound response");
    match machine.poll_event() {
        Some(Event::Update(update)) => {
            machine.apply(Command::Finish(update.id, Verdict::Accept));
            Ok(update)
        }
        other => panic!("no update but {other:?}"),
    }
}

#[tokio::test]
async fn rule_131_a_response_of_20_mib_arrives() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let update = first_update(protocol, DEFAULT_MAX_MESSAGE_SIZE).await.expect("a response");
        assert_eq!(update.changed[0].name.as_str(), "large");
        assert!(update.changed[0].resource.value.any().len() > LARGE);
    }
}

#[tokio::test]
async fn rule_131_the_limit_is_the_caller_s() {
    let refused = first_update(Protocol::Delta, 4 << 20).await.expect_err("more than 4 MiB");
    assert_eq!(refused.code(), tonic::Code::OutOfRange);
}

#[tokio::test]
async fn what_both_sides_say_first_arrives_before_any_request_and_response() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut said = MetadataMap::new();
        said.insert("x-say", "hello".parse().expect("ASCII"));
        let mut ads = Ads::open_with_metadata(connect().await, protocol, DEFAULT_MAX_MESSAGE_SIZE, said);
        for _ in 0..2 {
            let heard = ads.metadata(|| None).await.expect("an answer");
            assert_eq!(heard.get("x-said").expect("what was said"), "hello");
        }
        let mut machine = Stream::new(protocol, Default::default(), Arc::new(TypeRules::envoy()));
        machine.apply(Command::Subscribe(CDS.into(), Interest::Wildcard));
        machine.connected(Instant::now());
        let response = ads.next(|| machine.poll_transmit(Instant::now())).await;
        assert!(response.expect("a sound stream").is_some());
    }
}

/// A server may have no aggregated method, and a program layers of its own.
#[tokio::test]
async fn a_stream_of_one_type_goes_over_any_channel() {
    let clusters = TypeService::new("envoy.service.cluster.v3.ClusterDiscoveryService", "Clusters");
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let paths = Arc::new(Mutex::new(Vec::new()));
        let (noted, channel) = (paths.clone(), connect().await);
        let layered = tower::service_fn(move |request: Request<Body>| {
            noted.lock().expect("no panic").push(request.uri().path().to_owned());
            channel.clone().oneshot(request)
        });
        let signed = InterceptedService::new(layered, |mut request: tonic::Request<()>| {
            request.metadata_mut().insert("x-say", "signed".parse().expect("ASCII"));
            Ok(request)
        });
        let mut machine = Stream::new(protocol, Default::default(), Arc::new(TypeRules::envoy()));
        machine.apply(Command::Subscribe(CDS.into(), Interest::Wildcard));
        machine.connected(Instant::now());
        let mut ads = Ads::open_for_type(signed, &clusters, protocol, DEFAULT_MAX_MESSAGE_SIZE, MetadataMap::new());
        let message = ads.next(|| machine.poll_transmit(Instant::now())).await.expect("a stream").expect("a response");
        machine.handle_message(Instant::now(), message).expect("a sound response");
        assert!(matches!(machine.poll_event(), Some(Event::Update(update)) if update.changed.len() == 1));
        assert_eq!(ads.metadata(|| None).await.expect("an answer").get("x-said").expect("what was said"), "signed");
        assert_eq!(*paths.lock().expect("no panic"), [clusters.method(protocol)]);
    }
    let odd = TypeService::new("no path \n", "A");
    let mut ads = Ads::open_for_type(connect().await, &odd, Protocol::Delta, 1, MetadataMap::new());
    assert_eq!(ads.next(|| None).await.expect_err("no path").code(), tonic::Code::Internal);
}

/// And each of its types a method.
#[tokio::test]
async fn a_stream_for_each_type_is_opened_as_it_is_asked_for() {
    const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
    let rules = Arc::new(TypeRules::envoy());
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut said = MetadataMap::new();
        said.insert("x-say", "hello".parse().expect("ASCII"));
        let mut machine = Stream::new(protocol, Default::default(), rules.clone()).per_type();
        let mut streams = PerType::open(connect().await, rules.clone(), protocol, DEFAULT_MAX_MESSAGE_SIZE, said);
        machine.connected(Instant::now());
        for (opened, of, interest) in [(1, CDS, "large"), (2, EDS, "none")] {
            let name = ResourceName::parse(interest).expect("an opaque name");
            machine.apply(Command::Subscribe(of.into(), name.into()));
            let mut heard = 0;
            // The other type has nothing to say over SotW.
            while heard < 1 + usize::from(of == CDS) {
                let next = streams.next(|room| machine.poll_transmit_by_type(Instant::now(), room)).await;
                heard += 1;
                match next.expect("sound streams").expect("an event") {
                    TypeEvent::Opened(answered, metadata) => {
                        assert_eq!(answered.as_str(), of, "{opened}");
                        assert_eq!(metadata.get("x-said").expect("said"), "hello");
                    }
                    TypeEvent::Message(came, message) => {
                        assert_eq!(came.as_str(), of, "{opened}");
                        machine.handle_message_of(Instant::now(), &came, message).expect("a sound response");
                    }
                    over => panic!("{over:?}"),
                }
            }
            assert_eq!(format!("{streams:?}").matches("type.googleapis.com").count(), opened);
        }
    }
}
