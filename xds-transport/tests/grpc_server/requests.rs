//! How requests come in.

use bytes::Bytes;
use prost::Message;
use xds_transport::server::Variant;

use crate::call::{ack, delta_wildcard, framed};
use crate::plane::{Plane, Rules};

#[tokio::test(start_paused = true)]
async fn requests_are_whole_however_they_are_cut() {
    let plane = Plane::small();
    let mut served = plane.serve();
    let connection = served.connect().await;
    let two = [framed(0, &delta_wildcard().encode_to_vec()), framed(0, &delta_wildcard().encode_to_vec())].concat();
    for size in [1, 4, 5, 7, two.len()] {
        let mut call = connection.aggregated(Variant::Delta).await;
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

    let mut call = connection.aggregated(Variant::Delta).await;
    call.send(&delta_wildcard());
    assert!(call.message().await.is_some(), "exactly the limit");

    let mut call = connection.aggregated(Variant::Delta).await;
    let longer = request.len() + 1;
    call.send_bytes(framed(0, &vec![0; longer]).slice(..5), false);
    let words = format!("a request of {longer} bytes, {} are taken", request.len());
    assert_eq!(call.status().await, (8, words));
}

#[tokio::test(start_paused = true)]
async fn a_compressed_request_that_was_not_declared_ends_the_stream() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    for flag in [1, 2, 255] {
        let mut call = connection.aggregated(Variant::Delta).await;
        call.send_bytes(framed(flag, &delta_wildcard().encode_to_vec()), false);
        assert_eq!(call.status().await, (13, "a compressed request without grpc-encoding".to_owned()));
    }
}

/// A client that does not read while it writes is read from nevertheless: two full windows do not wait for each other.
#[tokio::test(start_paused = true)]
async fn requests_are_read_while_responses_are_not() {
    let plane = Plane::with((0..200).map(|at| format!("cluster-{at}")), 4096, None);
    let served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Variant::Delta).await;
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
