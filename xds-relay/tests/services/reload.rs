//! Another configuration while the relay runs: what counts at once, whom it ends, who is told of it, who notices nothing, and what stays.

use std::fs;
use std::path::Path;

use tokio::net::TcpStream;
use xds_relay::{Config, Reloaded};

use crate::Running;
use crate::clients::{NOBODY, ONE, TWO, ask, denials, ends, open, relay, said, serve_seconds, told};
use crate::limits::CLUSTERS;
use crate::loops::page;
use crate::stream::{Call, in_time};

/// Has a relay go by other rules, and by more.
pub(crate) async fn reload(relay: &Running, directory: &Path, rules: &str, more: &str) -> Result<Reloaded, String> {
    let (mut before, reloader) = (relay.reloader.config(), relay.reloader.clone());
    let rules = rules.replace('$', &format!("{}/", directory.display()));
    let clients = if rules == "none" { String::new() } else { format!("clients: {rules}") };
    let text = format!("{{ origins: [{{ name: a, server: 'a:1' }}], {clients} }}");
    before.clients = Config::parse("relay.yaml", &text).unwrap().clients;
    let mut config = serde_json::to_value(&before).unwrap();
    let more: serde_json::Value = serde_json::from_str(more).unwrap();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let config: Config = serde_json::from_value(config).unwrap();
    let reloaded = tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap();
    reloaded.map_err(|error| error.to_string())
}

async fn applies(relay: &Running, directory: &Path, rules: &str) {
    let reloaded = reload(relay, directory, rules, "{}").await.unwrap();
    assert!(!reloaded.applied.is_empty() && reloaded.needs_restart.is_empty(), "{reloaded:?}");
}

/// A client that asked for these as this node, and was told.
async fn client(relay: &Running, token: &str, names: &[&str], node: &str, expected: &[&[&str]]) -> Call {
    let bearer = format!("Bearer {token}");
    let mut call = open(relay, &[("authorization", bearer.as_bytes())]).await;
    ask(&mut call, CLUSTERS, names, node).await;
    for expected in expected {
        assert_eq!(told_of(&mut call).await, *expected);
    }
    call
}

/// The same whatever comes first.
async fn told_of(call: &mut Call) -> Vec<String> {
    let mut told = told(call).await;
    told.sort();
    told
}

async fn ends_with(mut call: Call, (code, words): (i32, &str)) {
    assert_eq!(call.status().await, (code, words.to_owned()));
}

#[tokio::test]
async fn a_client_that_no_rule_is_for_any_more_is_ended_and_counted_and_others_notice_nothing() {
    let all = "[{ match: { token: $tokens } }, { match: { token: $others } }]";
    let (relay, directory) = {
        // The files are there before the rules are read.
        let (relay, directory) = relay("[{ match: { token: $tokens } }]").await;
        fs::write(directory.path().join("others"), TWO).unwrap();
        applies(&relay, directory.path(), all).await;
        (relay, directory)
    };
    let ours = client(&relay, ONE, &["shop/a"], "n", &[&["+shop/a"]]).await;
    let mut theirs = client(&relay, TWO, &["shop/a", "bank/a"], "m", &[&["+bank/a", "+shop/a"]]).await;
    // Nothing is decided otherwise for anybody.
    applies(&relay, directory.path(), &all.replace("$tokens }", "$tokens }, types: [Cluster]")).await;
    applies(&relay, directory.path(), "[{ match: { token: $others } }]").await;
    ends_with(ours, (7, "no rule of `clients` is for this client, which carries no token that is known")).await;
    assert_eq!(denials(&relay, "client").await, 1);
    serve_seconds(directory.path(), 2);
    assert_eq!(told_of(&mut theirs).await, ["+bank/a", "+shop/a"], "the other goes on");
    let bearer = format!("Bearer {ONE}").into_bytes();
    assert_eq!(ends(&relay, &[("authorization", &bearer)]).await.unwrap().0, 16);
    // A token that comes with the rules is followed as those from the start.
    fs::write(directory.path().join("others"), ONE).unwrap();
    let counts = async { while ends(&relay, &[("authorization", &bearer)]).await.is_some() {} };
    in_time(counts).await;
}

