//! Clients that do not read have the server wait, over real streams.

use std::time::Duration;

use hyper_util::rt::TokioIo;
use tonic::transport::Endpoint;
use xds_transport::Protocol;
use xds_transport::grpc::client::Ads;
use xds_transport::grpc::server::StreamHandle;
use xds_transport::server::Tally;

use crate::call::{delta_wildcard, sotw_wildcard};
use crate::plane::Plane;

const MIB: usize = 1 << 20;

/// What the only session of a stream did, once it does nothing more.
async fn at_rest(handle: &StreamHandle) -> Tally {
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut tally = Tally::default();
    handle.inspect(&mut |stream| stream.sessions().for_each(|session| tally.add(session.tally)));
    tally
}

/// The windows of HTTP/2 are full: neither changes, nor wakes, nor acknowledgements have it write more. Who reads again
/// is sent what is newest.
#[tokio::test(start_paused = true)]
async fn rule_130_a_client_that_does_not_read_has_the_server_wait() {
    let plane = Plane::with((0..40).map(|at| format!("cluster-{at:02}")), MIB / 4, None);
    let mut served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    call.response().await;
    let opened = served.opened().await;
    let stalled = at_rest(&opened.handle).await;
    assert!((1..=2).contains(&stalled.responses), "{stalled:?}");
    for change in 0..100 {
        plane.put("cluster-39", change, None);
        opened.wake.wake();
        // As if it had read: nonces can be guessed.
        let mut ack = delta_wildcard();
        ack.response_nonce = stalled.responses.to_string();
        call.send(&ack);
    }
    let still = at_rest(&opened.handle).await;
    assert_eq!((still.responses, still.bytes, still.requests), (stalled.responses, stalled.bytes, 101));
    let mut sent = Vec::new();
    while sent.len() < 40 {
        let response = call.delta().await.unwrap();
        call.send(&crate::call::ack(&response));
        sent.extend(response.resources);
    }
    let changed: Vec<_> = sent.iter().filter(|resource| resource.name == "cluster-39").collect();
    assert_eq!(changed.len(), 1);
    assert!((90..200).contains(&changed[0].resource.as_ref().unwrap().value.len()), "the newest alone");
}

#[tokio::test(start_paused = true)]
async fn rule_130_over_sotw_too() {
    let plane = Plane::with((0..40).map(|at| format!("cluster-{at:02}")), MIB / 4, None);
    let mut served = plane.serve();
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Sotw).await;
    call.send(&sotw_wildcard());
    call.response().await;
    let opened = served.opened().await;
    for change in 0..100 {
        plane.put("cluster-39", change, None);
        opened.wake.wake();
    }
    assert_eq!(at_rest(&opened.handle).await.responses, 1);
    assert_eq!(call.sotw().await.unwrap().resources.len(), 40);
}

/// Our own client: what was not asked for with `next` is not read, and stays with the server.
#[tokio::test(start_paused = true)]
async fn rule_130_the_client_reads_no_further_than_it_is_asked_to() {
    let plane = Plane::with((0..6).map(|at| format!("cluster-{at}")), 6 * MIB, None);
    let mut served = plane.serve();
    let mut near = Some(TokioIo::new(served.connect_raw()));
    let connector = tower::service_fn(move |_| {
        std::future::ready(near.take().ok_or_else(|| std::io::Error::other("one connection")))
    });
    let channel = Endpoint::from_static("http://in.memory").connect_with_connector(connector).await.unwrap();
    let mut ads = Ads::open(channel, Protocol::Delta, 64 * MIB);
    let mut requests = vec![prost::Message::encode_to_vec(&delta_wildcard())];
    assert!(ads.next(|| requests.pop().map(Into::into)).await.unwrap().is_some());
    let opened = served.opened().await;
    let stalled = at_rest(&opened.handle).await;
    // The first, and one that is on its way; not all that may go out before an ACK.
    assert_eq!(stalled.responses, 2, "{stalled:?}");
    assert!(ads.next(|| None).await.unwrap().is_some());
    assert_eq!(at_rest(&opened.handle).await.responses, 3, "one read, one more");
}
