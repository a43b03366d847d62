//! Load reports, as a client sends them and a control plane has them.

use std::sync::Mutex;

use tokio::sync::mpsc;
use tonic::Status;
use xds_transport::grpc::server::{ControlPlane, LoadReporting, LoadReportingService, LoadReports};
use xds_transport::wire::Duration;
use xds_transport::wire::load_report::{ClusterStats, LoadStatsRequest, LoadStatsResponse, METHOD};

use crate::call::{Call, Connection, framed, node, status_of};
use crate::served::InMemory;

const GRPC: (&str, &str) = ("content-type", "application/grpc");

/// Asks each client for what it was told last to, and passes on what that reports.
struct Passed {
    asks: Mutex<mpsc::UnboundedReceiver<LoadStatsResponse>>,
    reports: mpsc::UnboundedSender<(String, Vec<String>)>,
}

impl LoadReporting for Passed {
    async fn take(&self, mut reports: LoadReports) -> Result<(), Status> {
        loop {
            while let Ok(asked) = self.asks.lock().unwrap().try_recv() {
                reports.ask(asked);
            }
            let Some(stats) = reports.next().await? else { return Ok(()) };
            if stats.iter().any(|stats| stats.cluster_name == "secret") {
                return Err(Status::permission_denied("not yours"));
            }
            let names = stats.into_iter().map(|stats| stats.cluster_name).collect();
            self.reports.send((reports.node().id.clone(), names)).unwrap();
        }
    }
}

type Asks = mpsc::UnboundedSender<LoadStatsResponse>;
type Reported = mpsc::UnboundedReceiver<(String, Vec<String>)>;

fn service() -> (LoadReportingService<Passed>, Asks, Reported) {
    let (asks, asked) = mpsc::unbounded_channel();
    let (reports, reported) = mpsc::unbounded_channel();
    (LoadReportingService::new(Passed { asks: Mutex::new(asked), reports }), asks, reported)
}

fn serve(service: LoadReportingService<Passed>) -> InMemory {
    InMemory::serve(ControlPlane::new().service().into_routes().add_service(service))
}

fn asked(clusters: &[&str], seconds: i64) -> LoadStatsResponse {
    let clusters = clusters.iter().map(|&name| name.to_owned()).collect();
    LoadStatsResponse {
        clusters,
        load_reporting_interval: Some(Duration { seconds, nanos: 0 }),
        ..LoadStatsResponse::default()
    }
}

fn report(names: &[&str]) -> LoadStatsRequest {
    let stats = |name: &&str| ClusterStats { cluster_name: (*name).to_owned(), ..ClusterStats::default() };
    LoadStatsRequest { cluster_stats: names.iter().map(stats).collect(), ..LoadStatsRequest::default() }
}

fn first() -> LoadStatsRequest {
    LoadStatsRequest { node: node(&[]), ..LoadStatsRequest::default() }
}

async fn answer(call: &mut Call) -> LoadStatsResponse {
    prost::Message::decode(call.message().await.unwrap()).unwrap()
}

async fn opened(connection: &Connection) -> Call {
    let mut call = connection.call(METHOD, &[GRPC]).await;
    call.send(&first());
    call
}

fn of_me(names: &[&str]) -> (String, Vec<String>) {
    ("me".to_owned(), names.iter().map(|&name| name.to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_client_is_asked_and_what_it_reports_is_taken_with_its_node() {
    let (service, asks, mut reported) = service();
    let served = serve(service);
    let connection = served.connect().await;
    asks.send(asked(&["never told"], 1)).unwrap();
    asks.send(asked(&["web"], 10)).unwrap();
    let mut call = opened(&connection).await;
    assert_eq!(answer(&mut call).await, asked(&["web"], 10), "of what was not told yet the newest");
    for names in [&["web"][..], &[]] {
        call.send(&report(names));
        assert_eq!(reported.recv().await.unwrap(), of_me(names));
    }
    asks.send(asked(&["web", "cart"], 5)).unwrap();
    call.send(&report(&["web"]));
    assert_eq!(answer(&mut call).await, asked(&["web", "cart"], 5));
    call.send_bytes(Default::default(), true);
    assert_eq!(call.status().await.0, 0);

    // What comes with the node is a report, too.
    let mut call = connection.call(METHOD, &[GRPC]).await;
    call.send(&LoadStatsRequest { node: node(&[]), ..report(&["early"]) });
    assert_eq!((reported.recv().await, reported.recv().await), (Some(of_me(&["web"])), Some(of_me(&["early"]))));
    call.send(&report(&["secret"]));
    assert_eq!(call.status().await, (7, "not yours".into()));
}

#[tokio::test(start_paused = true)]
async fn a_report_has_so_many_bytes_and_clusters_and_a_service_so_many_streams() {
    let (service, _asks, mut reported) = service();
    let service = service.max_message_size(200).max_clusters(2).max_streams(1);
    let streams = service.streams();
    let served = serve(service);
    let connection = served.connect().await;
    let mut call = opened(&connection).await;
    call.send(&report(&["a", "b"]));
    assert_eq!(reported.recv().await.unwrap(), of_me(&["a", "b"]));
    assert_eq!(streams.count(), 1);
    let mut other = opened(&connection).await;
    let (code, words) = status_of(other.response().await.headers());
    assert_eq!((code, &*words), (8, "there are 1 streams, as many as there may be"));
    call.send(&report(&["a", "b", "c"]));
    assert_eq!(call.status().await, (8, "a report of 3 clusters, where there may be 2".into()));
    streams.drained().await;

    let mut call = opened(&connection).await;
    call.send(&report(&[&"long".repeat(100)]));
    let (code, words) = call.status().await;
    assert_eq!(code, 11, "{words}");

    let mut call = connection.call(METHOD, &[GRPC]).await;
    call.send(&LoadStatsRequest { node: vec![0xff].into(), ..LoadStatsRequest::default() });
    let (code, words) = call.status().await;
    assert!(code == 3 && words.starts_with("node: "), "{code} {words}");
    let mut call = connection.call(&METHOD.replace("Load", "No"), &[GRPC]).await;
    assert_eq!(status_of(call.response().await.headers()).0, 12);
    let mut call = connection.call(METHOD, &[GRPC]).await;
    call.send_bytes(framed(0, &[]), true);
    assert_eq!(call.status().await.0, 0, "a client that says nothing");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_drains_ends_its_streams_and_refuses_others() {
    let (service, _asks, mut reported) = service();
    let streams = service.streams();
    let served = serve(service);
    let connection = served.connect().await;
    let mut call = opened(&connection).await;
    call.send(&report(&["web"]));
    reported.recv().await.unwrap();
    streams.drain("we are closing");
    assert_eq!(call.status().await, (14, "we are closing".into()));
    streams.drained().await;
    let mut call = opened(&connection).await;
    assert_eq!(status_of(call.response().await.headers()), (14, "we are closing".into()));
}

#[tokio::test(start_paused = true)]
async fn a_report_has_ten_thousand_clusters_unless_somebody_says_otherwise() {
    let (service, _asks, mut reported) = service();
    let served = serve(service);
    let connection = served.connect().await;
    let mut call = opened(&connection).await;
    let names = vec!["c"; 10_001];
    call.send(&report(&names[1..]));
    assert_eq!(reported.recv().await.unwrap(), of_me(&names[1..]));
    call.send(&report(&names));
    assert_eq!(call.status().await.0, 8);
}
