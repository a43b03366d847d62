//! Load reports over gRPC, to a control plane that takes them beside what it serves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::transport::Server as GrpcServer;
use xds_transport::grpc::server::{ControlPlane, LoadReporting, LoadReportingService, LoadReports};
use xds_transport::wire::load_report::{ClusterStats, LoadStatsResponse, SEND_ALL_CLUSTERS};
use xds_transport::wire::{Duration as WireDuration, Locality, Node};
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::{Backoff, Client, Endpoint};

struct Passed(mpsc::UnboundedSender<(Node, Vec<ClusterStats>)>);

impl LoadReporting for Passed {
    async fn take(&self, mut reports: LoadReports) -> Result<(), Status> {
        reports.ask(LoadStatsResponse {
            send_all_clusters: true,
            load_reporting_interval: Some(WireDuration { seconds: 1, nanos: 0 }),
            ..LoadStatsResponse::default()
        });
        while let Some(stats) = reports.next().await? {
            let _ = self.0.send((reports.node().clone(), stats));
        }
        Ok(())
    }
}

#[tokio::test]
async fn r029_load_is_reported_over_the_connection_of_the_server_and_anew_after_its_stream_ended() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (reported, mut reports) = mpsc::unbounded_channel();
    let service = LoadReportingService::new(Passed(reported));
    let streams = service.streams();
    let routes = ControlPlane::new().service().into_routes().add_service(service);
    tokio::spawn(GrpcServer::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)));

    let node = Node { id: "me".into(), ..Node::default() };
    let bootstrap = Bootstrap::new(Server::new(&address, ChannelCreds::Insecure)).with_node(node);
    let at_once = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    let client = Client::builder(bootstrap).backoff(at_once).build().unwrap();
    let reporter = client.load_reporter(&address).unwrap();
    let locality = reporter.cluster("web", "").locality(&Locality::default());
    locality.call_started();
    let (node, stats) = reports.recv().await.unwrap();
    assert_eq!((&*node.id, &*stats[0].cluster_name), ("me", "web"));
    assert!(node.client_features.iter().any(|feature| feature == SEND_ALL_CLUSTERS));
    assert_eq!(stats[0].upstream_locality_stats[0].total_issued_requests, 1);
    let interval = stats[0].load_report_interval.unwrap();
    assert!(interval.seconds >= 1, "{interval:?}");

    streams.end_all("for a while");
    locality.call_finished(true, &[]);
    let mut finished = 0;
    while finished == 0 {
        let (_, stats) = reports.recv().await.unwrap();
        finished = stats[0].upstream_locality_stats[0].total_successful_requests;
    }
    assert_eq!(finished, 1);
    // What was counted last is there before the stream ends.
    locality.call_started();
    drop((reporter, locality));
    streams.drained().await;
    let mut issued = 0;
    while let Ok((_, stats)) = reports.try_recv() {
        issued +=
            stats.iter().flat_map(|of| &of.upstream_locality_stats).map(|of| of.total_issued_requests).sum::<u64>();
    }
    assert_eq!(issued, 1);

    // A client of one server reports to that.
    let endpoint = Endpoint::new(&address).unwrap();
    let client = Client::connect(endpoint);
    let watch = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "web");
    let reporter = watch.load_reporter().unwrap();
    assert_eq!(watch.server().as_ref(), Some(reporter.server()));
    let _cluster = reporter.cluster("other", "");
    while reports.recv().await.unwrap().1.iter().all(|stats| stats.cluster_name != "other") {}
}
