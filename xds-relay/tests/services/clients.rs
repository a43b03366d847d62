//! Who may ask for what, over loopback: by certificate, address, token and socket; nodes, types and names.

use std::fs;
use std::path::Path;

use prost::Message;
use tempfile::TempDir;
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Node};
use xdstp_client::{Client, Endpoint, Error, Event};

use crate::Running;
use crate::limits::CLUSTERS;
use crate::loops::page;
use crate::stream::{Call, Origin, framed, in_time};
use crate::tls::{Authority, Files, endpoint, version_of, watch, why_not};

const METHOD: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const NOBODY: (i32, &str) = (7, "no rule of `clients` is for this client");
const NO_TOKEN: (i32, &str) = (16, "no rule of `clients` is for this client, which carries no token that is known");
pub(crate) const ONE: &str = "one-0123456789abcdef";
pub(crate) const TWO: &str = "two-0123456789abcdef";

/// A relay of the clusters `shop/a` and `bank/a` from files, under rules.
pub(crate) async fn relay(rules: &str) -> (Running, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("mesh")).unwrap();
    serve_seconds(directory.path(), 1);
    fs::write(directory.path().join("tokens"), ONE).unwrap();
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().join("mesh").display());
    let rules = rules.replace('$', &format!("{}/", directory.path().display()));
    (Running::start_with(&origins, &format!("clients: {rules}")).await, directory)
}

pub(crate) fn serve_seconds(directory: &Path, seconds: u32) {
    let cluster = |name: &str| format!(r#"{{ "@type": {CLUSTERS}, name: {name}, connect_timeout: {seconds}s }}"#);
    let text = format!("resources: [{}, {}]", cluster("shop/a"), cluster("bank/a"));
    fs::write(directory.join("new"), text).unwrap();
    fs::rename(directory.join("new"), directory.join("mesh/a.yaml")).unwrap();
}

pub(crate) fn node(id: &str) -> Vec<u8> {
    Node { id: id.into(), cluster: "c".into(), ..Node::default() }.encode_to_vec()
}

pub(crate) async fn ask(call: &mut Call, of: &str, names: &[&str], id: &str) {
    let request = DeltaDiscoveryRequest {
        node: node(id).into(),
        type_url: of.into(),
        resource_names_subscribe: names.iter().map(|&name| name.into()).collect(),
        ..DeltaDiscoveryRequest::default()
    };
    call.send(framed(&request.encode_to_vec())).await;
}

/// What a response says: `+name`, `-name`, `!name code`.
pub(crate) async fn told(call: &mut Call) -> Vec<String> {
    let response = DeltaDiscoveryResponse::decode(call.message().await.expect("the stream goes on")).unwrap();
    let resources = response.resources.iter().map(|resource| format!("+{}", resource.name));
    let removed = response.removed_resources.iter().map(|name| format!("-{name}"));
    let error = |error: &xds_transport::wire::ResourceError| {
        let name = error.resource_name.as_ref().map_or("", |name| &name.name);
        format!("!{name} {}", error.error_detail.as_ref().map_or(0, |status| status.code))
    };
    resources.chain(removed).chain(response.resource_errors.iter().map(error)).collect()
}

pub(crate) async fn open(relay: &Running, headers: &[(&str, &[u8])]) -> Call {
    Call::open_with(relay.address, Protocol::Delta.aggregated_method(), headers).await
}

/// How a call ends that asks for a cluster, or that it is served.
pub(crate) async fn ends(relay: &Running, headers: &[(&str, &[u8])]) -> Option<(i32, String)> {
    let mut call = open(relay, headers).await;
    ask(&mut call, CLUSTERS, &["shop/a"], "n").await;
    let answered = call.response().await;
    if answered.contains_key("grpc-status") {
        let text = |name: &str| answered[name].to_str().unwrap().replace("%20", " ").replace("%60", "`");
        return Some((text("grpc-status").parse().unwrap(), text("grpc-message")));
    }
    assert_eq!(told(&mut call).await, ["+shop/a"]);
    None
}

pub(crate) async fn denials(relay: &Running, reason: &str) -> usize {
    let line = format!("xds_relay_downstream_denied_total{{reason=\"{reason}\"}} ");
    page(relay, "/metrics").await.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok()).unwrap()
}

pub(crate) fn said((code, words): (i32, &str)) -> Option<(i32, String)> {
    Some((code, words.to_owned()))
}