#[tokio::test]
async fn a_name_that_is_taken_away_is_told_as_denied_on_a_stream_that_goes_on() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    let mut asks = client(&relay, "", &["shop/a", "bank/a"], "n", &[&["+bank/a", "+shop/a"]]).await;
    let mut other = client(&relay, "", &["shop/a"], "n", &[&["+shop/a"]]).await;
    let mut everything = client(&relay, "", &["*"], "n", &[&["+bank/a", "+shop/a"]]).await;
    applies(&relay, directory.path(), "[{ match: { any: true }, names: ['shop/*'] }]").await;
    assert_eq!(told_of(&mut asks).await, ["!bank/a 7", "-bank/a"]);
    assert_eq!(told_of(&mut everything).await, ["!* 7"]);
    assert_eq!((denials(&relay, "name").await, denials(&relay, "wildcard").await), (1, 1));
    serve_seconds(directory.path(), 2);
    assert_eq!(told(&mut other).await, ["+shop/a"], "that what it asks for is decided alike");
    assert_eq!(told(&mut asks).await, ["+shop/a"], "and all else of who was denied something");

    // It may be asked for again: who was told otherwise is served.
    applies(&relay, directory.path(), "[{ match: { any: true } }]").await;
    assert_eq!(told(&mut asks).await, ["+bank/a"]);
    serve_seconds(directory.path(), 3);
    assert_eq!(told(&mut other).await, ["+shop/a"]);
    assert_eq!(told_of(&mut asks).await, ["+bank/a", "+shop/a"]);
    assert_eq!(ends(&relay, &[]).await, None);
}

#[tokio::test]
async fn a_node_that_may_not_be_any_more_is_ended_and_one_that_was_not_said_yet_is_looked_at() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    let bank = client(&relay, "", &["shop/a"], "bank-1", &[&["+shop/a"]]).await;
    let mut shop = client(&relay, "", &["shop/a"], "shop-1", &[&["+shop/a"]]).await;
    let mut silent = open(&relay, &[]).await;
    applies(&relay, directory.path(), "[{ match: { any: true }, nodes: ['shop-*'] }]").await;
    let words = "this client may not be a node of the id \"bank-1\"";
    ends_with(bank, (7, words)).await;
    ask(&mut silent, CLUSTERS, &["shop/a"], "bank-1").await;
    ends_with(silent, (7, &format!("a node that is refused: {words}"))).await;
    assert_eq!(denials(&relay, "node").await, 2);
    serve_seconds(directory.path(), 2);
    assert_eq!(told(&mut shop).await, ["+shop/a"]);
}

#[tokio::test]
async fn where_all_might_ask_for_everything_rules_may_come_and_go() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    applies(&relay, directory.path(), "none").await;
    let mut call = client(&relay, "", &["shop/a"], "n", &[&["+shop/a"]]).await;
    applies(&relay, directory.path(), "[{ match: { any: true }, names: ['shop/*'] }]").await;
    ask(&mut call, CLUSTERS, &["bank/a"], "n").await;
    assert_eq!(told(&mut call).await, ["-bank/a", "!bank/a 7"], "the open stream is under the new rule");
    applies(&relay, directory.path(), "none").await;
    assert_eq!(told(&mut call).await, ["+bank/a"]);
    applies(&relay, directory.path(), "[{ match: { cidr: [10.0.0.0/8] } }]").await;
    assert_eq!(ends(&relay, &[]).await, said(NOBODY));
}

