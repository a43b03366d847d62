//! How requests come in.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::DeltaDiscoveryRequest;

use crate::call::{Call, Connection, ack, apart, delta_wildcard, framed, gzip};
use crate::plane::{Plane, Rules, Served};

#[tokio::test(start_paused = true)]
async fn requests_are_whole_however_they_are_cut() {
    let plane = Plane::small();
    let mut served = plane.serve();
    let connection = served.connect().await;
    let two = [framed(0, &delta_wildcard().encode_to_vec()), framed(0, &delta_wildcard().encode_to_vec())].concat();
    for size in [1, 4, 5, 7, two.len()] {
        let mut call = connection.aggregated(Protocol::Delta).await;
        for piece in two.chunks(size) {
            call.send_bytes(Bytes::copy_from_slice(piece), false);
        }
        call.message().await.unwrap();
        let handle = served.opened().await.handle;
        let mut requests = 0;
        while requests < 2 {
            tokio::task::yield_now().await;
            handle.inspect(&mut |stream| requests = stream.sessions().map(|session| session.tally.requests).sum());
        }
        assert_eq!(requests, 2);
    }
}

/// The length that is said counts: nobody waits for, or keeps, what will not be taken.
#[tokio::test(start_paused = true)]
async fn rule_132_a_request_over_the_limit_is_refused_by_its_length_alone() {
    let plane = Plane::small();
    let request = delta_wildcard().encode_to_vec();
    let served = plane.serve_with(Rules { max_request_bytes: Some(request.len()), ..Rules::default() });
    let connection = served.connect().await;

    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    assert!(call.message().await.is_some(), "exactly the limit");

    let mut call = connection.aggregated(Protocol::Delta).await;
    let longer = request.len() + 1;
    call.send_bytes(framed(0, &vec![0; longer]).slice(..5), false);
    let words = format!("a request of {longer} bytes, {} are taken", request.len());
    assert_eq!(call.status().await, (8, words));
}

