//! A stranger goes to each limit beside a good client: he is told which and how much may be, it is counted, and the good client
//! goes on.

use std::path::PathBuf;

use bytes::Bytes;
use prost::Message;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};

use crate::Running;
use crate::health::{SERVING, WATCH, asked};
use crate::limits::{CLUSTERS, call, counted, relay, write};
use crate::loops::page;
use crate::stream::{Call, framed, in_time};

/// A request for some names of a type.
struct Ask {
    node: String,
    type_url: String,
    names: Vec<String>,
    /// What it says it holds.
    held: Vec<String>,
}

/// A client that is there before the stranger.
struct Good {
    call: Call,
    file: PathBuf,
}

fn ask(type_url: &str, names: &[&str]) -> Ask {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Ask { node: String::new(), type_url: type_url.to_owned(), names, held: Vec::new() }
}

fn ask_holding(type_url: &str, names: &[&str], held: &[&str]) -> Ask {
    Ask { held: held.iter().map(|name| (*name).to_owned()).collect(), ..ask(type_url, names) }
}

/// Of authorities that nobody configured: they are the default origin's.
fn of_authorities(count: usize) -> Vec<Ask> {
    (0..count).map(|at| ask(CLUSTERS, &[&format!("xdstp://a{at}/envoy.config.cluster.v3.Cluster/x")])).collect()
}

fn of_node(id: String) -> Ask {
    Ask { node: id, ..ask(CLUSTERS, &["a"]) }
}

impl Ask {
    async fn send(self, call: &mut Call) {
        let node = Node { id: self.node, ..Node::default() }.encode_to_vec().into();
        let Self { type_url, names: resource_names_subscribe, held, .. } = self;
        let held_at = |name: String| {
            let name = name.into_bytes();
            Bytes::from([&[0x0a, name.len() as u8], name.as_slice(), b"\x12\x01v"].concat())
        };
        let initial_resource_versions = held.into_iter().map(held_at).collect();
        let request = DeltaDiscoveryRequest {
            node,
            type_url,
            resource_names_subscribe,
            initial_resource_versions,
            ..Default::default()
        };
        call.send(framed(&request.encode_to_vec())).await;
    }
}

async fn response(call: &mut Call) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse::decode(call.message().await.expect("the stream goes on")).unwrap()
}

impl Good {
    async fn new(relay: &Running, file: PathBuf) -> Self {
        let mut call = call(relay.address).await;
        of_node("good".to_owned()).send(&mut call).await;
        assert_eq!(response(&mut call).await.resources.len(), 1);
        Self { call, file }
    }

    /// It is told of a change, and loses nothing.
    async fn goes_on(&mut self) {
        write(&self.file, "connect_timeout: 2s");
        let response = response(&mut self.call).await;
        let names: Vec<_> = response.resources.iter().map(|resource| resource.name.as_str()).collect();
        assert_eq!((names.as_slice(), response.removed_resources.is_empty()), (["a"].as_slice(), true));
    }
}

async fn meets(limits: &str, key: &str, words: &str, streams: Vec<Vec<Ask>>) {
    let (relay, directory) = relay(limits).await;
    meets_at(&relay, directory.path().join("a.yaml"), key, words, streams).await;
}

/// What the stranger opens, one stream after the other: those before the last are served.
async fn meets_at(relay: &Running, file: PathBuf, key: &str, words: &str, streams: Vec<Vec<Ask>>) {
    let mut good = Good::new(relay, file).await;
    let last = streams.len() - 1;
    let mut calls = Vec::new();
    for (at, asks) in streams.into_iter().enumerate() {
        let mut call = call(relay.address).await;
        for ask in asks {
            ask.send(&mut call).await;
        }
        if at == last {
            assert_eq!(call.status().await, (8, format!("{words} (limits.{key} of the relay)")));
        } else {
            response(&mut call).await;
        }
        calls.push(call);
    }
    counted(relay, key, 1).await;
    good.goes_on().await;
}

#[tokio::test]
async fn rule_132_of_what_one_stream_asks_for() {
    meets(
        "names_per_stream: 3",
        "names_per_stream",
        "more than 3 names on one stream",
        vec![vec![ask(CLUSTERS, &["a", "b", "c", "d"])]],
    )
    .await;
    meets(
        "names_per_stream: 3",
        "names_per_stream",
        "more than 3 names on one stream",
        vec![vec![ask_holding(CLUSTERS, &["a"], &["a", "b"]), ask_holding("T", &["a"], &["a", "b"])]],
    )
    .await;
    meets(
        "types_per_stream: 2",
        "types_per_stream",
        "more than 2 types on one stream",
        vec![["A", "B", "C"].map(|of| ask(of, &["a"])).into()],
    )
    .await;
    meets(
        "authorities_per_stream: 2",
        "authorities_per_stream",
        "more than 2 authorities on one stream",
        vec![of_authorities(3)],
    )
    .await;
    meets(
        "requests_per_second: 5",
        "requests_per_second",
        "more requests on one stream than 5 at once and one every 200ms",
        vec![(0..1000).map(|_| ask(CLUSTERS, &["a"])).collect()],
    )
    .await;
}

