//! A relay that is asked to stop: it serves until clients are sent elsewhere, and then ends their streams.

use tokio::net::TcpStream;

use crate::admin_guard::asked as post;
use crate::clients::{ask, ends, open, relay, serve_seconds, told};
use crate::health::{NOT_SERVING, SERVING, WATCH, asked};
use crate::limits::CLUSTERS;
use crate::loops::page;
use crate::reload::reload;
use crate::stream::in_time;

const ANY: &str = "[{ match: { any: true } }]";

#[tokio::test]
async fn until_its_streams_are_ended_it_serves_as_before_and_says_that_it_is_not_ready() {
    let (mut relay, directory) = relay(ANY).await;
    // As long as this lasts, nothing else can have ended a stream.
    let reloaded = reload(&relay, directory.path(), ANY, r#"{ "drain_delay": "1h" }"#).await.unwrap();
    assert_eq!(reloaded.applied, ["drain_delay"]);
    let mut stream = open(&relay, &[]).await;
    ask(&mut stream, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut stream).await, ["+shop/a"]);
    let mut watch = asked(&relay, WATCH, "").await;
    assert_eq!(watch.message().await.as_deref(), Some(SERVING));

    relay.stop();
    assert_eq!(watch.message().await.as_deref(), Some(NOT_SERVING));
    let ready = page(&relay, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.ends_with("not ready: shutting down\n"), "{ready}");
    serve_seconds(directory.path(), 2);
    assert_eq!(told(&mut stream).await, ["+shop/a"], "a stream that is open");
    assert_eq!(ends(&relay, &[]).await, None, "one that is opened now");
}

#[tokio::test]
async fn who_says_so_has_clients_sent_elsewhere_and_back_and_no_stream_ends() {
    let (relay, directory) = relay(ANY).await;
    let mut stream = open(&relay, &[]).await;
    ask(&mut stream, CLUSTERS, &["shop/a"], "n").await;
    assert_eq!(told(&mut stream).await, ["+shop/a"]);
    let mut watch = asked(&relay, WATCH, "").await;
    assert_eq!(watch.message().await.as_deref(), Some(SERVING));
    let say = async |state: &str| {
        let io = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
        post(io, "POST", &format!("/ready/{state}"), None).await
    };

    let words = "not ready: as was said on the admin pages; POST /ready/true takes it back\n";
    for (state, status, health) in [("false", 503, NOT_SERVING), ("true", 200, SERVING), ("false", 503, NOT_SERVING)] {
        let said = say(state).await;
        // As the pages of envoyproxy/xds-relay: what is asked for is done.
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
        assert_eq!(watch.message().await.as_deref(), Some(health));
        let ready = page(&relay, "/readyz").await;
        assert!(ready.starts_with(&format!("HTTP/1.1 {status}")), "{ready}");
        assert!(status == 200 || ready.ends_with(words), "{ready}");
    }
    serve_seconds(directory.path(), 2);
    assert_eq!(told(&mut stream).await, ["+shop/a"], "a stream that is open");
    assert_eq!(ends(&relay, &[]).await, None, "one that is opened now");
    let odd = say("maybe").await;
    assert!(
        odd.starts_with("HTTP/1.1 400 ") && odd.ends_with("\r\n\r\nexpected POST /ready/true or /ready/false\n"),
        "{odd}"
    );
    assert!(page(&relay, "/ready/false").await.starts_with("HTTP/1.1 405"), "a look changes nothing");
}

#[tokio::test]
async fn then_streams_are_ended_for_their_clients_to_come_back_elsewhere() {
    let (mut relay, directory) = relay(ANY).await;
    reload(&relay, directory.path(), ANY, r#"{ "drain_delay": "50ms", "drain": "1m" }"#).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = open(&relay, &[]).await;
        ask(&mut stream, CLUSTERS, &["shop/a"], "n").await;
        assert_eq!(told(&mut stream).await, ["+shop/a"]);
        streams.push(stream);
    }
    relay.stop();
    for mut stream in streams {
        assert_eq!(stream.status().await, (14, "the relay is shutting down".to_owned()));
    }
    in_time(relay.stopped()).await;
}
