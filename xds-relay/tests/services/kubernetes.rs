//! A relay whose origin is Kubernetes: an API server that a test scripts. How it is listed and watched is tested beside the code.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use xdstp_client::{Client, Endpoint, Event, Watch};

use crate::Running;
use crate::pages::page;
use crate::stream::in_time;

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// What is in the one config map that there is, with the number of times that it changed: nothing while nobody may ask.
type Content = Option<(u32, String)>;

struct Cluster {
    address: SocketAddr,
    content: Arc<watch::Sender<Content>>,
}

impl Cluster {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, content) = (listener.local_addr().unwrap(), Arc::new(watch::Sender::new(None)));
        let of = content.clone();
        tokio::spawn(async move {
            while let Ok((io, _)) = listener.accept().await {
                // Who asked may be gone.
                tokio::spawn(answer(io, of.subscribe()));
            }
        });
        Self { address, content }
    }

    fn apply(&self, text: &str) {
        self.content.send_modify(|content| {
            let version = content.as_ref().map_or(0, |(version, _)| *version) + 1;
            *content = Some((version, text.to_owned()));
        });
    }

    async fn relay(&self) -> Running {
        self.relay_with("").await
    }

    /// The same, with more of the configuration.
    async fn relay_with(&self, more: &str) -> Running {
        let origins = format!("[{{ name: kube, kubernetes: {{ server: '{}', namespaces: [mesh] }} }}]", self.address);
        Running::start_with(&origins, more).await
    }

    /// Nobody may ask any more.
    fn forbid(&self) {
        self.content.send_replace(None);
    }
}

async fn answer(mut io: TcpStream, mut content: watch::Receiver<Content>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("GET /api/v1/namespaces/mesh/configmaps?"), "{head}");
    let Some((version, text)) = content.borrow_and_update().clone() else {
        let status = r#"{"kind":"Status","code":403,"message":"configmaps is forbidden"}"#;
        let length = status.len();
        return io
            .write_all(format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {length}\r\n\r\n{status}").as_bytes())
            .await;
    };
    io.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
    if !head.contains("watch=true") {
        let (metadata, item) = (serde_json::json!({ "resourceVersion": version.to_string() }), object(version, &text));
        let list = serde_json::json!({ "kind": "ConfigMapList", "metadata": metadata, "items": [item] });
        chunk(&mut io, &list.to_string()).await?;
        return chunk(&mut io, "").await;
    }
    let mut known: u32 = head.split("resourceVersion=").nth(1).unwrap().split('&').next().unwrap().parse().unwrap();
    loop {
        let now = content.borrow_and_update().clone();
        if let Some((version, text)) = now.filter(|(version, _)| *version > known) {
            known = version;
            let event = serde_json::json!({ "type": "MODIFIED", "object": object(version, &text) });
            chunk(&mut io, &format!("{event}\n")).await?;
        }
        if content.changed().await.is_err() {
            return Ok(());
        }
    }
}

