//! Taking load reports from clients: the load reporting service (LRS).

use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use prost::Message;
use tokio_stream::Stream;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use crate::grpc::server::handle::Shared;
use crate::grpc::server::load_reports::{Line, LoadReports};
use crate::grpc::server::streams::{Entry, Streams};
use crate::wire::Node;
use crate::wire::load_report::{LoadStatsRequest, LoadStatsResponse, METHOD};

/// Who takes the load reports of clients.
pub trait LoadReporting: Send + Sync + 'static {
    /// A client opened a stream, and said who it is: it reports what it is [asked](LoadReports::ask) for. The stream is over
    /// when this is.
    ///
    /// # Errors
    /// What the stream ends with.
    fn take(&self, reports: LoadReports) -> impl Future<Output = Result<(), Status>> + Send;
}

impl<T: LoadReporting> LoadReporting for Arc<T> {
    fn take(&self, reports: LoadReports) -> impl Future<Output = Result<(), Status>> + Send {
        (**self).take(reports)
    }
}

/// Serves the load reporting service: clients tell how many requests they sent where, and how those fared.
///
/// ```no_run
/// use tonic::Status;
/// use xds_transport::grpc::server::{ControlPlane, LoadReporting, LoadReportingService, LoadReports};
/// use xds_transport::wire::Duration;
/// use xds_transport::wire::load_report::LoadStatsResponse;
///
/// struct Printed;
///
/// impl LoadReporting for Printed {
///     async fn take(&self, mut reports: LoadReports) -> Result<(), Status> {
///         let clusters = vec!["web".to_owned()];
///         let load_reporting_interval = Some(Duration { seconds: 10, nanos: 0 });
///         reports.ask(LoadStatsResponse { clusters, load_reporting_interval, ..Default::default() });
///         while let Some(clusters) = reports.next().await? {
///             println!("{}: {clusters:?}", reports.node().id);
///         }
///         Ok(())
///     }
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let routes = ControlPlane::new().service().into_routes().add_service(LoadReportingService::new(Printed));
/// tonic::transport::Server::builder().add_routes(routes).serve("[::1]:18000".parse()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LoadReportingService<T> {
    takes: Arc<T>,
    bounds: Bounds,
    streams: Streams,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    bytes: usize,
    clusters: usize,
    streams: Option<usize>,
}

impl<T: LoadReporting> LoadReportingService<T> {
    /// Has `takes` take the reports.
    pub fn new(takes: T) -> Self {
        let bounds = Bounds { bytes: 4 << 20, clusters: 10_000, streams: None };
        Self { takes: Arc::new(takes), bounds, streams: Streams::default() }
    }

    /// Takes reports of up to this many bytes: 4 MiB otherwise. The stream of a client that sends more ends with
    /// OUT_OF_RANGE.
    #[must_use]
    pub fn max_message_size(self, bytes: usize) -> Self {
        Self { bounds: Bounds { bytes, ..self.bounds }, ..self }
    }

    /// Takes reports of up to this many clusters: ten thousand otherwise. The stream of a client that sends more ends with
    /// RESOURCE_EXHAUSTED.
    #[must_use]
    pub fn max_clusters(self, clusters: usize) -> Self {
        Self { bounds: Bounds { clusters, ..self.bounds }, ..self }
    }

    /// Has up to this many streams at a time: any number otherwise. Others are refused with RESOURCE_EXHAUSTED.
    #[must_use]
    pub fn max_streams(self, streams: usize) -> Self {
        Self { bounds: Bounds { streams: Some(streams), ..self.bounds }, ..self }
    }

    /// Its streams, to count, end and drain.
    pub fn streams(&self) -> Streams {
        self.streams.clone()
    }
}

impl<T> Clone for LoadReportingService<T> {
    fn clone(&self) -> Self {
        Self { takes: self.takes.clone(), bounds: self.bounds, streams: self.streams.clone() }
    }
}

impl<T> NamedService for LoadReportingService<T> {
    const NAME: &'static str = "envoy.service.load_stats.v3.LoadReportingService";
}

impl<T, B> tower_service::Service<Request<B>> for LoadReportingService<T>
where
    T: LoadReporting,
    B: Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.uri().path() != METHOD {
            let refused = Status::unimplemented(format!("no method {}", request.uri().path()));
            return Box::pin(ready(Ok(refused.into_http())));
        }
        let (head, body) = request.into_parts();
        let called = Called { service: self.clone(), head: Some(head.clone()) };
        let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(self.bounds.bytes);
        Box::pin(async move { Ok(grpc.streaming(called, Request::from_parts(head, body)).await) })
    }
}

struct Called<T> {
    service: LoadReportingService<T>,
    head: Option<Parts>,
}

