//! What time does to streams.

use std::time::Duration;

use xds_transport::Protocol;

use crate::call::{ack, delta_wildcard, node};
use crate::plane::{Plane, Rules, now};

const HOUR: Duration = Duration::from_secs(3600);

/// Rule 93 over gRPC: a fleet that came at once does not go at once, each is told why, and comes again.
#[tokio::test(start_paused = true)]
async fn rule_093_streams_that_began_together_end_one_after_the_other_over_grpc() {
    const STREAMS: usize = 400;
    let plane = Plane::small();
    let served = plane.serve_with(Rules { max_stream_age: Some(HOUR), ..Rules::default() });
    let start = now();
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..STREAMS / 20 {
        let connection = served.connect().await;
        for _ in 0..20 {
            let mut call = connection.aggregated(Protocol::Delta).await;
            call.send(&delta_wildcard());
            streams.spawn(async move {
                let response = call.delta().await.unwrap();
                call.send(&ack(&response));
                let status = call.status().await;
                (now() - start, status)
            });
        }
        // It lives as long as its streams.
        std::mem::forget(connection);
    }
    let mut tenths = [0_usize; 10];
    while let Some(ended) = streams.join_next().await {
        let (age, status) = ended.unwrap();
        assert_eq!(status, (14, "the stream is old: reconnect".to_owned()));
        assert!((HOUR / 4 * 3..HOUR / 4 * 5 + Duration::from_secs(1)).contains(&age), "{age:?}");
        tenths[((age - HOUR / 4 * 3).as_secs() / 180).min(9) as usize] += 1;
    }
    assert!(tenths.iter().all(|tenth| (10..90).contains(tenth)), "{tenths:?}");
    assert_eq!(plane.count.all(), (STREAMS, STREAMS, STREAMS));
}

#[tokio::test(start_paused = true)]
async fn rule_093_a_stream_without_an_age_stays() {
    let plane = Plane::small();
    let served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    let response = call.delta().await.unwrap();
    call.send(&ack(&response));
    assert!(tokio::time::timeout(100 * HOUR, call.message()).await.is_err());
    assert_eq!(plane.count.all(), (1, 0, 0));
}

/// Nobody wakes the stream, and nothing comes in: its own timer has it speak.
#[tokio::test(start_paused = true)]
async fn rule_111_what_lives_for_a_time_is_refreshed_over_grpc_by_the_stream_s_own_timer() {
    let ttl = Duration::from_secs(60);
    let plane = Plane::with(["a".to_owned()], 10, Some(ttl));
    let served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    let mut request = delta_wildcard();
    request.node = node(&["xds.config.supports-resource-ttl"]);
    call.send(&request);
    let mut response = call.delta().await.unwrap();
    assert!(response.resources[0].ttl.is_some());
    for _ in 0..5 {
        call.send(&ack(&response));
        let sent = now();
        response = call.delta().await.unwrap();
        let waited = now() - sent;
        assert!((ttl / 4..ttl).contains(&waited), "{waited:?}");
        assert!(response.resources[0].resource.is_none(), "a heartbeat");
    }
}

/// Rule 137, the server's side: whoever pings is answered, however often.
#[tokio::test(start_paused = true)]
async fn rule_137_a_client_that_pings_every_second_stays_connected() {
    let plane = Plane::small();
    let served = plane.serve();
    let (requests, mut connection) = h2::client::handshake(served.connect_raw()).await.unwrap();
    let mut pings = connection.ping_pong().unwrap();
    let running = tokio::spawn(connection);
    for _ in 0..3600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        pings.ping(h2::Ping::opaque()).await.unwrap();
    }
    assert!(!running.is_finished());
    drop::<h2::client::SendRequest<bytes::Bytes>>(requests);
}