/// Who sends most of a request that is not whole loses it, when there is too much: who sends less does not.
#[tokio::test(start_paused = true)]
async fn unfinished_requests_take_so_much_memory_together() {
    let plane = Plane::small();
    let served = plane.serve_with(Rules { max_unfinished_bytes: Some(1000), ..Rules::default() });
    let connection = served.connect().await;
    let words = "more than 1000 bytes of unfinished requests on all streams".to_owned();
    let begun = framed(0, &vec![0; 100_000]);
    let (mut most, mut less) =
        (connection.aggregated(Protocol::Delta).await, connection.aggregated(Protocol::Delta).await);
    most.send_bytes(begun.slice(..600), false);
    less.send_bytes(begun.slice(..300), false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let whole = framed(0, &delta_wildcard().encode_to_vec());
    let mut good = connection.aggregated(Protocol::Delta).await;
    good.send_bytes(whole.slice(..10), false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    less.send_bytes(begun.slice(300..500), false);
    assert_eq!(most.status().await, (8, words.clone()));
    good.send_bytes(whole.slice(10..), false);
    assert!(good.message().await.is_some());
    // What was given up made room, and what goes beyond alone is given up itself.
    less.send_bytes(begun.slice(500..1001), false);
    assert_eq!(less.status().await, (8, words));
    let mut next = connection.aggregated(Protocol::Delta).await;
    next.send_bytes(begun.slice(..1000), false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    next.send_bytes(Bytes::new(), true);
    assert_eq!(next.status().await, (13, "the requests end within one".to_owned()));
}

/// A client may have nothing to ask for yet, but not forever.
#[tokio::test(start_paused = true)]
async fn a_stream_has_some_time_for_its_first_request() {
    let within = Duration::from_secs(300);
    let served = Plane::small().serve_with(Rules { first_request_within: Some(within), ..Rules::default() });
    let connection = served.connect().await;
    let mut silent = connection.aggregated(Protocol::Delta).await;
    let mut late = connection.aggregated(Protocol::Delta).await;
    tokio::time::sleep(within - Duration::from_secs(1)).await;
    late.send(&delta_wildcard());
    assert!(late.message().await.is_some());
    assert_eq!(silent.status().await, (14, "no request came within 300s".to_owned()));
    tokio::time::sleep(2 * within).await;
    late.send_bytes(Bytes::new(), true);
    assert_eq!(late.status().await, (0, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_compressed_request_that_was_not_declared_ends_the_stream() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    for (flag, words) in [
        (1, "a compressed request without grpc-encoding"),
        (2, "a request with the flag 2"),
        (255, "a request with the flag 255"),
    ] {
        let mut call = connection.aggregated(Protocol::Delta).await;
        call.send_bytes(framed(flag, &delta_wildcard().encode_to_vec()), false);
        assert_eq!(call.status().await, (13, words.to_owned()));
    }
}

async fn compressing(served: &Served) -> (Connection, Call) {
    let connection = served.connect().await;
    let headers = [("content-type", "application/grpc"), ("grpc-encoding", "gzip")];
    let call = connection.call(Protocol::Delta.aggregated_method(), &headers).await;
    (connection, call)
}

/// What is sent to many is not compressed for one.
#[tokio::test(start_paused = true)]
async fn compressed_requests_are_taken_and_responses_are_not_compressed_and_say_so() {
    let _turn = apart().await;
    let plane = Plane::with((0..3000).map(|at| format!("cluster-{at}")), 10, None);
    let served = plane.serve();
    let (_connection, mut call) = compressing(&served).await;
    call.send_bytes(framed(1, &gzip(&delta_wildcard())), false);
    let response = call.response().await;
    assert_eq!(response.headers()["grpc-encoding"], "identity");
    assert_eq!(response.headers()["grpc-accept-encoding"], "gzip,identity");
    let response = call.delta().await.unwrap();
    assert!(!response.resources.is_empty());
    call.send(&ack(&response));

    // One that is handled apart, though it is short as it comes.
    let (_connection, mut call) = compressing(&served).await;
    let names =
        (0..3000).map(|at| format!("cluster-{at}{}", if at == 0 { "" } else { "-of-nobody-whose-name-is-long" }));
    let request = DeltaDiscoveryRequest { resource_names_subscribe: names.collect(), ..delta_wildcard() };
    assert!(request.encoded_len() > 64 << 10);
    call.send_bytes(framed(1, &gzip(&request)), false);
    let response = call.delta().await.unwrap();
    assert_eq!(response.resources[0].name, "cluster-0");
}

/// A bomb: a few bytes that are many.
#[tokio::test(start_paused = true)]
async fn rule_132_a_compressed_request_over_the_limit_is_refused_when_it_gets_there() {
    let _turn = apart().await;
    let served = Plane::small().serve_with(Rules { max_request_bytes: Some(100_000), ..Rules::default() });
    let packed = gzip(&DeltaDiscoveryRequest { type_url: "a".repeat(1 << 20), ..Default::default() });
    assert!(packed.len() < 10_000);
    let (_connection, mut call) = compressing(&served).await;
    call.send_bytes(framed(1, &packed), false);
    assert_eq!(call.status().await, (8, "a decompressed request of 100001 bytes, 100000 are taken".to_owned()));

    let (_connection, mut call) = compressing(&served).await;
    call.send_bytes(framed(1, b"plain"), false);
    let (code, words) = call.status().await;
    assert_eq!(code, 13);
    assert!(words.starts_with("a request that does not decompress: "), "{words}");
}

/// A client that does not read while it writes is read from nevertheless: two full windows do not wait for each other.
#[tokio::test(start_paused = true)]
async fn requests_are_read_while_responses_are_not() {
    let _turn = apart().await;
    let plane = Plane::with((0..200).map(|at| format!("cluster-{at}")), 4096, None);
    // A request of more than a MiB waits for its turn, and is kept meanwhile.
    let served = plane.serve_with(Rules { max_unfinished_bytes: Some(8 << 20), ..Rules::default() });
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    call.response().await;
    // More than the windows of stream and connection hold.
    let mut request = delta_wildcard();
    request.resource_names_subscribe = vec!["x".repeat(1 << 20)];
    for _ in 0..8 {
        let mut left = framed(0, &request.encode_to_vec());
        call.sending.reserve_capacity(left.len());
        while !left.is_empty() {
            let room = std::future::poll_fn(|cx| call.sending.poll_capacity(cx)).await.unwrap().unwrap();
            call.send_bytes(left.split_to(room.min(left.len())), false);
        }
    }
    let mut response = call.delta().await.unwrap();
    let mut names = 0;
    while names < 200 {
        names += response.resources.len();
        call.send(&ack(&response));
        if names < 200 {
            response = call.delta().await.unwrap();
        }
    }
}
