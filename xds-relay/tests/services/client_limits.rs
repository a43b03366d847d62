//! What one client may use up by the rule for it, over loopback: what it is told, what is counted and shown, and that others are
//! none the worse.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use prost::Message as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use xds_relay::api::{Client, ClientUses, Clients};
use xds_relay::{Config, Relay};
use xds_transport::wire::DeltaDiscoveryRequest;

use crate::clients::{ONE, TWO, ask, node, open, relay, told};
use crate::limits::{self, CLUSTERS, call, counted};
use crate::loops::page;
use crate::reload::reload;
use crate::stream::{Call, framed, in_time};

const RULES: &str = "[{ match: { token: $tokens }, limits: { streams: 1, names: 2 } }, { match: { token: $others } }]";

async fn client(relay: &crate::Running, token: &str) -> Call {
    let bearer = format!("Bearer {token}");
    open(relay, &[("authorization", bearer.as_bytes())]).await
}

fn body<T: serde::de::DeserializeOwned>(answer: &str) -> T {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_client_that_takes_more_than_its_rule_allows_is_told_so_and_others_are_none_the_worse() {
    let (relay, directory) = relay("[{ match: { token: $tokens } }]").await;
    let both = format!("{ONE}\n{TWO}");
    std::fs::write(directory.path().join("tokens"), both).unwrap();
    std::fs::write(directory.path().join("others"), "another-0123456789abcdef").unwrap();
    // It had a stream before there were limits.
    let mut first = client(&relay, ONE).await;
    ask(&mut first, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut first).await, ["+shop/a"]);
    reload(&relay, directory.path(), RULES, "{}").await.unwrap();

    let mut second = client(&relay, ONE).await;
    let words = "more than 1 streams of one client (clients[].limits.streams of the relay)";
    assert_eq!(second.status().await, (8, words.to_owned()));
    // Whoever shows another token is another client, under the same rule.
    let mut other = client(&relay, TWO).await;
    ask(&mut other, CLUSTERS, &["shop/a", "bank/a"], "m").await;
    assert_eq!(told(&mut other).await.len(), 2);

    let (uses, html) = shown(&relay, "m").await;
    assert_eq!((uses.rule, uses.identity.as_str()), (Some(0), "token"));
    let of = |limit: &str| (uses.limits[limit].used, uses.limits[limit].most);
    assert_eq!([of("streams"), of("names"), of("groups")], [(1, Some(1)), (2, Some(2)), (0, Some(10_000))]);
    assert!(html.contains("2 of 2") && html.contains("Counted as token, under clients[0]."), "{html}");

    ask(&mut other, CLUSTERS, &["c"], "m").await;
    let words = "more than 2 names of one client (clients[].limits.names of the relay)";
    assert_eq!(in_time(other.status()).await, (8, words.to_owned()));
    let metrics = page(&relay, "/metrics").await;
    for (limit, times) in [("streams", 1), ("names", 1)] {
        let line = format!("xds_relay_client_refused_total{{limit=\"{limit}\",rule=\"0\"}} {times}\n");
        assert!(metrics.contains(&line), "{metrics}");
    }

    // More counts at once, and the stream that was there goes on.
    reload(&relay, directory.path(), &RULES.replace("streams: 1", "streams: 2"), "{}").await.unwrap();
    let mut second = client(&relay, ONE).await;
    ask(&mut second, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut second).await, ["+shop/a"]);
    ask(&mut first, CLUSTERS, &["bank/a"], "n").await;
    let words = "more than 2 names of one client (clients[].limits.names of the relay)";
    assert_eq!(in_time(first.status()).await, (8, words.to_owned()), "it has two with the other");
    // Without rules each has its part of what all may have, for streams that were under one, too.
    reload(&relay, directory.path(), "none", "{}").await.unwrap();
    ask(&mut second, CLUSTERS, &["bank/a", "c", "d"], "n").await;
    assert!(told(&mut second).await.contains(&"+bank/a".to_owned()));
}

#[tokio::test]
async fn where_no_rule_says_how_much_one_client_does_not_take_all_that_there_may_be() {
    const RULES: &str = "[{ match: { token: $tokens } }]";
    let (relay, directory) = relay("[{ match: { token: $tokens }, wildcard: false }]").await;
    std::fs::write(directory.path().join("tokens"), format!("{ONE}\n{TWO}")).unwrap();
    reload(&relay, directory.path(), RULES, r#"{ "limits": { "streams": 3 } }"#).await.unwrap();
    let mut first = client(&relay, ONE).await;
    ask(&mut first, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut first).await, ["+shop/a"]);
    let mut second = client(&relay, ONE).await;
    let words = "more than 1 streams of one client (limits.one_client of limits.streams of the relay)";
    assert_eq!(second.status().await, (8, words.to_owned()));
    counted(&relay, "one_client", 1).await;
    let mut other = client(&relay, TWO).await;
    ask(&mut other, CLUSTERS, &["shop/a"], "m").await;
    assert_eq!(told(&mut other).await, ["+shop/a"]);
    let (uses, html) = shown(&relay, "n").await;
    assert_eq!((uses.rule, uses.identity.as_str()), (Some(0), "token"));
    assert_eq!((uses.limits["streams"].used, uses.limits["streams"].most), (1, Some(1)));
    assert!(html.contains("1 of 1"), "{html}");

    // All of it for one counts at once, and the stream that was there goes on.
    let all = r#"{ "limits": { "streams": 4, "one_client": "100%" } }"#;
    assert!(reload(&relay, directory.path(), RULES, all).await.unwrap().needs_restart.is_empty());
    let mut second = client(&relay, ONE).await;
    ask(&mut second, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut second).await, ["+shop/a"]);
    ask(&mut first, CLUSTERS, &["bank/a"], "n").await;
    assert_eq!(told(&mut first).await, ["+bank/a"]);
}