impl<T: LoadReporting> StreamingService<LoadStatsRequest> for Called<T> {
    type Response = LoadStatsResponse;
    type ResponseStream = Taking;
    type Future = std::future::Ready<Result<tonic::Response<Taking>, Status>>;

    fn call(&mut self, requests: tonic::Request<Streaming<LoadStatsRequest>>) -> Self::Future {
        let taking = self.head.take().ok_or_else(|| Status::internal("called twice"));
        ready(taking.and_then(|head| self.service.open(head, requests.into_inner())).map(tonic::Response::new))
    }
}

impl<T: LoadReporting> LoadReportingService<T> {
    fn open(&self, head: Parts, requests: Streaming<LoadStatsRequest>) -> Result<Taking, Status> {
        let line = Arc::<Line>::default();
        let shared: Weak<dyn Shared> = Arc::downgrade(&(line.clone() as Arc<dyn Shared>));
        let entry = self.streams.enter(shared, self.bounds.streams)?;
        let taken = take(self.takes.clone(), head, requests, self.bounds.clusters, line.clone());
        Ok(Taking { line, taken: Some((Box::pin(taken), entry)) })
    }
}

/// Has the node first, and then the reports taken.
async fn take<T: LoadReporting>(
    takes: Arc<T>,
    head: Parts,
    mut requests: Streaming<LoadStatsRequest>,
    most_clusters: usize,
    line: Arc<Line>,
) -> Result<(), Status> {
    let Some(first) = requests.message().await? else { return Ok(()) };
    let node = Node::decode(first.node).map_err(|error| Status::invalid_argument(format!("node: {error}")))?;
    let reports = LoadReports::new(head, node, requests, most_clusters, line).with_first(first.cluster_stats)?;
    takes.take(reports).await
}

type Taken = Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>;

/// What a stream is answered with, while its reports are taken: both by who polls this, and no task of its own.
struct Taking {
    line: Arc<Line>,
    taken: Option<(Taken, Entry)>,
}

impl Stream for Taking {
    type Item = Result<LoadStatsResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { line, taken } = &mut *self;
        let Some((taking, _)) = taken else { return Poll::Ready(None) };
        // Before it is looked at.
        line.register(cx.waker());
        let over = match line.take_end() {
            Some(status) => Poll::Ready(Err(status)),
            None => taking.as_mut().poll(cx),
        };
        if over.is_ready() {
            *taken = None;
        }
        match (over, line.take_asked()) {
            (Poll::Ready(Err(status)), _) => Poll::Ready(Some(Err(status))),
            (_, Some(response)) => Poll::Ready(Some(Ok(response))),
            (Poll::Ready(Ok(())), None) => Poll::Ready(None),
            (Poll::Pending, None) => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};
    use tower_service::Service as _;

    use super::*;
    use crate::grpc::server::ClientCertificate;

    /// Notes what its client proved to be, asks it for all, and has had enough.
    #[derive(Default)]
    struct Curious(Mutex<Option<ClientCertificate>>);

    impl LoadReporting for Curious {
        async fn take(&self, reports: LoadReports) -> Result<(), Status> {
            *self.0.lock().unwrap() = reports.certificate().cloned();
            reports.ask(LoadStatsResponse { send_all_clusters: true, ..LoadStatsResponse::default() });
            Ok(())
        }
    }

    fn framed(message: &impl Message) -> Bytes {
        let message = message.encode_to_vec();
        [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat().into()
    }

    /// It is asked by the time that nobody is there to take what it reports, and the stream ends well.
    #[tokio::test]
    async fn who_takes_reports_knows_the_client_by_its_certificate_and_what_it_asked_for_last_is_told_before_the_end() {
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let shown = ClientCertificate::new([made.cert.der().to_vec()]).unwrap();
        let curious = Arc::new(Curious::default());
        let request = Request::post(METHOD)
            .header("content-type", "application/grpc")
            .extension(shown.clone())
            .body(Full::new(framed(&LoadStatsRequest::default())))
            .unwrap();
        let response = LoadReportingService::new(curious.clone()).call(request).await.unwrap();
        let told = response.into_body().collect().await.unwrap();
        assert_eq!(told.trailers().map(|trailers| trailers["grpc-status"].clone()), Some("0".parse().unwrap()));
        let asked = LoadStatsResponse { send_all_clusters: true, ..LoadStatsResponse::default() };
        assert_eq!(told.to_bytes(), framed(&asked));
        let noted = curious.0.lock().unwrap().take();
        assert_eq!(noted.map(|certificate| certificate.chain().to_vec()), Some(shown.chain().to_vec()));
    }
}
