//! A request of many names takes long. The runtime has one thread here: whoever kept it would have all others wait.

use std::time::Duration;

use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::CDS;
use crate::call::{ack, apart, delta_wildcard, framed, gzip};
use crate::plane::{Plane, WAITS};

/// More than are handled at once; to subscribe to the last takes until the plane lets it.
fn many() -> Vec<String> {
    (0..1000).map(|at| format!("none-{at:04}")).chain([WAITS.to_owned()]).collect()
}

fn delta_of_many() -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest { type_url: CDS.into(), resource_names_subscribe: many(), ..Default::default() }
}

/// Everything that can happen has happened: the clock stands while something is done apart.
async fn at_rest() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn others_are_served_while_a_client_asks_for_many_names() {
    let _turn = apart().await;
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let plane = Plane::small();
        let mut served = plane.serve();
        let connection = served.connect().await;
        let mut long = connection.aggregated(protocol).await;
        match protocol {
            Protocol::Delta => long.send(&delta_of_many()),
            Protocol::Sotw => {
                long.send(&DiscoveryRequest { type_url: CDS.into(), resource_names: many(), ..Default::default() });
            }
        }
        let opened = served.opened().await;
        plane.waits.begun().await;
        // The stream has something to say in between, and cannot say it.
        opened.wake.wake();
        let mut other = connection.aggregated(Protocol::Delta).await;
        other.send(&delta_wildcard());
        assert_eq!(other.delta().await.unwrap().resources.len(), 1);
        plane.waits.end();
        match protocol {
            Protocol::Delta => assert_eq!(long.delta().await.unwrap().removed_resources.len(), 1001),
            Protocol::Sotw => assert_eq!(long.sotw().await.unwrap().resources.len(), 0),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_meanwhile_is_closed_when_it_is_done() {
    let _turn = apart().await;
    let plane = Plane::small();
    let mut served = plane.serve();
    let connection = served.connect().await;
    let mut long = connection.aggregated(Protocol::Delta).await;
    long.send(&delta_of_many());
    served.opened().await;
    plane.waits.begun().await;
    connection.cut();
    let connection = served.connect().await;
    let mut other = connection.aggregated(Protocol::Delta).await;
    other.send(&delta_wildcard());
    let told = other.delta().await.unwrap();
    other.send(&ack(&told));
    assert_eq!(plane.count.all(), (2, 0, 0));
    plane.waits.end();
    at_rest().await;
    assert_eq!(plane.count.all(), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_had_many_names_is_closed_when_it_leaves() {
    let _turn = apart().await;
    let plane = Plane::small();
    let served = plane.serve();
    plane.waits.end();
    let connection = served.connect().await;
    let mut long = connection.aggregated(Protocol::Delta).await;
    long.send(&delta_of_many());
    long.delta().await.unwrap();
    connection.cut();
    at_rest().await;
    assert_eq!(plane.count.all(), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_sends_one_very_long_request_waits_for_one_of_who_sends_many() {
    let _turn = apart().await;
    let plane = Plane::small();
    let mut served = plane.serve();
    let many: Vec<_> = (0..1000).map(|at| format!("{at:0>100}")).collect();
    let (mut calls, mut bytes) = (Vec::new(), 0);
    for (at, client) in [1, 1, 1, 1, 1, 2].into_iter().enumerate() {
        let headers =
            [("content-type", "application/grpc"), ("grpc-encoding", "gzip"), ("x-client", &client.to_string())];
        let connection = served.connect().await;
        let mut call = connection.call(Protocol::Delta.aggregated_method(), &headers).await;
        // Compressed, it may be of any length: there is one place for that.
        let mut resource_names_subscribe = many.clone();
        resource_names_subscribe.extend((at == 0).then(|| WAITS.to_owned()));
        let request = DeltaDiscoveryRequest { type_url: CDS.into(), resource_names_subscribe, ..Default::default() };
        let packed = gzip(&request);
        call.send_bytes(framed(1, &packed), false);
        calls.push((connection, call));
        served.opened().await;
        // In the line, in this order.
        bytes += packed.len();
        served.keeps(bytes).await;
    }
    plane.waits.begun().await;
    plane.waits.end();
    for (_, call) in &mut calls {
        assert!(call.delta().await.unwrap().removed_resources.len() >= 1000);
    }
    // The first has the place, the second is next in the line.
    assert_eq!(plane.count.clients(), [1, 1, 2, 1, 1, 1].map(Some));
}