/// The good client has one of each.
#[tokio::test]
async fn rule_132_of_what_all_streams_ask_for() {
    let names = ["a", "b", "c"];
    meets(
        "names: 3",
        "names",
        "more than 3 names",
        vec![vec![ask(CLUSTERS, &names[..1])], vec![ask(CLUSTERS, &names)]],
    )
    .await;
    // What a client holds counts until it is compared, each of which is when its stream is answered.
    meets(
        "names: 5",
        "names",
        "more than 5 names",
        (0..4).map(|_| vec![ask_holding(CLUSTERS, &["a"], &["a"])]).collect(),
    )
    .await;
    meets("authorities: 2", "authorities", "more than 2 authorities", vec![of_authorities(3)]).await;
    let streams = (0..2).map(|_| vec![ask(CLUSTERS, &["a"])]).collect();
    meets("streams: 2", "streams", "more than 2 streams", streams).await;
}

#[tokio::test]
async fn rule_136_streams_come_so_many_a_second() {
    let (relay, directory) = relay("new_streams_per_second: 1").await;
    let mut good = Good::new(&relay, directory.path().join("a.yaml")).await;
    let refused = async {
        loop {
            let mut call = call(relay.address).await;
            ask(CLUSTERS, &["a"]).send(&mut call).await;
            // On a slow machine this is another second.
            if !call.response().await.contains_key("grpc-status") {
                continue;
            }
            return counted(&relay, "new_streams_per_second", 1).await;
        }
    };
    in_time(refused).await;
    good.goes_on().await;
}

#[tokio::test]
async fn rule_132_of_how_long_a_node_and_a_type_may_be() {
    let long = "n".repeat(1024);
    let words = "a node of 1027 bytes, 1024 are taken";
    meets("node_bytes: 1 KiB", "node_bytes", words, vec![vec![of_node(long.clone())]]).await;
    let words = "a type URL of 1025 bytes, 1024 are taken";
    meets("name_bytes: 1 KiB", "name_bytes", words, vec![vec![ask(&format!("{long}n"), &["a"])]]).await;
}

/// It ends nothing, not even of the stranger.
#[tokio::test]
async fn rule_109_a_name_that_is_too_long_is_one_of_nothing() {
    let (relay, directory) = relay("name_bytes: 1 KiB").await;
    let mut good = Good::new(&relay, directory.path().join("a.yaml")).await;
    let mut stranger = call(relay.address).await;
    let long = "n".repeat(1025);
    ask(CLUSTERS, &[&long, "a"]).send(&mut stranger).await;
    let told = response(&mut stranger).await;
    assert_eq!(told.resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(told.removed_resources, [long.as_str()]);
    let words = told.resource_errors[0].error_detail.as_ref().map(|detail| detail.message.as_str());
    assert_eq!(words, Some("a name of 1025 bytes, 1024 are taken (limits.name_bytes of the relay)"));
    counted(&relay, "name_bytes", 1).await;
    good.goes_on().await;
    assert_eq!(response(&mut stranger).await.resources.len(), 1, "its stream goes on");
}

/// The connection says nothing: there may be no descriptor to answer with.
#[tokio::test]
async fn connections_are_so_many() {
    let (relay, directory) = relay("connections: 2").await;
    let mut good = Good::new(&relay, directory.path().join("a.yaml")).await;
    let mut served = call(relay.address).await;
    ask(CLUSTERS, &["a"]).send(&mut served).await;
    response(&mut served).await;
    let mut refused = TcpStream::connect(relay.address).await.unwrap();
    assert_eq!(in_time(refused.read(&mut [0])).await.unwrap_or(0), 0);
    counted(&relay, "connections", 1).await;
    good.goes_on().await;
    response(&mut served).await;
}

/// Who only connects, and says nothing, is closed for who comes, and nobody else is.
#[tokio::test]
async fn connections_without_a_stream_keep_nobody_out() {
    let (relay, directory) = relay("connections: 3").await;
    let mut good = Good::new(&relay, directory.path().join("a.yaml")).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(relay.address).await.unwrap());
    }
    let mut newcomer = call(relay.address).await;
    ask(CLUSTERS, &["a"]).send(&mut newcomer).await;
    assert_eq!(response(&mut newcomer).await.resources.len(), 1);
    let closed = async {
        while !page(&relay, "/metrics").await.contains("\nxds_relay_idle_connections_closed_total 19\n") {
            tokio::task::yield_now().await;
        }
    };
    in_time(closed).await;
    for mut silent in silent.into_iter().take(19) {
        assert_eq!(in_time(silent.read(&mut [0])).await.unwrap_or(0), 0, "the longest first");
    }
    counted(&relay, "connections", 0).await;
    good.goes_on().await;
}

