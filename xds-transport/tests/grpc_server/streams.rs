//! The streams of a service from outside: how many, and their end.

use std::time::Duration;

use tokio::sync::oneshot;
use tonic::Status;
use xds_transport::Protocol;
use xds_transport::grpc::server::{Accept, Accepted, ControlPlane, Opened, Service, Shared};
use xdstp_cache::Cache;

use crate::call::{Call, ack, delta_wildcard, status_of};
use crate::served::{Cluster, InMemory};

fn plane() -> ControlPlane {
    let plane = ControlPlane::new();
    plane.put("cart", &Cluster::new("cart", "")).unwrap();
    plane
}

async fn begin(call: &mut Call) {
    call.send(&delta_wildcard());
    let response = call.delta().await.unwrap();
    call.send(&ack(&response));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drains_ends_its_streams_and_returns() {
    let service = plane().service();
    let streams = service.streams();
    let (signal, signalled) = oneshot::channel::<()>();
    let until = streams.drain_on(async move { _ = signalled.await });
    let served = InMemory::serve_until(service.into_routes(), until);
    let connection = served.connect().await;
    let mut calls = [connection.aggregated(Protocol::Delta).await, connection.aggregated(Protocol::Delta).await];
    for call in &mut calls {
        begin(call).await;
    }
    assert_eq!(streams.count(), 2);
    signal.send(()).unwrap();
    for call in &mut calls {
        assert_eq!(call.status().await, (14, "the server is shutting down".to_owned()));
    }
    streams.drained().await;
    served.serving.await.unwrap();
    assert_eq!(streams.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_streams_are_ended_with_a_reason_and_others_may_come() {
    let service = plane().service();
    let streams = service.streams();
    let served = InMemory::serve(service.into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    begin(&mut call).await;
    streams.end_all("a new version");
    assert_eq!(call.status().await, (14, "a new version".to_owned()));
    let mut call = connection.aggregated(Protocol::Delta).await;
    begin(&mut call).await;
    streams.drain("this one goes");
    assert_eq!(call.status().await, (14, "this one goes".to_owned()));
    let mut late = connection.aggregated(Protocol::Delta).await;
    assert_eq!(status_of(late.response().await.headers()), (14, "this one goes".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn there_are_as_many_streams_as_there_may_be() {
    let service = plane().service().max_streams(2);
    let streams = service.streams();
    let served = InMemory::serve(service.into_routes());
    let connection = served.connect().await;
    let mut calls = [connection.aggregated(Protocol::Delta).await, connection.aggregated(Protocol::Delta).await];
    for call in &mut calls {
        begin(call).await;
    }
    let mut third = connection.aggregated(Protocol::Delta).await;
    let words = "there are 2 streams, as many as there may be".to_owned();
    assert_eq!(status_of(third.response().await.headers()), (8, words));
    drop(calls);
    streams.drained().await;
    begin(&mut connection.aggregated(Protocol::Delta).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_gets_as_old_as_it_may() {
    let hour = Duration::from_secs(3600);
    let served = InMemory::serve(plane().service().max_stream_age(hour).into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    begin(&mut call).await;
    let start = tokio::time::Instant::now();
    assert_eq!(call.status().await, (14, "the stream is old: reconnect".to_owned()));
    assert!((hour / 2..hour * 2).contains(&start.elapsed()));
}

/// Decides about who says so, and never comes to an end with others.
struct Undecided(Shared);

impl Accept for Undecided {
    type Source = <Shared as Accept>::Source;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Self::Source>, Status> {
        match opened.request.headers.get("authorization").map(http::HeaderValue::as_bytes) {
            Some(b"me") => self.0.accept(opened).await,
            Some(_) => Err(Status::permission_denied("not you")),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_accepts_may_take_its_time_and_refuse_and_nobody_else_waits() {
    let plane = plane();
    let service = Service::new(Undecided(plane.shared().clone()));
    let streams = service.streams();
    let served = InMemory::serve(service.into_routes());
    let connection = served.connect().await;
    let path = Protocol::Delta.aggregated_method();
    let content = ("content-type", "application/grpc");
    let mut waits = connection.call(path, &[content]).await;
    let mut refused = connection.call(path, &[content, ("authorization", "you")]).await;
    assert_eq!(status_of(refused.response().await.headers()), (7, "not you".to_owned()));
    begin(&mut connection.call(path, &[content, ("authorization", "me")]).await).await;
    streams.end_all("enough");
    assert_eq!(status_of(waits.response().await.headers()), (14, "enough".to_owned()), "though nobody has decided");
}

/// A cache of one's own is as good.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_counted_no_more() {
    let service = Shared::new(Cache::new(Default::default()), Default::default()).service();
    let streams = service.streams();
    let served = InMemory::serve(service.into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    call.response().await;
    assert_eq!(streams.count(), 1);
    connection.cut();
    streams.drained().await;
}