fn object(version: u32, text: &str) -> serde_json::Value {
    let metadata = serde_json::json!({
        "name": "web", "namespace": "mesh", "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    serde_json::json!({ "metadata": metadata, "data": { "web.yaml": text } })
}

async fn chunk(io: &mut TcpStream, text: &str) -> std::io::Result<()> {
    io.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

/// Waits until a page says so.
async fn until(relay: &Running, path: &str, is_so: impl Fn(u16, &str) -> bool) -> String {
    in_time(async {
        loop {
            let (status, page) = page(relay, path).await;
            if is_so(status, &page) {
                return page;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// The version of the cluster that comes next.
async fn next(watch: &mut Watch) -> String {
    match in_time(watch.changed()).await {
        Event::Put { name, version, .. } => format!("{} {version}", name.as_str()),
        other => panic!("{other:?}"),
    }
}

fn web(version: u32) -> String {
    format!(
        "name: web\nversion: v{version}\nresource: {{ '@type': {CLUSTERS}, name: web, connect_timeout: {version}s }}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_starts_before_it_may_ask_is_not_ready_and_then_serves_what_is_applied() {
    let cluster = Cluster::start().await;
    let relay = cluster.relay().await;
    let mut watch = Client::connect(Endpoint::new(&relay.address.to_string()).unwrap()).watch(CLUSTERS, "web");
    let forbidden =
        "Kubernetes is away, and nothing is known: configmap/mesh: it says 403 Forbidden: configmaps is forbidden";
    until(&relay, "/api/v1/status", |_, page| page.contains(forbidden)).await;
    until(&relay, "/readyz", |status, page| status == 503 && page.contains("its content has not come yet")).await;
    assert!(watch.try_next().is_none(), "that it does not exist, for instance");
    cluster.apply(&web(1));
    assert_eq!(next(&mut watch).await, "web v1");
    until(&relay, "/readyz", |status, _| status == 200).await;
    until(&relay, "/metrics", |_, page| page.contains("xds_relay_kubernetes_origin_up{origin=\"kube\"} 1")).await;
    cluster.apply(&web(2));
    assert_eq!(next(&mut watch).await, "web v2");

    cluster.apply("resources: 5");
    let refused = "a value is refused: configmap/mesh/web/web.yaml: value:1:12: ";
    until(&relay, "/api/v1/status", |_, page| page.contains(refused)).await;
    let (_, told) = page(&relay, "/api/v1/status").await;
    let instead = "; its last good value counts, with envoy.config.cluster.v3.Cluster `web` in version ";
    assert!(told.contains(instead) && told.contains(" (refused for "), "{told}");
    until(&relay, "/", |_, page| page.contains(refused)).await;
    until(&relay, "/metrics", |_, page| page.contains("xds_relay_kubernetes_origin_refused_values{origin=\"kube\"} 1"))
        .await;
    assert!(watch.try_next().is_none());
    cluster.apply(&web(3));
    assert_eq!(next(&mut watch).await, "web v3");
    until(&relay, "/api/v1/status", |_, page| !page.contains("refused:")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_starts_again_before_it_may_ask_serves_what_was_applied() {
    let (cluster, directory) = (Cluster::start().await, tempfile::tempdir().unwrap());
    let state = format!("state: {{ path: '{}' }}", directory.path().display());
    cluster.apply(&web(1));
    let connect = |relay: &Running| Client::connect(Endpoint::new(&relay.address.to_string()).unwrap());
    let mut relay = cluster.relay_with(&state).await;
    let client = connect(&relay);
    let mut watch = client.watch(CLUSTERS, "web");
    assert_eq!(next(&mut watch).await, "web v1");
    cluster.apply("resources: 5");
    until(&relay, "/api/v1/status", |_, page| page.contains("a value is refused")).await;
    drop((watch, client));
    relay.stop();
    relay.stopped().await;

    cluster.forbid();
    let mut relay = cluster.relay_with(&format!("{state}\nready_when: origins")).await;
    let client = connect(&relay);
    let [mut watch, mut other] = ["web", "other"].map(|name| client.watch(CLUSTERS, name));
    assert_eq!(next(&mut watch).await, "web v1");
    let words = "Kubernetes is away, and what it had before a restart is served: configmap/mesh: it says 403 Forbidden";
    for path in ["/", "/api/v1/status"] {
        until(&relay, path, |_, page| page.contains(words)).await;
    }
    until(&relay, "/readyz", |status, page| status == 503 && page.contains("is from before a restart")).await;
    for metric in ["stale_resources{origin=\"kube\"} 1", "kubernetes_origin_up{origin=\"kube\"} 0", "stale_seconds "] {
        until(&relay, "/metrics", |_, page| page.contains(&format!("xds_relay_{metric}"))).await;
    }
    assert!(other.try_next().is_none(), "that it does not exist, for instance");
    drop((watch, other, client));
    relay.stop();
    relay.stopped().await;

    // What is bad there is in the place of what was good, still.
    cluster.apply("resources: 5");
    let relay = cluster.relay_with(&format!("{state}\nready_when: last_known_good")).await;
    let client = connect(&relay);
    let [mut watch, mut other] = ["web", "other"].map(|name| client.watch(CLUSTERS, name));
    assert_eq!(next(&mut watch).await, "web v1");
    let said = in_time(other.changed()).await;
    assert!(matches!(said, Event::Removed { .. } | Event::Failed { .. }), "the origin says so: {said:?}");
    until(&relay, "/readyz", |status, _| status == 200).await;
    until(&relay, "/metrics", |_, page| page.contains("xds_relay_stale_resources{origin=\"kube\"} 0")).await;
    cluster.apply(&web(3));
    assert_eq!(next(&mut watch).await, "web v3");
}