/// For the relay's health there is no rule, and who watches it does so for as long as he likes.
#[tokio::test]
async fn who_watches_the_health_of_the_relay_keeps_nobody_out() {
    let (relay, directory) = relay("connections: 3").await;
    let mut good = Good::new(&relay, directory.path().join("a.yaml")).await;
    let mut watches = Vec::new();
    for _ in 0..2 {
        let mut watch = asked(&relay, WATCH, "").await;
        assert_eq!(watch.message().await.as_deref(), Some(SERVING));
        watches.push(watch);
    }
    let mut newcomer = call(relay.address).await;
    ask(CLUSTERS, &["a"]).send(&mut newcomer).await;
    assert_eq!(response(&mut newcomer).await.resources.len(), 1);
    counted(&relay, "connections", 0).await;
    good.goes_on().await;
}

/// They are kept until they are told, and over state of the world known again.
#[tokio::test]
async fn what_is_no_name_counts_among_all_names() {
    let odd: Vec<_> = (0..50).map(|at| format!("xdstp:no name {at}{}", "x".repeat(2000))).collect();
    let odd: Vec<_> = odd.iter().map(String::as_str).collect();
    meets("names: 99", "names", "more than 99 names", vec![vec![ask(CLUSTERS, &odd)]]).await;
    // What was told counts no more: each is two of them.
    meets("names: 99", "names", "more than 99 names", vec![vec![ask(CLUSTERS, &odd[..30])], vec![ask(CLUSTERS, &odd)]])
        .await;
}

/// How full they are, beside how much there may be, is told before anybody is refused.
#[tokio::test]
async fn how_many_connections_and_unfinished_bytes_there_are_is_told() {
    let (relay, _directory) = relay("connections: 7, unfinished_request_bytes: 8 KiB").await;
    let mut begun = call(relay.address).await;
    begun.sending.send_data(framed(&[0; 3000]).slice(..1005), false).unwrap();
    let lines = [
        "xds_relay_limit{limit=\"connections\"} 7",
        "xds_relay_limit_used{limit=\"connections\"} 1",
        "xds_relay_limit{limit=\"unfinished_request_bytes\"} 8192",
        "xds_relay_limit_used{limit=\"unfinished_request_bytes\"} 1005",
    ];
    let told = async {
        loop {
            let text = page(&relay, "/metrics").await;
            if lines.iter().all(|line| text.lines().any(|of| of == *line)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    in_time(told).await;
}

/// Of what an origin sends the client gets nothing, and the relay says why.
#[tokio::test]
async fn a_response_of_an_origin_that_is_too_long_is_counted() {
    let (upper, directory) = relay("").await;
    write(&directory.path().join("a.yaml"), &format!("alt_stat_name: '{}'", "x".repeat(8000)));
    let origins = format!("[{{ name: up, server: '{}' }}]", upper.address);
    let lower = Running::start_with(&origins, "limits: { max_response_bytes: 4 KiB }").await;
    let mut client = call(lower.address).await;
    ask(CLUSTERS, &["a"]).send(&mut client).await;
    let counted = async {
        while page(&lower, "/metrics").await.contains("\nxds_relay_upstream_too_long_total{origin=\"up\"} 0\n") {
            tokio::task::yield_now().await;
        }
    };
    in_time(counted).await;
    assert!(page(&lower, "/metrics").await.contains("\nxds_relay_upstream_too_long_total{origin=\"up\"} "));
}

/// Who says nothing goes, and no other.
#[tokio::test]
async fn rule_132_of_who_takes_his_time() {
    let (relay, directory) = relay("preface: 1s, first_request: 1s, admin_idle: 1s").await;
    let mut good = Good::new(&relay, directory.path().join("a.yaml")).await;
    let mut silent = call(relay.address).await;
    for address in [relay.address, relay.admin.unwrap()] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        assert_eq!(in_time(connection.read(&mut [0])).await.unwrap_or(0), 0);
    }
    assert_eq!(silent.status().await, (14, "no request came within 1s (limits.first_request of the relay)".to_owned()));
    counted(&relay, "preface", 1).await;
    good.goes_on().await;
}

/// Files would answer all nodes alike.
#[tokio::test]
async fn rule_132_of_what_reaches_an_origin() {
    let (upper, directory) = relay("").await;
    let origins = format!("[{{ name: up, server: '{}' }}]", upper.address);
    let lower = Running::start_with(&origins, "limits: { groups: 2 }").await;
    let nodes = (0..2).map(|at| vec![of_node(format!("n{at}"))]).collect();
    meets_at(&lower, directory.path().join("a.yaml"), "groups", "more than 2 node groups", nodes).await;

    // Over SotW a request names all that is wanted: who wants most has to go.
    let (upper, directory) = relay("").await;
    let origins = format!("[{{ name: up, server: '{}', protocol: sotw }}]", upper.address);
    let more = "share_by: [cluster]\nlimits: { max_upstream_request_bytes: 1 MiB }";
    let lower = Running::start_with(&origins, more).await;
    let names = (0..40).map(|at| format!("{at:02}{}", "x".repeat(60_000))).collect();
    let words = "more than 917504 bytes of names in a request to the origin";
    let asks = vec![vec![Ask { names, ..ask(CLUSTERS, &[]) }]];
    meets_at(&lower, directory.path().join("a.yaml"), "max_upstream_request_bytes", words, asks).await;
}
