//! How streams end, and what is left of them.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use xds_transport::server::Settings;
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::{Protocol, RateLimit};

use crate::call::{ack, delta_wildcard, framed, sotw_wildcard};
use crate::plane::{Plane, Rules};

#[tokio::test(start_paused = true)]
async fn what_ends_a_stream_is_told_in_its_trailers() {
    let plane = Plane::small();
    let mut settings = Settings::default();
    settings.requests = Some(RateLimit { burst: 2, every: Duration::from_secs(1) });
    let served = plane.serve_with(Rules { settings, ..Rules::default() });
    let connection = served.connect().await;

    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&DeltaDiscoveryRequest::default());
    assert_eq!(call.status().await, (3, "a request without a type URL on an aggregated stream".to_owned()));

    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send_bytes(framed(0, &[0xff]), false);
    let (code, words) = call.status().await;
    assert_eq!(code, 3);
    assert!(words.starts_with("a request that does not decode"), "{words}");

    let mut call = connection.aggregated(Protocol::Delta).await;
    for _ in 0..3 {
        call.send(&delta_wildcard());
    }
    assert_eq!(call.status().await, (8, "more requests on one stream than 2 at once and one every 1s".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_ended_from_outside_says_why_although_it_is_idle() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let plane = Plane::small();
        let mut served = plane.serve();
        let connection = served.connect().await;
        let mut call = connection.aggregated(protocol).await;
        match protocol {
            Protocol::Delta => call.send(&delta_wildcard()),
            Protocol::Sotw => call.send(&sotw_wildcard()),
        }
        call.message().await.unwrap();
        let opened = served.opened().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        opened.handle.end("elsewhere please");
        opened.handle.end("the first reason counts");
        assert_eq!(call.status().await, (14, "elsewhere please".to_owned()));
        let mut call = connection.aggregated(protocol).await;
        let opened = served.opened().await;
        opened.handle.deny("no longer");
        opened.handle.refuse("the first reason counts");
        assert_eq!(call.status().await, (7, "no longer".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_has_its_stream_pull_it_by_a_wake() {
    let plane = Plane::small();
    let mut served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    let first = call.delta().await.unwrap();
    call.send(&ack(&first));
    let opened = served.opened().await;
    assert_eq!(opened.protocol, Protocol::Delta);
    for name in ["b", "c"] {
        plane.put(name, 10, None);
        opened.wake.wake();
        let response = call.delta().await.unwrap();
        assert_eq!(response.resources[0].name, name);
    }
}

/// Rule 12: however a stream ends, its sessions are closed, its source is dropped, and nobody sees it any more.
#[tokio::test(start_paused = true)]
async fn rule_012_nothing_of_a_stream_is_left_however_it_ends() {
    for end in 0..6 {
        let plane = Plane::small();
        let mut served = plane.serve();
        let connection = served.connect().await;
        let mut call = connection.aggregated(Protocol::Delta).await;
        call.send(&delta_wildcard());
        call.message().await.unwrap();
        let handle = served.opened().await.handle;
        assert_eq!(plane.count.all(), (1, 0, 0));
        let mut seen = 0;
        handle.inspect(&mut |stream| seen += stream.sessions().count());
        assert_eq!(seen, 1);
        let mut connection = Some(connection);
        match end {
            0 => call.sending.send_reset(h2::Reason::CANCEL),
            1 => drop(call),
            2 => connection.take().unwrap().cut(),
            3 => call.send_bytes(Bytes::new(), true),
            4 => call.send(&DeltaDiscoveryRequest::default()),
            _ => handle.end("over"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(plane.count.all(), (1, 1, 1), "end {end}");
        handle.inspect(&mut |_| panic!("end {end}: there is nothing to see"));
        handle.end("again, to no effect");
    }
}

/// A client that sends no more still gets what it asked for, more than a window of responses, and then a good end.
#[tokio::test(start_paused = true)]
async fn a_client_that_sends_no_more_is_sent_what_is_known_and_a_good_end() {
    const CLUSTERS: usize = 2000;
    let plane = Plane::with((0..CLUSTERS).map(|at| format!("cluster-{at}")), 4096, None);
    let served = plane.serve();
    let connection = served.connect().await;

    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send_bytes(framed(0, &delta_wildcard().encode_to_vec()), true);
    let mut count = 0;
    while let Some(response) = call.delta().await {
        count += response.resources.len();
    }
    assert_eq!((count, call.status().await), (CLUSTERS, (0, String::new())));

    let mut call = connection.aggregated(Protocol::Sotw).await;
    call.send_bytes(framed(0, &sotw_wildcard().encode_to_vec()), true);
    assert_eq!(call.sotw().await.unwrap().resources.len(), CLUSTERS);
    assert_eq!(call.status().await, (0, String::new()));
}

/// What is known is enough: a stream that asked for nothing there is ends as well.
#[tokio::test(start_paused = true)]
async fn a_client_that_sends_no_more_and_waits_for_nothing_is_let_go() {
    let plane = Plane::small();
    let served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send_bytes(Bytes::new(), true);
    assert_eq!(call.status().await, (0, String::new()));

    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    call.message().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    call.send_bytes(Bytes::new(), true);
    assert_eq!(call.status().await, (0, String::new()));
}

#[tokio::test(start_paused = true)]
async fn requests_that_end_within_one_are_no_good_end() {
    let plane = Plane::small();
    let served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send_bytes(framed(0, &[1, 2, 3]).slice(..6), true);
    assert_eq!(call.status().await, (13, "the requests end within one".to_owned()));
}
