//! What one stranger may use up, over loopback: what he is told, what is counted, and that others are none the worse.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

use crate::Running;
use crate::loops::page;
use crate::stream::{Call, connect, framed, in_time};
use crate::tls::{Authority, Files};

pub(crate) const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A relay of one cluster, `a`, from a file.
pub(crate) async fn relay(limits: &str) -> (Running, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("a.yaml"), "connect_timeout: 1s");
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().display());
    (Running::start_with(&origins, &format!("limits: {{ {limits} }}")).await, directory)
}

/// The cluster, with something that is told of it.
pub(crate) fn write(file: &Path, more: &str) {
    std::fs::write(file, format!(r#"{{ resources: [{{ "@type": {CLUSTERS}, name: a, {more} }}] }}"#)).unwrap();
}

pub(crate) async fn call(address: SocketAddr) -> Call {
    Call::open(address, Protocol::Delta.aggregated_method()).await
}

fn request(names: &[String]) -> Bytes {
    let (type_url, resource_names_subscribe) = (CLUSTERS.to_owned(), names.to_vec());
    framed(&DeltaDiscoveryRequest { type_url, resource_names_subscribe, ..Default::default() }.encode_to_vec())
}

/// How often a limit was counted.
async fn count(relay: &Running, limit: &str) -> usize {
    let line = format!("xds_relay_downstream_refused_total{{limit=\"{limit}\"}} ");
    let page = page(relay, "/metrics").await;
    page.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok()).unwrap()
}

/// Waits until a limit was counted so many times, and no more.
pub(crate) async fn counted(relay: &Running, limit: &str, times: usize) {
    let counted = async {
        while count(relay, limit).await < times {
            tokio::task::yield_now().await;
        }
    };
    in_time(counted).await;
    assert_eq!(count(relay, limit).await, times, "{limit}");
}

async fn is_served(relay: &Running) {
    let mut call = call(relay.address).await;
    call.sending.send_data(request(&["a".to_owned()]), false).unwrap();
    let response = DeltaDiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
    assert_eq!(response.resources.len(), 1);
}

#[tokio::test]
async fn rule_132_requests_have_so_many_bytes() {
    let (relay, _directory) = relay("max_request_bytes: 4 KiB, unfinished_request_bytes: 4 KiB").await;
    let mut long = call(relay.address).await;
    long.sending.send_data(framed(&[0; 5000]).slice(..5), false).unwrap();
    assert_eq!(
        long.status().await,
        (8, "a request of 5000 bytes, 4096 are taken (limits.max_request_bytes of the relay)".to_owned())
    );
    counted(&relay, "max_request_bytes", 1).await;

    let mut most = call(relay.address).await;
    most.sending.send_data(framed(&[0; 4096]).slice(..3000), false).unwrap();
    let mut other = call(relay.address).await;
    other.sending.send_data(framed(&[0; 4096]).slice(..2000), false).unwrap();
    let words =
        "more than 4096 bytes of unfinished requests on all streams (limits.unfinished_request_bytes of the relay)";
    assert_eq!(most.status().await, (8, words.to_owned()));
    counted(&relay, "unfinished_request_bytes", 1).await;
    is_served(&relay).await;
}

#[tokio::test]
async fn streams_have_so_much_time() {
    let (relay, _directory) = relay("first_request: 50ms").await;
    let client = connect(relay.address).await;
    let mut silent = Call::open_on(&client, relay.address, Protocol::Delta.aggregated_method(), &[]).await;
    assert_eq!(
        silent.status().await,
        (14, "no request came within 50ms (limits.first_request of the relay)".to_owned())
    );
    // And its connection, which has no other stream.
    counted(&relay, "first_request", 2).await;

    let (relay, _directory) = self::relay("stream_age: 50ms").await;
    let mut old = call(relay.address).await;
    old.sending.send_data(request(&["b".to_owned()]), false).unwrap();
    assert_eq!(old.status().await, (14, "the stream is old: reconnect (limits.stream_age of the relay)".to_owned()));
    counted(&relay, "stream_age", 1).await;
}

#[tokio::test]
async fn connections_have_so_much_time() {
    let (relay, _directory) = relay("preface: 50ms").await;
    let mut silent = TcpStream::connect(relay.address).await.unwrap();
    silent.write_all(b"PRI * HTTP").await.unwrap();
    in_time(silent.read_to_end(&mut Vec::new())).await.unwrap();
    counted(&relay, "preface", 1).await;

    // By TLS a handshake has that time, too.
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    let secured = files.relay("{ certificate: $server.pem, key: $server.key }\nlimits: { preface: 50ms }").await;
    let mut silent = TcpStream::connect(secured.address).await.unwrap();
    assert_eq!(in_time(silent.read(&mut [0])).await.unwrap(), 0);
    counted(&secured, "preface", 1).await;

    let (relay, _directory) = self::relay("first_request: 50ms").await;
    let idle = TcpStream::connect(relay.address).await.unwrap();
    let (_requests, connection) = h2::client::handshake(idle).await.unwrap();
    let _ = in_time(connection).await;
    counted(&relay, "first_request", 1).await;
}

/// Whoever asks too slowly is treated as who does not ask.
#[tokio::test]
async fn admin_connections_have_so_much_time_between_answers() {
    let (relay, _directory) = relay("admin_idle: 1s").await;
    let mut admin = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    admin.write_all(b"GET /").await.unwrap();
    in_time(admin.read_to_end(&mut Vec::new())).await.unwrap();
    // Who looks at the number may be counted too.
    let counted = async {
        while count(&relay, "admin_idle").await == 0 {
            tokio::task::yield_now().await;
        }
    };
    in_time(counted).await;
}

/// HTTP/2 says how many there may be, and a client waits with more until one is over; what is counted is that it may have to.
#[tokio::test]
async fn connections_have_so_many_streams() {
    let (relay, _directory) = relay("streams_per_connection: 2").await;
    counted(&relay, "streams_per_connection", 0).await;
    let io = TcpStream::connect(relay.address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let uri = format!("http://{}{}", relay.address, Protocol::Delta.aggregated_method());
    let mut open = async || {
        let request = http::Request::post(&uri).header("content-type", "application/grpc").body(()).unwrap();
        requests = requests.clone().ready().await.unwrap();
        requests.send_request(request, false).unwrap()
    };
    let (first, sending) = open().await;
    let first = in_time(first).await.unwrap();
    let (second, _sending) = open().await;
    let _second = in_time(second).await.unwrap();
    counted(&relay, "streams_per_connection", 1).await;
    let (third, _sending) = open().await;
    is_served(&relay).await;
    counted(&relay, "streams_per_connection", 1).await;
    drop((first, sending));
    in_time(third).await.unwrap();
    counted(&relay, "streams_per_connection", 2).await;
    assert_eq!(requests.current_max_send_streams(), 2);
}

/// Names that no message to the origin could hold: it takes 1 MiB, and the others of its stream go on.
#[tokio::test]
async fn rule_132_a_stranger_with_many_names_takes_the_origin_from_nobody() {
    let (upper, _directory) = relay("max_request_bytes: 1 MiB").await;
    let origins = format!("[{{ name: up, server: '{}' }}]", upper.address);
    let more = "share_by: [cluster]\nlimits: { max_upstream_request_bytes: 1 MiB }";
    let lower = Running::start_with(&origins, more).await;
    let mut stranger = call(lower.address).await;
    let names: Vec<_> = (0..40).map(|at| format!("{at:02}{}", "x".repeat(60_000))).collect();
    stranger.send(request(&names)).await;
    let mut gone = 0;
    while gone < names.len() {
        let response = DeltaDiscoveryResponse::decode(stranger.message().await.unwrap()).unwrap();
        gone += response.removed_resources.len();
    }
    is_served(&lower).await;
    assert!(page(&upper, "/metrics").await.contains("refused_total{limit=\"max_request_bytes\"} 0\n"));
}