#[tokio::test]
async fn by_its_certificate_a_client_is_let_in_or_not() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    files.identity("shop", ca.vouches_for_uri("spiffe://example.com/ns/shop/sa/web"));
    files.identity("bank", ca.vouches_for_uri("spiffe://example.com/ns/bank/sa/web"));
    files.identity("deep", ca.vouches_for_uri("spiffe://example.com/ns/shop/sa/web/sa/x"));
    files.identity("host", ca.vouches_for("Web.Shop.example.com", None));
    files.identity("other", ca.vouches_for("shop.example.com", None));
    let more = "tls: { certificate: $server.pem, key: $server.key, client_ca: $ca.pem }\n\
                clients: [{ match: { spiffe: ['spiffe://example.com/ns/shop/sa/*'] } }, \
                          { match: { san: ['*.shop.Example.com', 'spiffe://x/*'], cidr: [127.0.0.0/8] }, types: [Cluster] }]";
    let origins = format!("[{{ name: files, files: {} }}]", files.path("resources").display());
    let relay = Running::start_with(&origins, &files.filled(more)).await;
    for name in ["shop", "host"] {
        in_time(version_of(&mut watch(relay.address, files.tls("ca.pem", Some(name))))).await;
    }
    for name in ["bank", "deep", "other"] {
        let words = in_time(why_not(endpoint(relay.address).with_tls(files.tls("ca.pem", Some(name))))).await;
        assert!(words.contains(NOBODY.1), "{name}: {words}");
    }
    let listeners = Client::connect(endpoint(relay.address).with_tls(files.tls("ca.pem", Some("host"))));
    let mut listeners = listeners.watch(LISTENERS, "a");
    let event = in_time(listeners.changed()).await;
    assert!(
        matches!(&event, Event::Failed { error: Error::Refused { code: 7, .. }, .. }),
        "not of this type: {event:?}"
    );
    assert_eq!(denials(&relay, "type").await, 1);
    assert!(denials(&relay, "client").await >= 3);
}

#[tokio::test]
async fn the_first_rule_for_where_a_client_is_decides() {
    let (relay, _directory) = relay("[{ match: { cidr: [10.0.0.0/8, '::/0'] } }]").await;
    assert_eq!(ends(&relay, &[]).await, said(NOBODY), "though no token would help");
    let rules = "[{ match: { cidr: [127.0.0.1] }, names: ['shop/*'] }, { match: { any: true } }]";
    let (relay, _directory) = self::relay(rules).await;
    assert_eq!(ends(&relay, &[]).await, None);
    let mut call = open(&relay, &[]).await;
    ask(&mut call, CLUSTERS, &["bank/a"], "n").await;
    assert_eq!(told(&mut call).await, ["-bank/a", "!bank/a 7"], "the rule behind it does not count");
}

#[tokio::test]
async fn by_a_token_that_counts_anew_when_its_file_changes() {
    let (relay, directory) = relay("[{ match: { token: $tokens, cidr: [127.0.0.0/8] } }]").await;
    let bearer = |token: &str| format!("Bearer {token}").into_bytes();
    assert_eq!(ends(&relay, &[]).await, said(NO_TOKEN));
    assert_eq!(ends(&relay, &[("authorization", &bearer(TWO))]).await, said(NO_TOKEN));
    let mut open = open(&relay, &[("authorization", &bearer(ONE))]).await;
    ask(&mut open, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut open).await, ["+shop/a"]);
    fs::write(directory.path().join("tokens"), TWO).unwrap();
    let counts = async { while ends(&relay, &[("authorization", &bearer(TWO))]).await.is_some() {} };
    in_time(counts).await;
    assert_eq!(ends(&relay, &[("authorization", &bearer(ONE))]).await, said(NO_TOKEN));
    serve_seconds(directory.path(), 2);
    assert_eq!(told(&mut open).await, ["+shop/a"], "an open stream goes on");
}