#[tokio::test]
async fn without_rules_who_comes_from_this_machine_is_counted_and_may_have_all() {
    let (relay, _directory) = limits::relay("streams: 2").await;
    let mut calls = [call(relay.address).await, call(relay.address).await];
    for call in &mut calls {
        ask(call, CLUSTERS, &["a"], "n").await;
        assert_eq!(told(call).await, ["+a"]);
    }
    let (uses, html) = shown(&relay, "n").await;
    assert_eq!((uses.rule, uses.identity.as_str()), (None, "127.0.0.1"));
    assert_eq!((uses.limits["streams"].used, uses.limits["streams"].most), (2, None));
    assert!(html.contains("Counted as 127.0.0.1."), "{html}");
}

/// An address of this machine that is known to others, if it has one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("198.51.100.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

/// Half of all that there may be: who connects by a loopback address may be many, and by another one is one.
#[tokio::test]
async fn without_rules_one_address_has_its_part_of_the_connections_and_others_have_the_rest() {
    let Some(one) = own_address() else { return eprintln!("this machine has no address but loopback ones") };
    let directory = tempfile::tempdir().unwrap();
    limits::write(&directory.path().join("a.yaml"), "connect_timeout: 1s");
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().display());
    let text = format!("listen: 0.0.0.0:0\nadmin: 127.0.0.1:0\norigins: {origins}\nlimits: {{ connections: 4 }}");
    let relay = crate::Running::run(Relay::bind(Config::parse("relay.yaml", &text).unwrap()).await.unwrap());
    let [one, other] = [one, IpAddr::from([127, 0, 0, 1])].map(|ip| SocketAddr::new(ip, relay.address.port()));
    let served = async |address: SocketAddr| {
        let mut call = call(address).await;
        ask(&mut call, CLUSTERS, &["a"], "n").await;
        assert_eq!(told(&mut call).await, ["+a"]);
        call
    };
    let is_closed = async |mut io: TcpStream| in_time(io.read(&mut [0])).await.unwrap_or(0) == 0;

    let _first = served(one).await;
    let (idle_of_other, idle) = (TcpStream::connect(other).await.unwrap(), TcpStream::connect(one).await.unwrap());
    // For who has his part his own makes room, though another is longer without a stream.
    let _second = served(one).await;
    assert!(is_closed(idle).await);
    counted(&relay, "one_client", 0).await;
    assert!(is_closed(TcpStream::connect(one).await.unwrap()).await);
    counted(&relay, "one_client", 1).await;
    let _of_other = served(other).await;
    counted(&relay, "connections", 0).await;
    assert!(idle_of_other.try_read(&mut [0]).is_err(), "it is open");
}

/// What a client of a node uses, by the API and by its page.
async fn shown(relay: &crate::Running, node: &str) -> (ClientUses, String) {
    let listed: Clients = body(&page(relay, &format!("/api/v1/clients?node={node}")).await);
    let id = listed.clients[0].id;
    let client: Client = body(&page(relay, &format!("/api/v1/clients/{id}")).await);
    (client.uses.unwrap(), page(relay, &format!("/clients/{id}")).await)
}

/// Who divides what it sends among many streams is no less for it.
#[tokio::test]
async fn of_unfinished_requests_the_client_that_sends_most_of_them_loses_first() {
    let request = DeltaDiscoveryRequest {
        node: node(&"n".repeat(5000)).into(),
        type_url: CLUSTERS.to_owned(),
        resource_names_subscribe: vec!["shop/a".to_owned()],
        ..DeltaDiscoveryRequest::default()
    };
    let request = framed(&request.encode_to_vec());
    // Who comes from this machine and shows nothing may be many.
    for (are_one, kept_then) in [(true, 7000), (false, 4600)] {
        let rules = "[{ match: { token: $tokens } }, { match: { any: true } }]";
        let (relay, _directory) = relay(&format!("{rules}\nlimits: {{ unfinished_request_bytes: 8 KiB }}")).await;
        let kept = async |bytes: usize| {
            let line = format!("\nxds_relay_limit_used{{limit=\"unfinished_request_bytes\"}} {bytes}\n");
            while !page(&relay, "/metrics").await.contains(&line) {
                tokio::task::yield_now().await;
            }
        };
        let opened = async |shows: bool| if shows { client(&relay, ONE).await } else { open(&relay, &[]).await };
        let mut one = opened(!are_one).await;
        one.sending.send_data(request.slice(..4000), false).unwrap();
        in_time(kept(4000)).await;
        let mut others = Vec::new();
        for (bytes, all) in [(1500, 5500), (1500, 7000), (1600, kept_then)] {
            let mut other = opened(are_one).await;
            other.sending.send_data(request.slice(..bytes), false).unwrap();
            in_time(kept(all)).await;
            others.push(other);
        }
        let words =
            "more than 8192 bytes of unfinished requests on all streams (limits.unfinished_request_bytes of the relay)";
        let loses = if are_one { others.last_mut().unwrap() } else { &mut one };
        assert_eq!(in_time(loses.status()).await, (8, words.to_owned()));
        if are_one {
            one.sending.send_data(request.slice(4000..), false).unwrap();
            assert_eq!(told(&mut one).await, ["+shop/a"]);
        }
    }
}
