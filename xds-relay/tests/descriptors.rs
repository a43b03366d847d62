//! The relay as a process that may have few descriptors: it takes what there are, and strangers leave some of them to others.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "the helpers of these tests")]

#[path = "support/process.rs"]
#[allow(dead_code, reason = "of all that can be done with a process, this is some")]
mod process;
#[path = "services/stream.rs"]
#[allow(dead_code, reason = "of all that can be said on a stream, this is some")]
mod stream;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use process::{Running, answer, connect, file, lines, relay};
use prost::Message;
use stream::{Call, framed, in_time};
use tokio::sync::oneshot;
use xds_relay::{Config, Relay};
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A relay that is started with `ulimit` set so.
fn limited(ulimit: &str, file: &Path) -> Running {
    let mut command = Command::new("sh");
    command.env_remove("XDS_RELAY_LOG").stdin(Stdio::null());
    command.arg("-c").arg(format!("{ulimit} && exec \"$0\" --config \"$1\""));
    command.arg(relay().get_program()).arg(file);
    Running::start(command, "/config_dump\n")
}

#[test]
fn as_many_files_may_be_open_as_the_system_allows() {
    let (_directory, file) =
        file("{ listen: 127.0.0.1:0, admin: 127.0.0.1:0, origins: [{ name: up, server: 127.0.0.1:1 }] }");
    for (ulimit, words) in [
        ("ulimit -n 300 && ulimit -S -n 100", "300 files may be open, connections among them (ulimit -n)"),
        ("ulimit -n 300", "300 files may be open, connections among them (ulimit -n)"),
    ] {
        let mut running = limited(ulimit, &file);
        let said = lines(running.child.stderr.take().unwrap());
        drop(running);
        let said: Vec<_> = said.iter().collect();
        assert!(said.iter().any(|line| line.contains(words)), "{said:?}");
    }
}

fn write(file: &Path, seconds: u32) {
    let text = format!(r#"{{ resources: [{{ "@type": {CLUSTERS}, name: a, connect_timeout: {seconds}s }}] }}"#);
    fs::write(file.with_extension("new"), text).unwrap();
    fs::rename(file.with_extension("new"), file).unwrap();
}

async fn asks(call: &mut Call, node: &str) {
    let node = Node { id: node.to_owned(), ..Node::default() }.encode_to_vec().into();
    let (type_url, resource_names_subscribe) = (CLUSTERS.to_owned(), vec!["a".to_owned()]);
    let request = DeltaDiscoveryRequest { node, type_url, resource_names_subscribe, ..Default::default() };
    call.send(framed(&request.encode_to_vec())).await;
}

async fn is_told(call: &mut Call) {
    let response = DeltaDiscoveryResponse::decode(call.message().await.expect("the stream goes on")).unwrap();
    assert_eq!((response.resources.len(), response.removed_resources.len()), (1, 0));
}

/// Each group is a stream to the origin, and as that bears one on a connection, a connection as well.
#[tokio::test]
async fn with_few_descriptors_a_stranger_with_connections_and_groups_is_noticed_by_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let mesh = directory.path().join("mesh");
    fs::create_dir(&mesh).unwrap();
    write(&mesh.join("a.yaml"), 1);
    let origin =
        format!("{{ listen: 127.0.0.1:0, admin: none, origins: [{{ name: mesh, files: '{}' }}] }}", mesh.display());
    let origin = Relay::bind(Config::parse("relay.yaml", &origin).unwrap()).await.unwrap();
    let up = origin.listen_address().unwrap();
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(origin.run(async { drop(stopped.await) }));

    let text = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n\
         origins: [{{ name: up, server: '{up}', streams_per_connection: 1 }}]\n"
    );
    let (_directory, file) = file(&text);
    let running = tokio::task::spawn_blocking(move || limited("ulimit -n 80", &file)).await.unwrap();
    let address: SocketAddr = running.address_after("xDS      ").parse().unwrap();
    let admin = running.address_after("admin    http://").trim_end_matches('/').to_owned();
    let method = Protocol::Delta.aggregated_method();
    let mut good = Call::open(address, method).await;
    asks(&mut good, "good").await;
    is_told(&mut good).await;

    let mut silent = Vec::new();
    for _ in 0..120 {
        silent.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    let connection = stream::connect(address).await;
    let (mut served, mut refused) = (Vec::new(), 0);
    for at in 0..40 {
        let mut call = Call::open_on(&connection, address, method, &[]).await;
        asks(&mut call, &format!("stranger-{at}")).await;
        match call.message().await {
            Some(_) => served.push(call),
            None => {
                let words = "more than 6 node groups (limits.groups of the relay)";
                assert_eq!(call.status().await, (8, words.to_owned()));
                refused += 1;
            }
        }
    }
    assert_eq!((served.len(), refused), (5, 35), "as many as there is room for upward, with the good client's");
    let page = in_time(tokio::task::spawn_blocking(move || answer(&mut connect(&admin), "/metrics"))).await.unwrap();
    assert!(page.contains("xds_relay_limit{limit=\"groups\"} 6\n"), "{page}");
    write(&mesh.join("a.yaml"), 2);
    is_told(&mut good).await;
    for call in &mut served {
        is_told(call).await;
    }
}