#[tokio::test]
async fn what_is_not_good_changes_nothing_and_is_said() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    let mut call = client(&relay, "", &["shop/a", "bank/a"], "n", &[&["+bank/a", "+shop/a"]]).await;
    fs::write(directory.path().join("empty"), "").unwrap();
    let rules = "[{ match: { token: $empty }, names: [] }]";
    let error = reload(&relay, directory.path(), rules, r#"{ "limits": { "streams": 1 } }"#).await.unwrap_err();
    assert!(error.starts_with("clients[0].match.token: ") && error.ends_with("expected one in each line"), "{error}");
    // It is the program that says so, with the place.
    for _ in 0..2 {
        relay.reloader.refuse(&std::io::Error::other(error.clone()));
    }
    let status = page(&relay, "/api/v1/status").await;
    assert!(status.contains(r#""config":{"error":"clients[0].match.token: "#), "{status}");
    assert!(page(&relay, "/").await.contains("not read anew"));
    let metrics = page(&relay, "/metrics").await;
    assert!(metrics.contains("xds_relay_config_reloads_total{result=\"failed\"} 1\n"), "{metrics}");
    serve_seconds(directory.path(), 2);
    assert_eq!(told_of(&mut call).await, ["+bank/a", "+shop/a"]);
    assert_eq!(ends(&relay, &[]).await, None, "a second stream, too");

    applies(&relay, directory.path(), "[{ match: { any: true } }, { match: { unix: true } }]").await;
    let status = page(&relay, "/api/v1/status").await;
    assert!(!status.contains(r#""config":"#), "{status}");
}

#[tokio::test]
async fn what_needs_a_restart_is_said_and_stays_and_so_do_rules_that_go_with_it() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    fs::write(directory.path().join("admins"), TWO).unwrap();
    let admins = directory.path().join("admins").display().to_string();
    let more = format!(
        r#"{{ "listen": "0.0.0.0:0", "linger": "1m", "drain": "1s", "admin": {{ "address": "127.0.0.1:2", "token": "{admins}" }} }}"#
    );
    let reloaded = reload(&relay, directory.path(), "[{ match: { cidr: [10.0.0.0/8] } }]", &more).await.unwrap();
    assert_eq!(reloaded.applied, ["drain"]);
    assert_eq!(reloaded.needs_restart, ["admin", "clients[0].match.any", "clients[0].match.cidr", "linger", "listen"]);
    assert_eq!(ends(&relay, &[]).await, None, "rules for another address do not count on this one");
    let status = page(&relay, "/api/v1/status").await;
    assert!(status.contains("\"needs_restart\":[") && status.contains("\"listen\""), "no token is needed: {status}");
    assert!(page(&relay, "/").await.contains("needs a restart"));
    let metrics = page(&relay, "/metrics").await;
    assert!(metrics.contains("xds_relay_config_needs_restart 5\n"), "{metrics}");
}

#[tokio::test]
async fn who_sees_the_admin_pages_changes_with_the_file() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    fs::write(directory.path().join("admins"), TWO).unwrap();
    let admins = directory.path().join("admins").display().to_string();
    let more = format!(
        r#"{{ "admin": {{ "address": "127.0.0.1:0", "token": "{admins}" }}, "admin_hosts": ["relay.example"] }}"#
    );
    let reloaded = reload(&relay, directory.path(), "[{ match: { any: true } }]", &more).await.unwrap();
    assert!(reloaded.needs_restart.is_empty(), "{reloaded:?}");
    assert!(page(&relay, "/api/v1/status").await.starts_with("HTTP/1.1 421 "), "localhost is no name of theirs");
    let more = more.replace("relay.example", "localhost");
    reload(&relay, directory.path(), "[{ match: { any: true } }]", &more).await.unwrap();
    assert!(page(&relay, "/api/v1/status").await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn how_many_streams_there_may_be_changes_and_those_there_are_stay() {
    let (relay, directory) = relay("[{ match: { any: true } }]").await;
    let mut call = client(&relay, "", &["shop/a"], "n", &[&["+shop/a"]]).await;
    let any = "[{ match: { any: true } }]";
    reload(&relay, directory.path(), any, r#"{ "limits": { "streams": 1 } }"#).await.unwrap();
    let refused = ends(&relay, &[]).await.unwrap();
    assert_eq!((refused.0, refused.1.starts_with("more than 1 streams")), (8, true), "{refused:?}");
    reload(&relay, directory.path(), any, r#"{ "limits": { "streams": 2, "authorities": 1 } }"#).await.unwrap();
    assert_eq!(ends(&relay, &[]).await, None);
    serve_seconds(directory.path(), 2);
    assert_eq!(told(&mut call).await, ["+shop/a"]);
}

#[tokio::test]
async fn who_comes_later_is_served_at_another_address_and_streams_that_are_open_go_on() {
    let (mut relay, directory) = relay("[{ match: { any: true } }]").await;
    let mut call = client(&relay, "", &["shop/a"], "n", &[&["+shop/a"]]).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = taken.local_addr().unwrap();
    let more = format!(r#"{{ "listen": "{other}", "drain": "1s" }}"#);
    let rules = "[{ match: { any: true }, names: ['shop/*'] }]";
    let error = reload(&relay, directory.path(), rules, &more).await.unwrap_err();
    assert_eq!(error, format!("cannot listen on {other} (listen)"));
    assert_eq!(relay.reloader.config().drain.as_secs(), 3600, "nothing changes");
    drop(taken);
    let reloaded = reload(&relay, directory.path(), rules, &more).await.unwrap();
    assert_eq!(reloaded.applied, ["clients[0].names", "clients[0].wildcard", "drain", "listen"]);
    assert_eq!(reloaded.needs_restart, [""; 0]);
    in_time(async { while TcpStream::connect(relay.address).await.is_ok() {} }).await;
    relay.address = other;
    let mut new = client(&relay, "", &["shop/a"], "n", &[&["+shop/a"]]).await;
    serve_seconds(directory.path(), 2);
    assert_eq!((told(&mut call).await, told(&mut new).await), (vec!["+shop/a".to_owned()], vec!["+shop/a".to_owned()]));
    // And back to any port that is free.
    let reloaded = reload(&relay, directory.path(), rules, r#"{ "listen": "127.0.0.1:0" }"#).await.unwrap();
    assert_eq!(reloaded.applied, ["listen"]);
    serve_seconds(directory.path(), 3);
    assert_eq!((told(&mut call).await, told(&mut new).await), (vec!["+shop/a".to_owned()], vec!["+shop/a".to_owned()]));
}
