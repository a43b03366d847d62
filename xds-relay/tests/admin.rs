//! The admin pages through a real socket.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "the helpers of these tests")]

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use xds_relay::{
    admin::{
        self, ClientDump, ClientTypeDump, ConfigDump, ContentDump, ContentResourceDump, Inspect, NackDump, OriginDump,
        Readiness, ResourceDump, ScopeDump, ScopeTypeDump, UpstreamDump,
    },
    api::{
        Client, ClientQuery, ClientRow, Clients, ExplainQuery, Explained, HeldResource, NameQuery, Named, Origins,
        ResourceQuery, ResourceRow, Resources, Status,
    },
    config::LogFilter,
    metrics::{Gauges, Metrics},
};

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);

struct Relay {
    readiness: Readiness,
    metrics: Metrics,
}

impl Inspect for Relay {
    fn ready(&self) -> Readiness {
        self.readiness.clone()
    }

    fn config_dump(&self) -> ConfigDump {
        let resource =
            |name: &str| ResourceDump { name: name.to_owned(), version: "7".to_owned(), ..ResourceDump::default() };
        ConfigDump {
            state: None,
            instance: "0123456789abcdef".to_owned(),
            origins: vec![OriginDump {
                name: "up".to_owned(),
                protocol: "delta".to_owned(),
                streams: vec![UpstreamDump {
                    group: "xdstp".to_owned(),
                    connected: false,
                    relays: None,
                    hint: None,
                    retry_in_seconds: None,
                    last_error: Some("refused".to_owned()),
                    servers: Vec::new(),
                    subscriptions: 2,
                }],
                content: vec![ContentDump {
                    type_url: CLUSTER.to_owned(),
                    resources: ["hello", "other"]
                        .map(|name| ContentResourceDump { name: name.to_owned(), ..ContentResourceDump::default() })
                        .into(),
                }],
            }],
            scopes: vec![ScopeDump {
                scope: "example.com".to_owned(),
                stale: 0,
                types: vec![
                    ScopeTypeDump {
                        type_url: CLUSTER.to_owned(),
                        resources: vec![resource("hello"), resource("other")],
                        absent: vec!["gone".to_owned()],
                        ..ScopeTypeDump::default()
                    },
                    ScopeTypeDump {
                        type_url: ENDPOINTS.to_owned(),
                        resources: vec![resource("hello")],
                        ..ScopeTypeDump::default()
                    },
                ],
            }],
            clients: vec![ClientDump {
                peer: "127.0.0.1:5".to_owned(),
                node_id: "envoy-1".to_owned(),
                protocol: "sotw".to_owned(),
                busy: false,
                types: vec![ClientTypeDump {
                    type_url: CLUSTER.to_owned(),
                    wildcard: true,
                    nacked: 1,
                    last_nack: Some(NackDump { message: "no".to_owned(), seconds_ago: 3 }),
                    ..ClientTypeDump::default()
                }],
            }],
        }
    }

    fn status(&self) -> Status {
        Status { version: "1".to_owned(), ..Status::default() }
    }

    fn origins(&self) -> Origins {
        Origins::default()
    }

    fn clients(&self, query: &ClientQuery) -> Clients {
        let row = ClientRow { id: 7, node: query.node.clone().unwrap_or_default(), ..ClientRow::default() };
        Clients { clients: vec![row], next: query.after }
    }

    fn client(&self, id: u64, query: &ExplainQuery) -> Option<Client> {
        let explained = Explained { name: query.name.clone()?, wanted_as: query.name.clone(), ..Explained::default() };
        let [some, other] = ["prod", "<qa>"].map(|env| Explained {
            parameters: Some(format!("{{env={env}}}")),
            variant: Some(format!("env={env}")),
            ..explained.clone()
        });
        (id == 7).then(|| Client { explained: Some(some), also_explained: vec![other], ..Client::default() })
    }

    fn resources(&self, query: &ResourceQuery) -> Resources {
        Resources { next: query.after.clone(), ..Resources::default() }
    }

    fn resource(&self, query: &NameQuery) -> Named {
        let row = ResourceRow { name: query.name.clone(), ..ResourceRow::default() };
        Named { held: vec![HeldResource { row, ..HeldResource::default() }] }
    }

    fn log(&self) -> Option<LogFilter> {
        Some(LogFilter::default())
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            ready: true,
            resources: BTreeMap::from([(CLUSTER.to_owned(), 2)]),
            subscribers: 1,
            bodies: 1,
            ..Gauges::default()
        }
    }
}

struct Admin {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

async fn admin(readiness: Readiness) -> Admin {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let relay = Arc::new(Relay { readiness, metrics: Metrics::new([]) });
    let served =
        tokio::spawn(admin::serve(listener, relay, Duration::from_secs(60), vec!["admin".to_owned()], async {
            drop(stopped.await);
        }));
    Admin { address, stop, served }
}

impl Admin {
    /// Status, header and body.
    async fn request(&self, method: &str, path: &str) -> (u16, String, String) {
        self.request_of("admin", method, path).await
    }

