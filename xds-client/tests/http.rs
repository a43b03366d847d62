//! Documents of servers of HTTP on the loopback, which play a script. Nothing waits for a time: documents are asked for when a test
//! says so, at the time that it says, or a watch is awaited.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod site;

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use xds_transport::wire::{self, Any};
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::federation::Held;
use xdstp_client::test::Network;
use xdstp_client::{Client, Content, Decode, DiscoveryResponse, Error, Event, Http, Watch};

use site::{Play, Site};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const PROTO: &str = "application/x-protobuf";

/// Clusters of these names.
fn content(names: &[&str]) -> Vec<u8> {
    let cluster = |name: &&str| {
        let value = Bytes::from([&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat());
        Any { type_url: CLUSTERS.into(), value }
    };
    let (resources, type_url) = (names.iter().map(cluster).collect(), CLUSTERS.into());
    wire::DiscoveryResponse { resources, type_url, ..Default::default() }.encode_to_vec()
}

/// Those, with a stamp.
fn found(etag: &str, names: &[&str]) -> Play {
    Play::answer("200 OK", &[("content-type", PROTO), ("etag", etag)], &content(names))
}

fn status(status: &str) -> Play {
    Play::answer(status, &[], b"")
}

struct World {
    site: Site,
    http: Http,
    client: Client,
    now: Instant,
}

impl World {
    async fn new(plays: impl IntoIterator<Item = Play>) -> Self {
        Self::by(plays, DiscoveryResponse::default()).await
    }

    async fn by(plays: impl IntoIterator<Item = Play>, decode: impl Decode) -> Self {
        let site = Site::play(plays).await;
        let http = Http::of([site.server()], decode).unwrap().by_hand();
        let client = client(http.clone());
        Self { site, http, client, now: Instant::now() }
    }

    fn watch(&self) -> Watch {
        self.client.watch(CLUSTERS, &all(&self.site))
    }

    /// What a watch says after the document was asked for, which is once more than half a minute has passed.
    async fn after_a_while(&mut self, watch: &mut Watch) -> Vec<String> {
        self.after(40, watch).await
    }

    async fn after(&mut self, seconds: u64, watch: &mut Watch) -> Vec<String> {
        self.now += Duration::from_secs(seconds);
        self.http.look(self.now).await;
        told(watch)
    }
}

fn client(http: Http) -> Client {
    let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    Client::builder(bootstrap).transport(Network::new(Instant::now())).http(http).build().unwrap()
}

fn all(site: &Site) -> String {
    format!("http://{}/envoy.config.cluster.v3.ClusterCollection/all?a=1", site.address())
}

fn told<R: Content>(watch: &mut Watch<R>) -> Vec<String> {
    std::iter::from_fn(|| watch.try_next()).map(|event| words(&event)).collect()
}

fn words<R>(event: &Event<R>) -> String {
    match event {
        Event::Put { name, .. } => format!("put {name}"),
        Event::Removed { name } => format!("removed {name}"),
        Event::Failed { error: Error::Unreachable { reason, .. }, .. } => format!("failed: {reason}"),
        Event::Ambient { error: Some(Error::Unreachable { reason, .. }), .. } => format!("ambient: {reason}"),
        Event::Failed { error: Error::Invalid { reason, .. }, .. } => format!("invalid: {reason}"),
        Event::Ambient { error: Some(Error::Invalid { reason, .. }), .. } => format!("invalid, and used on: {reason}"),
        Event::Failed { error, .. } => format!("failed: {error}"),
        Event::Ambient { error: Some(error), .. } => format!("ambient: {error}"),
        Event::Ambient { error: None, .. } => "cleared".to_owned(),
        Event::Answered => "answered".to_owned(),
        _ => "something else".to_owned(),
    }
}

#[tokio::test]
async fn a_document_comes_stays_as_it_is_changes_goes_and_comes_back() {
    let plays = [found("\"1\"", &["a", "b"]), status("304 Not Modified"), found("\"2\"", &["b", "c"])];
    let gone = [status("404 Not Found"), found("\"2\"", &["c"]), status("410 Gone")];
    let mut world = World::new(plays.into_iter().chain(gone)).await;
    let mut watch = world.watch();
    assert_eq!(world.after(0, &mut watch).await, ["put a", "put b", "answered"]);
    assert_eq!(world.after(1, &mut watch).await, [""; 0], "it is not asked for again at once");
    assert_eq!(world.after_a_while(&mut watch).await, [""; 0], "it is as it was");
    assert_eq!(world.after_a_while(&mut watch).await, ["put c", "removed a"]);
    assert_eq!(world.after_a_while(&mut watch).await, ["failed: it does not exist"]);
    assert_eq!(world.after_a_while(&mut watch).await, ["put c", "answered"]);
    assert_eq!(world.after_a_while(&mut watch).await, ["failed: it does not exist"]);
    let asked = world.site.asked();
    let stamps: Vec<_> = asked.iter().map(|head| head.field("if-none-match")).collect();
    assert_eq!(stamps, [None, Some("\"1\""), Some("\"1\""), Some("\"2\""), None, Some("\"2\"")]);
    let line = "GET /envoy.config.cluster.v3.ClusterCollection/all?a=1 HTTP/1.1";
    assert!(asked.iter().all(|head| head.line() == line && head.field("host") == Some(&*world.site.address())));
}

#[tokio::test]
async fn where_there_is_no_etag_the_time_of_the_last_change_is_asked_by() {
    let at = "Fri, 27 Nov 2026 10:00:00 GMT";
    let dated = [("content-type", PROTO), ("last-modified", at)];
    let plays = [Play::answer("200 OK", &dated, &content(&["a"])), status("304 Not Modified")];
    let mut world = World::new(plays).await;
    let mut watch = world.watch();
    assert_eq!(world.after(0, &mut watch).await, ["put a", "answered"]);
    assert_eq!(world.after_a_while(&mut watch).await, [""; 0]);
    let asked = world.site.asked();
    assert_eq!([None, Some(at)], [0, 1].map(|nth: usize| asked[nth].field("if-modified-since")));
}

#[tokio::test]
async fn an_error_takes_nothing_away_whatever_it_is() {
    let cut = Play::raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 500\r\n\r\n\x22");
    let cut_chunk = Play::raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n\x22");
    let endless = Play::raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n\r\n");
    let errors = [
        (status("503 Service Unavailable"), "it answered 503 Service Unavailable"),
        (status("403 Forbidden"), "it answered 403 Forbidden"),
        (status("204 No Content"), "it answered 204 No Content"),
        (Play::answer("302 Found", &[("location", "http://evil/x")], b""), "which leads to http://evil/x: redirects"),
        (Play::HangUp, "it broke off: "),
        (Play::raw(b"SSH-2.0-OpenSSH\r\n\r\n"), "it broke off: "),
        (cut, "it broke off: "),
        (cut_chunk, "it broke off: "),
        (endless, "it does not say how long its answer is"),
        (Play::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"), "it has more than 67108864 bytes"),
        (Play::raw(&[&b"HTTP/1.1 200 OK\r\nx: "[..], &[b'x'; 70_000]].concat()), "it broke off: "),
    ];
    for (error, reason) in errors {
        let mut world = World::new([found("\"1\"", &["a"]), error, status("304 Not Modified")]).await;
        let mut watch = world.watch();
        assert_eq!(world.after(0, &mut watch).await, ["put a", "answered"]);
        let heard = world.after_a_while(&mut watch).await;
        assert!(
            heard.len() == 1 && heard[0].starts_with("ambient: ") && heard[0].contains(reason),
            "{heard:?} {reason}"
        );
        assert_eq!(world.after_a_while(&mut watch).await, ["cleared"], "{reason}");
        assert_eq!(world.site.asked()[2].field("if-none-match"), Some("\"1\""), "{reason}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_that_names_the_place_and_the_last_stays() {
    let page = Play::answer("200 OK", &[("content-type", "text/html"), ("etag", "\"2\"")], b"<html>");
    let noise = Play::answer("200 OK", &[("content-type", PROTO)], b"\xff");
    let [first, again, new] = [("\"1\"", "a"), ("\"3\"", "a"), ("\"4\"", "b")].map(|(tag, of)| found(tag, &[of]));
    let plays = [first, page, status("500 Oh"), status("304 Not Modified"), noise, again, new];
    let mut world = World::new(plays).await;
    let (mut watch, at) = (world.watch(), all(&world.site));
    assert_eq!(world.after(0, &mut watch).await, ["put a", "answered"]);
    let of_page = format!("invalid, and used on: {at}: it is text/html; expected protobuf, JSON or YAML");
    assert_eq!(world.after_a_while(&mut watch).await, [&*of_page]);
    assert!(world.after_a_while(&mut watch).await.iter().any(|told| told.starts_with("ambient: it answered 500")));
    // It is the same page still.
    assert_eq!(world.after_a_while(&mut watch).await, [&*of_page]);
    let heard = world.after_a_while(&mut watch).await;
    assert!(heard.len() == 1 && heard[0].starts_with(&format!("invalid, and used on: {at}: ")), "{heard:?}");
    assert_eq!(world.after_a_while(&mut watch).await, ["cleared"], "it has what it had before");
    assert_eq!(world.after_a_while(&mut watch).await, ["put b", "removed a"]);
}

#[tokio::test]
async fn a_document_is_read_by_the_name_that_its_type_gives_it() {
    let reads = |file: &Path, content: &[u8]| -> Result<Vec<Held>, String> {
        assert!(content != b"panic", "on purpose");
        Err(format!("{} is not read here", file.display()))
    };
    let of = |content_type: &str, body: &[u8]| Play::answer("200 OK", &[("content-type", content_type)], body);
    let plays = [of("application/json", b"{}"), of("application/yaml; charset=utf-8", b""), of(PROTO, b"panic")];
    let mut world = World::by(plays, reads).await;
    let (mut watch, at) = (world.watch(), all(&world.site));
    let mut next = async || world.after_a_while(&mut watch).await.pop().unwrap();
    assert_eq!(next().await, format!("invalid: {at}: all.json is not read here"));
    assert_eq!(next().await, format!("invalid: {at}: all.yaml is not read here"));
    assert_eq!(next().await, format!("invalid: {at}: what reads it failed (it panicked)"));
}

#[tokio::test]
async fn nobody_is_asked_but_the_servers_that_the_program_names() {
    let world = World::new([]).await;
    let other = Site::play([]).await;
    for at in [all(&other), "http://localhost/envoy.config.cluster.v3.ClusterCollection/all".to_owned()] {
        let mut watch = world.client.watch(CLUSTERS, &at);
        world.http.look(world.now).await;
        assert_eq!(told(&mut watch), ["failed: it is not on a server of which documents are fetched"], "{at}");
    }
    assert!(other.asked().is_empty() && world.site.asked().is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_asked_again_soon_and_no_sooner_than_it_says() {
    let busy = Play::answer("503 Busy", &[("retry-after", "120")], b"");
    let mut world = World::new([busy, found("\"1\"", &["a"])]).await;
    let mut watch = world.watch();
    assert_eq!(world.after(0, &mut watch).await, ["failed: it answered 503 Service Unavailable"]);
    assert_eq!(world.after(119, &mut watch).await, [""; 0]);
    assert_eq!(world.after(1, &mut watch).await, ["cleared", "put a", "answered"]);

    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = Http::of([format!("http://{gone}")], DiscoveryResponse::default()).unwrap().by_hand();
    let client = client(http.clone());
    let mut watch = client.watch(CLUSTERS, &format!("http://{gone}/envoy.config.cluster.v3.Cluster/x"));
    http.look(world.now).await;
    assert!(told(&mut watch)[0].contains("refused"));
}

/// Time passes when there is nothing else to do.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_not_waited_for_for_ever() {
    for play in [Play::Hang(b""), Play::Hang(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n\x22")] {
        let mut world = World::new([play]).await;
        let mut watch = world.watch();
        assert_eq!(world.after(0, &mut watch).await, ["failed: it has not answered within 30s"]);
    }
}

#[tokio::test]
async fn one_resource_is_what_a_locator_of_its_type_leads_to() {
    let mut world = World::new([found("\"1\"", &["a"]), status("404 Not Found")]).await;
    let at = format!("http://{}/envoy.config.cluster.v3.Cluster/x", world.site.address());
    let mut watch = world.client.watch(CLUSTERS, &at);
    assert_eq!(world.after(0, &mut watch).await, [format!("put {at}")]);
    assert_eq!(world.after_a_while(&mut watch).await, ["failed: it does not exist"]);
}

#[tokio::test]
async fn documents_are_asked_for_by_themselves_for_as_long_as_they_are_watched() {
    let site = Site::play([found("\"1\"", &["a"]), status("304 Not Modified"), found("\"2\"", &["b"])]).await;
    let http = Http::of([site.server()], DiscoveryResponse::default()).unwrap().every(Duration::from_millis(1));
    let client = client(http);
    let mut watch = client.watch(CLUSTERS, &all(&site));
    for expected in ["put a", "answered", "put b", "removed a"] {
        assert_eq!(words(&watch.changed().await), expected);
    }
    // The script is over, and what comes now is an error.
    assert!(words(&watch.changed().await).starts_with("ambient: "));
    drop(watch);
    client.sweep(Instant::now());
    // Opened anew after all were closed: nothing is known.
    let mut watch = client.watch(CLUSTERS, &all(&site));
    assert!(words(&watch.changed().await).starts_with("failed: "));
}