#[cfg(unix)]
#[tokio::test]
async fn by_the_socket_that_it_came_by() {
    use tokio::sync::oneshot;
    use xds_relay::{Config, Relay};

    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("mesh")).unwrap();
    serve_seconds(directory.path(), 1);
    for (rule, is_served) in [("unix: true", true), ("cidr: ['0.0.0.0/0', '::/0']", false)] {
        let text = format!(
            "listen: unix:xds.sock\nadmin: none\norigins: [{{ name: mesh, files: mesh }}]\nclients: [{{ match: {{ {rule} }} }}]"
        );
        let relay = Relay::bind(Config::parse(directory.path().join("relay.yaml"), &text).unwrap()).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(relay.run(async { drop(stopped.await) }));
        let endpoint = Endpoint::new(&format!("unix:{}", directory.path().join("xds.sock").display())).unwrap();
        if is_served {
            let mut clusters = Client::connect(endpoint).watch(CLUSTERS, "shop/a");
            in_time(version_of(&mut clusters)).await;
        } else {
            let words = in_time(why_not(endpoint)).await;
            assert!(words.contains(NOBODY.1), "{words}");
        }
        drop(stop);
        in_time(running).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_name_is_denied_once_beside_others_that_are_served_and_other_clients_notice_nothing() {
    let rules = "[{ match: { any: true }, nodes: ['shop-*'], types: [Cluster, Listener], names: ['shop/*'] }, \
                  { match: { any: true } }]";
    let (relay, directory) = relay(rules).await;
    for method in
        [Protocol::Delta.aggregated_method(), "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters"]
    {
        let mut call = Call::open(relay.address, method).await;
        ask(&mut call, CLUSTERS, &["shop/a", "bank/a"], "shop-1").await;
        assert_eq!(told(&mut call).await, ["+shop/a"]);
        assert_eq!(told(&mut call).await, ["-bank/a", "!bank/a 7"]);
        ask(&mut call, CLUSTERS, &["*"], "shop-1").await;
        assert_eq!(told(&mut call).await, ["!* 7"]);
        serve_seconds(directory.path(), 2);
        assert_eq!(told(&mut call).await, ["+shop/a"]);
        serve_seconds(directory.path(), 1);
        assert_eq!(told(&mut call).await, ["+shop/a"]);
    }
    // An empty first request is one for everything, where the type has that.
    let mut call = open(&relay, &[]).await;
    ask(&mut call, CLUSTERS, &[], "shop-1").await;
    assert_eq!(told(&mut call).await, ["!* 7"]);
    let mut call = open(&relay, &[]).await;
    ask(&mut call, CLUSTERS, &["shop/a"], "bank-1").await;
    let words = "a node that is refused: this client may not be a node of the id \"bank-1\"".to_owned();
    assert_eq!(call.status().await, (7, words));
    assert_eq!((denials(&relay, "name").await, denials(&relay, "wildcard").await), (2, 3));
    assert_eq!((denials(&relay, "node").await, denials(&relay, "client").await), (1, 0));
}

#[tokio::test]
async fn over_sotw_what_is_denied_is_an_error_too_and_an_ack_is_not_answered_with_it() {
    let (relay, directory) = relay("[{ match: { any: true }, names: ['shop/*'] }]").await;
    let mut call = Call::open(relay.address, Protocol::Sotw.aggregated_method()).await;
    let mut request = DiscoveryRequest {
        node: node("n").into(),
        type_url: CLUSTERS.into(),
        resource_names: vec!["shop/a".into(), "bank/a".into()],
        ..DiscoveryRequest::default()
    };
    let (mut errors, mut most) = (0, 0);
    for seconds in [2, 3] {
        call.send(framed(&request.encode_to_vec())).await;
        // All that is said until something new is there.
        loop {
            let response = DiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
            errors += response.resource_errors.len();
            most = most.max(response.resources.len());
            (request.version_info, request.response_nonce) = (response.version_info, response.nonce);
            call.send(framed(&request.encode_to_vec())).await;
            if errors == 1 {
                break;
            }
        }
        serve_seconds(directory.path(), seconds);
    }
    assert_eq!((errors, most), (1, 1));
    let mut call = Call::open(relay.address, Protocol::Sotw.aggregated_method()).await;
    request = DiscoveryRequest {
        resource_names: vec![],
        response_nonce: String::new(),
        version_info: String::new(),
        ..request
    };
    call.send(framed(&request.encode_to_vec())).await;
    let response = DiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
    let names = response.resource_errors.iter().filter_map(|error| Some(error.resource_name.as_ref()?.name.as_str()));
    assert_eq!((response.resources.len(), names.collect::<Vec<_>>()), (0, vec!["*"]));
}

/// A report has a node, too, and goes to the origin: as does the token, were it not taken off.
#[tokio::test]
async fn load_reports_are_of_nodes_that_the_client_may_be() {
    let report = |id: &str| {
        let node = node(id);
        framed(&[&[0x0a, node.len() as u8][..], &node].concat())
    };
    let origin = Origin::listen().await;
    let origins = format!("[{{ name: up, server: '{}' }}]", origin.address());
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("tokens"), ONE).unwrap();
    let rules = format!(
        "clients: [{{ match: {{ token: '{}' }}, nodes: ['shop-*'] }}, {{ match: {{ cidr: [10.0.0.0/8] }} }}]",
        directory.path().join("tokens").display()
    );
    let relay = Running::start_with(&origins, &rules).await;
    let bearer = format!("Bearer {ONE}").into_bytes();
    let headers: [(&str, &[u8]); 2] = [("authorization", &bearer), ("x-other", b"1")];

    let mut call = Call::open(relay.address, METHOD).await;
    let (code, words) = NO_TOKEN;
    assert_eq!(call.status().await, (code, words.to_owned()));
    let mut call = Call::open_with(relay.address, METHOD, &headers).await;
    call.send(report("bank-1")).await;
    let words = "a node that is refused: this client may not be a node of the id \"bank-1\"".to_owned();
    assert_eq!(call.status().await, (7, words));

    let mut call = Call::open_with(relay.address, METHOD, &headers).await;
    call.send(report("shop-1").slice(..4)).await;
    call.send(report("shop-1").slice(4..)).await;
    let mut served = origin.accept().await;
    assert!(!served.headers.contains_key("authorization") && served.headers.contains_key("x-other"));
    assert_eq!(served.receiving.message().await.unwrap().unwrap(), report("shop-1").slice(5..));
    call.send(report("shop-1")).await;
    assert_eq!(served.receiving.message().await.unwrap().unwrap(), report("shop-1").slice(5..));
    assert_eq!((denials(&relay, "node").await, denials(&relay, "client").await), (1, 1));
}
