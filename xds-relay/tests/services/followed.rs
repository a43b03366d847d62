//! A relay that follows a control plane, and releases what that has by stages.

use prost::{Message, Name};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use xds_relay::api::{CandidateState, ReleasedScope};
use xds_relay::{Config, Relay};
use xds_transport::grpc::server::ControlPlane;

use crate::Running;
use crate::orders::order;
use crate::pages::page;
use crate::releases::{client, sent, told};

#[derive(Clone, PartialEq, Message)]
struct Cluster {
    #[prost(string, tag = "1")]
    name: String,
}

impl Name for Cluster {
    const NAME: &'static str = "Cluster";
    const PACKAGE: &'static str = "envoy.config.cluster.v3";
}

fn put(plane: &ControlPlane, name: &str) {
    plane.put(name, &Cluster { name: name.into() }).unwrap();
}

#[tokio::test]
async fn what_a_control_plane_has_is_released_by_stages_and_taken_back_with_it_dead() {
    let (directory, plane) = (tempfile::tempdir().unwrap(), ControlPlane::new());
    let directory = directory.path();
    put(&plane, "a");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let server = tonic::transport::Server::builder().add_routes(plane.service().into_routes());
    let serving = tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    // Over SotW it is at once known what all is.
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndrain: 1h\norigins: [{{ name: cp, server: '{at}', protocol: sotw, follow: {{}} }}]\n\
         state: {{ path: state }}\n\
         rollout: [{{ scope: old-style, settle: 0s, stages: [{{ match: {{ cluster: canary }}, hold: 1h }}, {{ percent: 100, hold: 1h }}] }}]\n"
    );
    let relay = Running::run(Relay::bind(Config::parse(directory.join("relay.yaml"), &text).unwrap()).await.unwrap());
    let stable = told(&relay, |scope| scope.stable.is_some()).await.stable;
    let (mut canary, mut other) = (client(&relay, "canary").await, client(&relay, "web").await);
    assert_eq!([sent(&mut canary, None).await, sent(&mut other, None).await], ["a", "a"]);

    put(&plane, "b");
    assert_eq!(sent(&mut canary, None).await, "b");
    let staged = told(&relay, |scope| scope.candidate.is_some()).await;
    assert_eq!((staged.clients.stable, staged.clients.candidate, &staged.stable), (1, 1, &stable));
    assert_eq!(sent(&mut client(&relay, "web").await, None).await, "a");

    assert_eq!(order(directory, "freeze", json!({}), None).await.unwrap().done, "frozen");
    assert_eq!(sent(&mut canary, None).await, "", "it is taken away");
    put(&plane, "c");
    let release = |scope: &ReleasedScope| scope.candidate.as_ref().map(|of| of.release.clone());
    let waits = told(&relay, |scope| release(scope).is_some() && release(scope) != release(&staged)).await;
    assert_eq!(waits.candidate.map(|of| of.state), Some(CandidateState::Frozen));
    assert_eq!(sent(&mut client(&relay, "canary").await, None).await, "a");
    assert_eq!(order(directory, "unfreeze", json!({}), None).await.unwrap().done, "unfrozen");
    assert_eq!(sent(&mut client(&relay, "canary").await, None).await, "a b c");

    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert_eq!(order(directory, "rollback", json!({}), None).await.unwrap().done, "rolled back");
    let rolled_back = told(&relay, |scope| scope.candidate.is_none()).await;
    assert_eq!((rolled_back.stable, rolled_back.refused.len()), (stable, 1));
    for cluster in ["canary", "web"] {
        assert_eq!(sent(&mut client(&relay, cluster).await, None).await, "a");
    }
    let (status, origins) = page(&relay, "/api/v1/origins").await;
    assert!(status == 200 && origins.contains("\"follow"), "its stream is shown: {origins}");
}