    async fn request_of(&self, host: &str, method: &str, path: &str) -> (u16, String, String) {
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = timeout(PATIENCE, exchange).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    async fn dump(&self, query: &str) -> serde_json::Value {
        let (status, head, body) = self.request("GET", &format!("/config_dump{query}")).await;
        assert_eq!(status, 200, "{body}");
        assert!(head.contains("content-type: application/json"), "{head}");
        serde_json::from_str(&body).unwrap()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.served).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_index_lists_pages_that_exist() {
    let admin = admin(Readiness::Ready).await;
    let (status, head, body) = admin.request("GET", "/").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html"), "{head}");
    let links = body.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let paths: Vec<&str> = links.filter(|link| !link.starts_with('#')).collect();
    assert!(paths.len() >= 4, "{body}");
    for path in paths {
        assert_eq!(admin.request("GET", path).await.0, 200, "{path}");
    }
    admin.stop().await;
}

#[tokio::test]
async fn a_page_shows_what_the_json_tells_once_for_each_set_of_parameters() {
    let admin = admin(Readiness::Ready).await;
    let (status, head, body) = admin.request("GET", "/clients/7?type=x/y&name=a%20b").await;
    assert!(status == 200 && head.contains("content-type: text/html"), "{head}");
    for words in ["{env=prod}", "env=prod", "{env=&lt;qa&gt;}", "env=&lt;qa&gt;", "/resource?type=&amp;name=a%20b"] {
        assert!(body.contains(words), "{words}: {body}");
    }
    assert_eq!(body.matches("<dt>Variant</dt>").count(), 2, "{body}");
    assert!(body.contains("href=\"/api/v1/clients/7?type=x/y&amp;name=a%20b\""), "{body}");
    assert_eq!(admin.request("GET", "/clients/8?name=a").await.0, 404);
    admin.stop().await;
}

/// A page in a browser may lead its own name to this address, and read what is answered to it.
#[tokio::test]
async fn only_health_is_told_to_who_reaches_the_pages_by_another_name() {
    let admin = admin(Readiness::Ready).await;
    for page in ["/", "/config_dump", "/metrics"] {
        for host in ["admin", "127.0.0.1:18001", "[::1]"] {
            assert_eq!(admin.request_of(host, "GET", page).await.0, 200, "{host}{page}");
        }
        for host in ["evil.example", "", "admin\r\nhost: evil.example"] {
            let (status, _, body) = admin.request_of(host, "GET", page).await;
            assert_eq!(status, 421, "{host}{page}");
            assert!(body.contains("admin_hosts"), "{body}");
        }
    }
    for page in ["/healthz", "/readyz"] {
        assert_eq!(admin.request_of("pod.example", "GET", page).await.0, 200, "{page}");
    }
    admin.stop().await;
}

/// Its pings would keep a connection on which nothing is answered.
#[tokio::test]
async fn a_connection_of_http_2_is_closed_without_a_word() {
    let admin = admin(Readiness::Ready).await;
    let mut stream = TcpStream::connect(admin.address).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let read = timeout(PATIENCE, stream.read(&mut [0])).await.unwrap();
    // Closed either way: the rest of what it said may not have been read.
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(admin.request("GET", "/readyz").await.0, 200);
    admin.stop().await;
}

/// They would take the descriptors that the relay needs for its origins.
#[tokio::test]
async fn of_many_connections_the_oldest_make_room_for_the_next() {
    let admin = admin(Readiness::Ready).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(admin.address).await.unwrap());
        assert_eq!(admin.request("GET", "/readyz").await.0, 200);
    }
    for stream in &mut idle[..80] {
        assert_eq!(timeout(PATIENCE, stream.read(&mut [0])).await.unwrap().unwrap(), 0);
    }
    let newest = idle.last_mut().unwrap();
    newest.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await.unwrap();
    assert_ne!(timeout(PATIENCE, newest.read(&mut [0])).await.unwrap().unwrap(), 0);
    drop(idle);
    admin.stop().await;
}

#[tokio::test]
async fn an_unknown_page_is_answered_with_the_list() {
    let admin = admin(Readiness::Ready).await;
    let (status, _, body) = admin.request("GET", "/clusters").await;
    assert_eq!(status, 404);
    assert!(body.contains("/config_dump"), "{body}");
    assert_eq!(admin.request("POST", "/healthz").await.0, 405, "nothing can be changed here");
    assert_eq!(admin.request("GET", "/log_level/debug").await.0, 405, "a look changes nothing");
    assert_eq!(admin.request("POST", "/log_level/debug").await.0, 404, "it is not this relay that says what is logged");
    assert_eq!(admin.request("GET", "/log_level").await.2, admin.request("GET", "/logging").await.2);
    admin.stop().await;
}

#[tokio::test]
async fn a_process_that_is_not_ready_is_healthy_and_says_why() {
    let admin = admin(Readiness::NotReady("origin `up` was never reached".to_owned())).await;
    assert_eq!(admin.request("GET", "/healthz").await.0, 200);
    let (status, _, body) = admin.request("GET", "/readyz").await;
    assert_eq!((status, body.as_str()), (503, "not ready: origin `up` was never reached\n"));
    admin.stop().await;
}

#[tokio::test]
async fn readiness_is_200() {
    let admin = admin(Readiness::Ready).await;
    let (status, _, body) = admin.request("GET", "/readyz").await;
    assert_eq!((status, body.as_str()), (200, "ready\n"));
    admin.stop().await;
}

#[tokio::test]
async fn the_dump_shows_origins_resources_and_clients() {
    let admin = admin(Readiness::Ready).await;
    let dump = admin.dump("").await;
    assert_eq!(dump["origins"][0]["streams"][0]["last_error"], "refused");
    assert_eq!(dump["scopes"][0]["types"][0]["resources"][1]["name"], "other");
    assert_eq!(dump["scopes"][0]["types"][0]["resources"][1]["version"], "7");
    assert_eq!(dump["clients"][0]["types"][0]["last_nack"]["message"], "no");
    admin.stop().await;
}

#[tokio::test]
async fn the_dump_can_be_narrowed_to_a_type_and_a_name() {
    let admin = admin(Readiness::Ready).await;
    for query in ["?type=Cluster", "?type=envoy.config.cluster.v3.Cluster", &format!("?type={CLUSTER}")] {
        let dump = admin.dump(query).await;
        let types = dump["scopes"][0]["types"].as_array().unwrap();
        assert_eq!(types.len(), 1, "{query}");
        assert_eq!(types[0]["type_url"], CLUSTER);
    }
    assert!(admin.dump("?type=luster").await["scopes"].as_array().unwrap().is_empty(), "not the end of a type's name");

    let dump = admin.dump("?name=hell").await;
    assert_eq!(dump["scopes"][0]["types"][0]["resources"].as_array().unwrap().len(), 1);
    assert_eq!(dump["scopes"][0]["types"][1]["resources"].as_array().unwrap().len(), 1);
    assert_eq!(dump["clients"][0]["node_id"], "envoy-1", "a wildcard wants every name");
    assert_eq!(dump["origins"][0]["content"][0]["resources"].as_array().unwrap().len(), 1);

    let dump = admin.dump("?type=ClusterLoadAssignment&name=gone").await;
    assert!(dump["scopes"].as_array().unwrap().is_empty());
    assert!(dump["clients"].as_array().unwrap().is_empty());
    assert_eq!(dump["origins"][0]["name"], "up", "where it should have come from stays");

    assert_eq!(admin.request("GET", "/config_dump?nmae=x").await.0, 400);
    admin.stop().await;
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let admin = admin(Readiness::Ready).await;
    let (status, head, body) = admin.request("GET", "/metrics").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(body.contains("xds_relay_subscribers 1\n"), "{body}");
    assert!(body.contains("xds_relay_resources{type=\"envoy.config.cluster.v3.Cluster\"} 2\n"), "{body}");
    admin.stop().await;
}

#[tokio::test]
async fn the_api_answers_with_json_and_refuses_what_it_does_not_know() {
    let admin = admin(Readiness::Ready).await;
    for (path, key, value) in [
        ("status", "version", "\"1\""),
        ("clients?node=a&after=3", "next", "3"),
        ("clients?state=REJECTED", "clients", "[{"),
        ("clients/7?type=x/y&name=a%20b", "explained", "{\"type_url\":\"\",\"name\":\"a b\""),
        ("resources?after=1.2.3&limit=5&search=a", "next", "\"1.2.3\""),
        ("resource?type=x/y&name=n", "held", "[{"),
    ] {
        let (status, head, body) = admin.request("GET", &format!("/api/v1/{path}")).await;
        assert!(status == 200 && head.contains("content-type: application/json"), "{path}: {head}");
        assert!(body.contains(&format!("\"{key}\":{value}")), "{path}: {body}");
    }
    for (path, expected) in [
        ("clients/8?name=a", 404),
        ("clients/x", 400),
        ("clients?state=GONE", 400),
        ("clients?sttae=SYNCED", 400),
        ("resource?type=x", 400),
        ("resources?limit=-1", 400),
    ] {
        assert_eq!(admin.request("GET", &format!("/api/v1/{path}")).await.0, expected, "{path}");
    }
    assert_eq!(admin.request_of("evil.example", "GET", "/api/v1/status").await.0, 421);
    admin.stop().await;
}
