//! Collectors of traces that do not do as they should: nobody who is served notices, and what is lost is counted.

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::Running;
use crate::loops::page;
use crate::stream::{Call, Origin, Served, in_time};
use crate::traces::{Collector, answer, client, say};

/// Spans that are told at once: as many as go together.
const AT_ONCE: usize = 512;

/// As many updates come to far more spans than wait for a collector.
const MANY: usize = 1500;

/// A relay that tells everything to a collector there, its origin, and a client.
struct World {
    relay: Running,
    client: Call,
    answers: h2::SendStream<bytes::Bytes>,
    versions: usize,
    _served: Served,
}

impl World {
    async fn before(collector: &str) -> Self {
        let origin = Origin::listen().await;
        let up = format!("[{{ name: up, server: '{}', protocol: sotw }}]", origin.address());
        let more = format!("traces: {{ otlp: 'http://{collector}', one_in: 1 }}\ndrain_delay: 0s");
        let relay = Running::start_with(&up, &more).await;
        let client = client(&relay, "a").await;
        let mut served = origin.accept().await;
        let answers = served.respond();
        Self { relay, client, answers, versions: 0, _served: served }
    }

    /// So many updates come, one after the other, and each is accepted before the next.
    async fn updates(&mut self, many: usize) {
        for _ in 0..many {
            self.versions += 1;
            say(&mut self.answers, &format!("{:06}", self.versions));
            in_time(answer(&mut self.client, true)).await;
        }
    }

    async fn lost(&self) -> u64 {
        let metrics = page(&self.relay, "/metrics").await;
        let line = metrics.lines().find_map(|line| line.strip_prefix("xds_relay_trace_spans_lost_total "));
        line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
    }

    async fn until_lost(&self, is_so: impl Fn(u64) -> bool) {
        in_time(async {
            while !is_so(self.lost().await) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Whatever waits for the collector, it ends when its streams have.
    async fn ends(self) {
        let Self { mut relay, mut client, .. } = self;
        relay.stop();
        in_time(async { while client.message().await.is_some() {} }).await;
        drop(client);
        in_time(relay.stopped()).await;
    }
}

/// Refuses with this, or never answers.
struct Answering(Option<Status>);

#[tonic::async_trait]
impl TraceService for Answering {
    async fn export(
        &self,
        _: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        match &self.0 {
            Some(status) => Err(status.clone()),
            None => std::future::pending().await,
        }
    }
}

/// Where somebody answers so.
async fn answering(status: Option<Status>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(Answering(status)));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_connections_and_never_reads_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let held = tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().await.unwrap());
        }
    });
    let mut world = World::before(&address).await;
    world.updates(MANY).await;
    // What there is no room for does not wait.
    world.until_lost(|lost| lost > 0).await;
    world.ends().await;
    held.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_answers_is_not_waited_for() {
    let mut world = World::before(&answering(None).await).await;
    world.updates(MANY).await;
    // What there is no room for does not wait.
    world.until_lost(|lost| lost > 0).await;
    world.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_refuses_is_lost_and_counted() {
    let mut world = World::before(&answering(Some(Status::permission_denied("not you"))).await).await;
    world.updates(AT_ONCE).await;
    world.until_lost(|lost| lost >= AT_ONCE as u64).await;
    world.updates(1).await;
    world.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_speaks_something_else_is_not_listened_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let garbage = tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let _ = connection.write_all(&[0xff; 4096]).await;
        }
    });
    let mut world = World::before(&address).await;
    world.updates(AT_ONCE).await;
    world.until_lost(|lost| lost >= AT_ONCE as u64).await;
    world.updates(1).await;
    world.ends().await;
    garbage.abort();
}

/// A collector in a runtime of its own, with which all its connections end.
fn running(collector: &Collector, listener: std::net::TcpListener) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = {
        let _inside = runtime.enter();
        TcpListener::from_std(listener).unwrap()
    };
    runtime.spawn(collector.serve(listener));
    runtime
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_goes_and_comes_back_is_told_what_happens_then() {
    let (first, second) = (Collector::default(), Collector::default());
    let told = async |collector: &Collector| {
        while collector.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let before = running(&first, listener);
    let mut world = World::before(&address.to_string()).await;
    world.updates(AT_ONCE).await;
    in_time(told(&first)).await;
    before.shutdown_background();
    world.updates(AT_ONCE).await;
    world.until_lost(|lost| lost > 0).await;
    let again = async {
        loop {
            match std::net::TcpListener::bind(address) {
                Ok(listener) => return listener,
                // The first one has it still.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let after = running(&second, in_time(again).await);
    world.updates(AT_ONCE).await;
    in_time(told(&second)).await;
    world.ends().await;
    after.shutdown_background();
}
