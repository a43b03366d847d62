//! A client and an origin over loopback: the origin goes, and comes back with another state.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of a test fail by panicking")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service, StreamHandle};
use xds_transport::{Frame, Protocol};
use xdstp_cache::{Cache, Options};
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::{Backoff, Builder, Client, Endpoint, Error, Event};
use xdstp_uri::ResourceName;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// The name of a resource that is longer than the 4 MiB that tonic takes by itself.
const LARGE: &str = "large";
const MORE_THAN_TONIC_TAKES: usize = 5 << 20;

/// Every stream is served the next state of a list: names, whose content never changes.
struct Origin {
    states: Mutex<VecDeque<&'static [&'static str]>>,
    streams: mpsc::UnboundedSender<StreamHandle>,
}

impl Accept for Origin {
    type Source = Cache<Frame>;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Cache<Frame>>, Status> {
        let mut cache = Cache::new(Options::default());
        let names = self.states.lock().unwrap().pop_front().unwrap_or_default();
        for name in names {
            let mut payload = vec![0x0a, u8::try_from(name.len()).unwrap()];
            payload.extend(name.bytes());
            if *name == LARGE {
                prost::encoding::bytes::encode(1000, &vec![0; MORE_THAN_TONIC_TAKES], &mut payload);
            }
            let resource = Frame::of_message(&CDS.into(), &payload).into_resource(None);
            let name = ResourceName::parse(name).unwrap();
            let mut edit = cache.edit(Instant::now());
            edit.put(&CDS.into(), &name, resource);
            let _ = edit.finish();
        }
        let _ = self.streams.send(opened.handle);
        Ok(cache.into())
    }
}

async fn serve(
    address: &str,
    states: impl IntoIterator<Item = &'static [&'static str]>,
) -> (SocketAddr, mpsc::UnboundedReceiver<StreamHandle>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (streams, handles) = mpsc::unbounded_channel();
    let origin = Origin { states: Mutex::new(states.into_iter().collect()), streams };
    let routes = Service::new(origin).into_routes();
    tokio::spawn(
        tonic::transport::Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)),
    );
    (address, handles)
}

fn endpoint(address: SocketAddr, protocol: Protocol) -> Endpoint {
    let at_once = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    Endpoint::new(&address.to_string()).unwrap().with_protocol(protocol).with_backoff(at_once)
}

fn names(names: &[&str]) -> Vec<ResourceName> {
    names.iter().map(|name| ResourceName::parse(name).unwrap()).collect()
}

#[tokio::test]
async fn rule_143_a_lost_stream_removes_nothing_and_the_next_one_only_what_is_gone() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let states: [&[&str]; 2] = [&["a", "b"], &["a", "c"]];
        let (address, mut streams) = serve("127.0.0.1:0", states).await;
        let client = Client::connect(endpoint(address, protocol));
        let mut watch = client.watch(CDS, "*");

        let mut seen = Vec::new();
        loop {
            match watch.changed().await {
                Event::Put { name, .. } => seen.push(name),
                Event::Answered => break,
                event => panic!("{event:?}"),
            }
        }
        assert_eq!(seen, names(&["a", "b"]));

        streams.recv().await.unwrap().end("a new state");

        let (mut put, mut removed) = (Vec::new(), Vec::new());
        while put.is_empty() || removed.is_empty() {
            match watch.changed().await {
                Event::Put { name, .. } => put.push(name),
                Event::Removed { name } => removed.push(name),
                event => panic!("{event:?}"),
            }
        }
        assert_eq!((put, removed), (names(&["c"]), names(&["b"])), "{protocol:?}");
    }
}

#[tokio::test]
async fn r045_a_response_may_be_as_long_as_the_client_says_and_a_longer_one_is_an_error() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for (most, fits) in [(Some(64), false), (Some(4096), true), (None, true)] {
            let states: [&[&str]; 1] = [&["a-name", "another-name"]];
            let (address, _streams) = serve("127.0.0.1:0", states).await;
            let bootstrap = Bootstrap::new(Server::new(address.to_string(), ChannelCreds::Insecure));
            let builder = Client::builder(bootstrap).protocol(protocol);
            let client = most.into_iter().fold(builder, Builder::max_message_size).build().unwrap();
            let event = client.watch(CDS, "*").changed().await;
            match (&event, fits) {
                (Event::Put { .. }, true) => {}
                (Event::Failed { error: Error::Unreachable { reason, .. }, .. }, false) => {
                    assert!(reason.contains("64"), "{reason}");
                }
                _ => panic!("{protocol:?}, {most:?}: {event:?}"),
            }
        }
    }
}

#[tokio::test]
async fn r045_a_response_of_five_mebibytes_arrives_unless_the_client_takes_less() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for most in [None, Some(4 << 20)] {
            let states: [&[&str]; 1] = [&[LARGE]];
            let (address, _streams) = serve("127.0.0.1:0", states).await;
            let bootstrap = Bootstrap::new(Server::new(address.to_string(), ChannelCreds::Insecure));
            let builder = Client::builder(bootstrap).protocol(protocol);
            let client = most.into_iter().fold(builder, Builder::max_message_size).build().unwrap();
            let event = client.watch(CDS, LARGE).changed().await;
            match (&event, most) {
                (Event::Put { resource, .. }, None) => assert!(resource.len() > MORE_THAN_TONIC_TAKES, "{protocol:?}"),
                (Event::Failed { error: Error::Unreachable { .. }, .. }, Some(_)) => {}
                // Its bytes are no help.
                _ => panic!("{protocol:?}, {most:?}"),
            }
        }
    }
}

#[tokio::test]
async fn an_origin_that_is_not_there_yet_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::connect(endpoint(address, Protocol::Delta));
    let mut watch = client.watch(CDS, "a");
    let refused = watch.changed().await;
    assert!(matches!(refused, Event::Failed { name: None, error: Error::Unreachable { .. } }), "{refused:?}");

    let states: [&[&str]; 1] = [&["a"]];
    let _origin = serve(&address.to_string(), states).await;
    let mut event = watch.changed().await;
    while matches!(event, Event::Failed { name: None, .. } | Event::Ambient { .. }) {
        event = watch.changed().await;
    }
    assert!(matches!(&event, Event::Put { name, .. } if name.as_str() == "a"), "{event:?}");
}

#[tokio::test]
async fn dropping_the_client_and_its_watches_ends_the_stream() {
    let (address, mut streams) = serve("127.0.0.1:0", []).await;
    let client = Client::connect(endpoint(address, Protocol::Delta));
    let mut watch = client.watch(CDS, "a");
    assert!(matches!(watch.changed().await, Event::Failed { error: Error::Absent, .. }));
    let handle = streams.recv().await.unwrap();
    drop((client, watch));
    let mut open = true;
    while open {
        tokio::task::yield_now().await;
        open = false;
        handle.inspect(&mut |_| open = true);
    }
}
