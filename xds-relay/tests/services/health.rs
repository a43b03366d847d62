use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::stream::{Call, framed, in_time};
use crate::{Running, no_resources};

pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";
pub(super) const WATCH: &str = "/grpc.health.v1.Health/Watch";
pub(super) const SERVING: &[u8] = &[8, 1];
pub(super) const NOT_SERVING: &[u8] = &[8, 2];
const ADS: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";

pub(super) async fn asked(relay: &Running, path: &str, service: &str) -> Call {
    let mut call = Call::open(relay.address, path).await;
    let mut request = Vec::new();
    if !service.is_empty() {
        request.extend([0x0a, u8::try_from(service.len()).unwrap()]);
        request.extend(service.bytes());
    }
    call.sending.send_data(framed(&request), true).unwrap();
    call
}

#[tokio::test]
async fn a_relay_that_is_ready_serves_and_one_that_drains_does_not() {
    let directory = no_resources();
    let mut relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let mut watches = Vec::new();
    for service in ["", ADS] {
        let mut check = asked(&relay, CHECK, service).await;
        assert_eq!(check.message().await, Some(Bytes::from_static(SERVING)));
        assert_eq!(check.status().await.0, 0);
        let mut watch = asked(&relay, WATCH, service).await;
        assert_eq!(watch.message().await, Some(Bytes::from_static(SERVING)));
        watches.push(watch);
    }
    assert_eq!(asked(&relay, CHECK, "somebody.Else").await.status().await.0, 5);

    relay.stop();
    for watch in &mut watches {
        assert_eq!(watch.message().await, Some(Bytes::from_static(NOT_SERVING)));
        assert_eq!(watch.message().await, None);
    }
    in_time(relay.stopped()).await;
}

/// Of a question that is not whole nothing else bounds what is kept.
#[tokio::test]
async fn a_question_about_health_is_short() {
    let directory = no_resources();
    let relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    for path in [CHECK, WATCH] {
        let mut call = Call::open(relay.address, path).await;
        // It announces four MiB, and says nothing of it.
        call.sending.send_data(Bytes::from_static(&[0, 0, 0x40, 0, 0]), false).unwrap();
        assert_eq!(call.status().await.0, 11, "{path}: OUT_OF_RANGE");
    }
}

/// One that says nothing, one that is half a beginning, and one whose last call is over.
#[tokio::test]
async fn a_connection_without_a_call_does_not_hold_up_a_drain() {
    let directory = no_resources();
    let mut relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let silent = TcpStream::connect(relay.address).await.unwrap();
    let mut begun = TcpStream::connect(relay.address).await.unwrap();
    begun.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    let mut check = asked(&relay, CHECK, "").await;
    assert_eq!(check.message().await, Some(Bytes::from_static(SERVING)));
    assert_eq!(check.status().await.0, 0);

    relay.stop();
    in_time(relay.stopped()).await;
    drop((silent, begun, check));
}
