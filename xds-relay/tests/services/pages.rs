//! What the admin pages of a running relay say, whoever asks.

use std::net::TcpListener;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::stream::in_time;
use crate::{Running, no_resources};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// Status and body.
pub(crate) async fn page(relay: &Running, path: &str) -> (u16, String) {
    let (status, _, body) = page_of(relay, "localhost", path).await;
    (status, body)
}

/// Status, head and body of what a browser asks for that takes the relay for this host.
pub(crate) async fn page_of(relay: &Running, host: &str, path: &str) -> (u16, String, String) {
    let exchange = async {
        let mut stream = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = in_time(exchange).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

#[tokio::test]
async fn a_relay_that_waits_for_origins_names_them_and_is_not_ready_on_any_page() {
    let nobody = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let (a, b) = (nobody(), nobody());
    let origins = format!(
        "[{{ name: a, server: '{a}' }}, {{ name: b, server: '{b}', authorities: [b] }}, \
         {{ name: there, server: '{}', authorities: [there] }}]",
        there.local_addr().unwrap()
    );
    let relay = Running::start_with(&origins, "ready_when: origins").await;
    // They are tried one after the other, and are named before that, too.
    drop(tokio::task::spawn_blocking(move || there.accept()).await.unwrap());
    let (status, said) = page(&relay, "/readyz").await;
    assert_eq!(status, 503);
    for (name, address) in [("a", a), ("b", b)] {
        let words = format!("origin {name:?} ({address}) took no connection yet: ");
        assert!(said.contains(&words), "{said}");
    }
    let (_, metrics) = page(&relay, "/metrics").await;
    assert!(metrics.contains("xds_relay_ready 0\n"), "{metrics}");

    let directory = no_resources();
    let ready = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    assert_eq!(page(&ready, "/readyz").await.0, 200);
    assert!(page(&ready, "/metrics").await.1.contains("xds_relay_ready 1\n"));
}

#[tokio::test]
async fn what_files_hold_is_shown_before_anybody_wants_it() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("resources:\n- {{ '@type': {CLUSTERS}, name: b }}\n- {{ '@type': {CLUSTERS}, name: a }}\n");
    std::fs::write(directory.path().join("a.yaml"), text).unwrap();
    let relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let (_, dump) = page(&relay, "/config_dump?type=Cluster").await;
    let dump: Value = serde_json::from_str(&dump).unwrap();
    let content = &dump["origins"][0]["content"][0];
    assert_eq!((&content["type_url"], dump["scopes"].as_array().unwrap().len()), (&json!(CLUSTERS), 0));
    let names: Vec<_> = content["resources"].as_array().unwrap().iter().map(|resource| &resource["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(content["resources"][0]["version"].as_str().is_some_and(|version| !version.is_empty()), "{content}");
}

#[tokio::test]
async fn metrics_are_sent_to_statsd_where_the_configuration_says_so() {
    let (directory, statsd) = (no_resources(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let to = format!("statsd: {{ address: '{}', prefix: a.b, interval: 100ms }}", statsd.local_addr().unwrap());
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().display());
    let relay = Running::start_with(&origins, &to).await;
    let heard = in_time(async {
        loop {
            let mut packet = [0; 2048];
            let length = statsd.recv(&mut packet).await.unwrap();
            let text = String::from_utf8_lossy(&packet[..length]).into_owned();
            if text.lines().any(|line| line == "a.b.xds_relay_ready:1|g") {
                return text;
            }
        }
    });
    assert!(heard.await.lines().all(|line| line.starts_with("a.b.xds_relay_")));
    drop(relay);
}
