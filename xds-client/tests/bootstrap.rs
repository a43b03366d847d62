//! Clients of a bootstrap, over sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of a test fail by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use xds_transport::Frame;
use xds_transport::grpc::server::Shared;
use xds_transport::server::Settings;
use xdstp_cache::{Cache, Options};
use xdstp_client::bootstrap::{self, Authority, Bootstrap, ChannelCreds};
use xdstp_client::{Backoff, BuildError, Client, Endpoint, Error, Event, Watch};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const OF_A: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/x";
const OF_B: &str = "xdstp://b/envoy.config.cluster.v3.Cluster/x";

/// A server with clusters of these names, and how many connections it had.
async fn serve(names: &[&str]) -> (SocketAddr, Arc<AtomicUsize>, Shared) {
    let shared = having(names);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let incoming = TcpListenerStream::new(listener).map(move |connection| {
        counted.fetch_add(1, Ordering::Relaxed);
        connection
    });
    tokio::spawn(Server::builder().add_routes(shared.service().into_routes()).serve_with_incoming(incoming));
    (address, connections, shared)
}

fn having(names: &[&str]) -> Shared {
    let shared = Shared::new(Cache::new(Options::default()), Settings::default());
    for name in names {
        let message = [&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let resource = Frame::of_message(&CDS.into(), &message).into_resource(Some("1".into()));
        shared.put(&CDS.into(), &name.parse().unwrap(), resource).unwrap();
    }
    shared
}

async fn put(watch: &mut Watch) -> String {
    match watch.changed().await {
        Event::Put { name, .. } => name.to_string(),
        event => panic!("{event:?}"),
    }
}

#[tokio::test]
async fn authorities_of_equal_servers_share_a_stream_and_a_connection_which_is_closed_when_nobody_watches() {
    let (address, connections, shared) = serve(&["x", OF_A, OF_B]).await;
    let server = || insecure(address);
    let bootstrap = Bootstrap::new(server())
        .with_authority("a", Authority::default().with_server(server()))
        // The same first server, and another behind it.
        .with_authority("b", Authority::default().with_server(server()).with_server(insecure("127.0.0.1:1")));
    let client = Client::builder(bootstrap)
        .backoff(Backoff::new(Duration::from_millis(1), Duration::from_millis(20)))
        .idle(Duration::from_millis(1))
        .build()
        .unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 0, "nothing is wanted yet");
    let mut watches = ["x", OF_A, OF_B].map(|name| client.watch(CDS, name));
    let mut told = Vec::new();
    for watch in &mut watches {
        told.push(put(watch).await);
    }
    assert_eq!((told, connections.load(Ordering::Relaxed)), (vec!["x".to_owned(), OF_A.into(), OF_B.into()], 1));
    assert_eq!(shared.clients().len(), 1, "whatever lists it stands in");
    drop(watches);
    while !shared.clients().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut again = client.watch(CDS, "x");
    assert_eq!(put(&mut again).await, "x");
}

#[cfg(unix)]
#[tokio::test]
async fn rule_092_of_a_list_whose_first_server_is_away_the_second_is_asked_at_its_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
    let shared = having(&["x", "y"]);
    tokio::spawn(Server::builder().add_routes(shared.service().into_routes()).serve_with_incoming(incoming));
    // Nobody listens at the first.
    let second = insecure(format!("unix:{}", socket.display()));
    let bootstrap = Bootstrap::new(insecure("127.0.0.1:1")).with_server(second);
    let client = Client::from_bootstrap(bootstrap).unwrap();
    for name in ["x", "y"] {
        assert_eq!(put(&mut client.watch(CDS, name)).await, name);
    }
}

#[tokio::test]
async fn r006_a_server_that_cannot_be_spoken_to_as_it_says_leaves_its_list_the_others() {
    let (address, _, _shared) = serve(&["x"]).await;
    let unsupported = || bootstrap::Server::new("127.0.0.1:1", ChannelCreds::GoogleDefault);
    let bootstrap = Bootstrap::new(unsupported()).with_server(insecure(address));
    let client = Client::from_bootstrap(bootstrap).unwrap();
    assert_eq!(put(&mut client.watch(CDS, "x")).await, "x");
    // Where there is no other, that is said at once.
    let told = Client::from_bootstrap(Bootstrap::new(unsupported())).unwrap().watch(CDS, "x").try_next();
    assert!(matches!(told, Some(Event::Failed { error: Error::Unusable { .. }, .. })), "{told:?}");
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn r007_a_server_whose_files_are_not_there_yet_is_one_that_cannot_be_reached_yet() {
    let (address, _, _shared) = serve(&["x"]).await;
    let mut files = bootstrap::TlsFiles::default();
    files.ca_certificate = Some("no/such/ca.pem".into());
    let awaits_files = bootstrap::Server::new("127.0.0.1:1", ChannelCreds::Tls(files));
    let client = Client::from_bootstrap(Bootstrap::new(awaits_files.clone())).unwrap();
    let mut watch = client.watch(CDS, "x");
    let told = watch.changed().await;
    let Event::Failed { error: Error::Unreachable { reason, .. }, .. } = told else { panic!("{told:?}") };
    assert!(reason.contains("no/such/ca.pem"), "{reason}");
    // Another of its list is asked meanwhile.
    let client = Client::from_bootstrap(Bootstrap::new(awaits_files).with_server(insecure(address))).unwrap();
    assert_eq!(put(&mut client.watch(CDS, "x")).await, "x");
}

#[tokio::test]
async fn a_watch_is_a_stream_that_ends_where_nothing_can_come() {
    let (address, _, _shared) = serve(&["x"]).await;
    let client = Client::from_bootstrap(Bootstrap::new(insecure(address))).unwrap();
    let mut watch = client.watch(CDS, "x");
    assert!(matches!(watch.next().await, Some(Event::Put { .. })));
    let mut never = client.watch(CDS, OF_A);
    let told = never.next().await;
    assert!(matches!(told, Some(Event::Failed { error: Error::UnknownAuthority { .. }, .. })), "{told:?}");
    assert!(never.next().await.is_none());
}

#[tokio::test]
async fn watches_are_opened_from_any_thread() {
    let (address, _, _shared) = serve(&["x"]).await;
    let client = Client::from_bootstrap(Bootstrap::new(insecure(address))).unwrap();
    let mut watch = std::thread::spawn(move || client.watch(CDS, "x")).join().unwrap();
    assert_eq!(put(&mut watch).await, "x");
}

fn insecure(uri: impl ToString) -> bootstrap::Server {
    bootstrap::Server::new(uri.to_string(), ChannelCreds::Insecure)
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let built = Client::from_bootstrap(Bootstrap::new(insecure("127.0.0.1:1")));
    assert!(matches!(built, Err(BuildError::NoRuntime)));
    let client = Client::connect(Endpoint::new("127.0.0.1:1").unwrap());
    let told = client.watch(CDS, "x").try_next();
    assert!(matches!(told, Some(Event::Failed { error: Error::Unusable { .. }, .. })), "{told:?}");
}

#[test]
fn errors_are_values_that_clone() {
    fn clones<E: std::error::Error + Clone + Send + Sync + 'static>() {}
    clones::<Error>();
    clones::<BuildError>();
    clones::<bootstrap::BootstrapError>();
    clones::<xdstp_client::ServerError>();
    clones::<xdstp_client::EndpointError>();
    clones::<xdstp_client::state::StoreError>();
}
