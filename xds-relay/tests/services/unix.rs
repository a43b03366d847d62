//! Unix sockets on all sides: clients, the origin, the admin pages.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::server::UdsConnectInfo;
use xds_relay::{Config, Error, Relay};
use xdstp_client::{Client, Endpoint, Event, Watch};

use crate::stream::in_time;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

struct Serving {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), Error>>,
}

impl Serving {
    fn run(relay: Relay) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        Self { stop, running: tokio::spawn(relay.run(async { drop(stopped.await) })) }
    }

    async fn end(self) {
        drop(self.stop);
        in_time(self.running).await.unwrap().unwrap();
    }
}

fn config(directory: &Path, text: &str) -> Config {
    Config::parse(directory.join("relay.yaml"), text).unwrap()
}

fn serve_seconds(directory: &Path, seconds: u32) {
    let text = format!("resources: [{{ '@type': {CDS}, name: a, connect_timeout: {seconds}s }}]");
    fs::write(directory.join("new"), text).unwrap();
    fs::rename(directory.join("new"), directory.join("resources/a.yaml")).unwrap();
}

async fn version_of(watch: &mut Watch) -> String {
    match in_time(watch.changed()).await {
        Event::Put { version, .. } => version.to_string(),
        event => panic!("{event:?}"),
    }
}

#[tokio::test]
async fn relays_and_a_client_that_meet_at_unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    serve_seconds(directory, 1);
    let said = Arc::<Mutex<Vec<(String, bool)>>>::default();
    let saying = said.clone();
    let layer = from_fn(move |request: Request, next: Next| {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        saying.lock().unwrap().push((authority, request.extensions().get::<UdsConnectInfo>().is_some()));
        next.run(request)
    });
    let far = "listen: unix:far.sock\nadmin: unix:admin.sock\norigins: [{ name: files, files: resources }]";
    let far = Relay::builder(config(directory, far)).layer(layer).bind().await.unwrap();
    let address = format!("unix:{}", directory.join("far.sock").display());
    assert_eq!(far.listen_address().unwrap().to_string(), address);
    let far = Serving::run(far);
    let near = "listen: unix:near.sock\nadmin: none\norigins: [{ name: far, server: unix:far.sock }]";
    let near = Serving::run(Relay::bind(config(directory, near)).await.unwrap());

    let client = Client::connect(Endpoint::new(&format!("unix://{}", directory.join("near.sock").display())).unwrap());
    let mut clusters = client.watch(CDS, "a");
    let first = version_of(&mut clusters).await;
    serve_seconds(directory, 2);
    assert_ne!(version_of(&mut clusters).await, first, "an update goes all the way");
    assert_eq!(*said.lock().unwrap(), [("localhost".to_owned(), true)]);

    let text = page(directory, "/config_dump").await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("\"peer\": \"unix, process "), "{text}");

    let second =
        Relay::bind(config(directory, "listen: unix:far.sock\nadmin: none\norigins: [{ name: a, server: 'a:1' }]"));
    let Err(error) = second.await else { panic!("it is in use") };
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        (error.to_string(), source),
        (format!("cannot listen on {address} (listen)"), "another process listens on it".to_owned())
    );

    drop((client, clusters));
    near.end().await;
    far.end().await;
    for socket in ["near.sock", "far.sock", "admin.sock"] {
        assert!(!directory.join(socket).exists(), "{socket}");
    }
}

#[tokio::test]
async fn of_two_unix_sockets_the_second_serves_while_the_first_is_away() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    let far = async |socket: &str| {
        let text = format!("listen: unix:{socket}\nadmin: none\norigins: [{{ name: files, files: resources }}]");
        Serving::run(Relay::bind(config(directory, &text)).await.unwrap())
    };
    serve_seconds(directory, 1);
    let b = far("b.sock").await;
    let near = "listen: unix:near.sock\nadmin: unix:admin.sock\n\
                origins: [{ name: far, servers: [unix:a.sock, unix:b.sock] }]";
    let near = Serving::run(Relay::bind(config(directory, near)).await.unwrap());
    let client = Client::connect(Endpoint::new(&format!("unix:{}", directory.join("near.sock").display())).unwrap());
    let mut clusters = client.watch(CDS, "a");
    let first = version_of(&mut clusters).await;
    let at = |name: &str| format!("unix:{}", directory.join(name).display());
    let feeds = |name: &str, many| format!("in_use{{origin=\"far\",server=\"{}\"}} {many}\n", at(name));
    let metrics = page(directory, "/metrics").await;
    assert!(metrics.contains(&feeds("a.sock", 0)) && metrics.contains(&feeds("b.sock", 1)), "{metrics}");

    // The second is gone before there is something new, which the first has.
    b.end().await;
    serve_seconds(directory, 2);
    let a = far("a.sock").await;
    assert_ne!(version_of(&mut clusters).await, first);
    let metrics = page(directory, "/metrics").await;
    assert!(metrics.contains(&feeds("a.sock", 1)) && metrics.contains(&feeds("b.sock", 0)), "{metrics}");
    drop((client, clusters));
    near.end().await;
    a.end().await;
}

/// A page of the relay whose admin pages are at `admin.sock`.
async fn page(directory: &Path, path: &str) -> String {
    let mut connection = UnixStream::connect(directory.join("admin.sock")).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    in_time(connection.read_to_string(&mut text)).await.unwrap();
    text
}
