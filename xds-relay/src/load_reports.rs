//! Load reports pass through: one stream to the origin for each that a client opens, and what is sent on either is sent
//! on the other as it is: the client's metadata, and its first message with its node among it.
//!
//! The bodies are handed on, not read: HTTP/2 asks one side for more when the other has room, and nothing is queued.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body as AxumBody;
use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use http_body::Frame;
use tokio::sync::{oneshot, watch};
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tower_service::Service;
use xdstp_client::federation::Share;
use xdstp_client::upstream::{Place, Pool};

use self::first_message::Begun;
use crate::causes::with_causes;
use crate::claim::Claim;
use crate::client_rules::{ClientRules, Shown, Under, peer};
use crate::drain::Moments;
use crate::metrics::{AUDIT, Counter, Denial, LoadReportStream};
use crate::relay_core::{ClientUse, RelayCore};

mod first_message;

/// The one method of the load reporting service.
pub(crate) const METHOD: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

/// How many bytes a first message may have beside its node.
const MOST_BESIDE: usize = 64 << 10;

/// What is said about a connection, or by HTTP itself (RFC 9110, 7.6.1): the relay's own says its own.
const NOT_PASSED_ON: [HeaderName; 12] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// When streams end, once the relay does.
pub(crate) type End = watch::Receiver<Option<Arc<Moments>>>;

/// Takes the load reports of clients to the default origin.
#[derive(Clone)]
pub(crate) struct LoadReports {
    /// The origin's name.
    origin: String,
    /// The connections to each of its servers for load reports: a client that does not read, or an origin, holds up no
    /// resources. None where it has no server.
    pools: Arc<[Pool]>,
    core: Arc<RelayCore>,
    rules: Arc<ClientRules>,
    ended: End,
}

impl LoadReports {
    /// Reports go to the first of the servers that there is a connection to, until `ended` says so, each in its turn.
    pub(crate) fn new(
        origin: String,
        pools: Arc<[Pool]>,
        core: Arc<RelayCore>,
        rules: Arc<ClientRules>,
        ended: End,
    ) -> Self {
        if !pools.is_empty() {
            core.metrics().declare_load_reports(&origin);
        }
        Self { origin, pools, core, rules, ended }
    }

    async fn pass(self, reports: Request<AxumBody>) -> Result<Response<Body>, Status> {
        if self.pools.is_empty() {
            let words = format!("the default origin {:?} has files, and takes no load reports", self.origin);
            return Err(Status::unimplemented(words));
        }
        let share = self.core.admit_load_report().map_err(|error| Status::resource_exhausted(error.to_string()))?;
        let mut ended = Ended::new(self.ended.clone());
        let claim = reports.extensions().get::<Claim>().cloned();
        let (reports, client) = tokio::select! {
            admitted = self.admit(reports) => admitted?,
            () = std::future::poll_fn(|cx| ended.poll(cx)) => return Err(shutting_down()),
        };
        let (answered, answer) = oneshot::channel();
        let counted = self.core.metrics().load_report_stream(&self.origin);
        let bytes = counted.up.clone();
        let opening = async {
            let reports = to_origin(reports, &self.core)?;
            claim.iter().for_each(Claim::is_admitted);
            self.open(reports.map(|body| Body::new(Reports { body, bytes, answer }))).await
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = std::future::poll_fn(|cx| ended.poll(cx)) => Err(shutting_down()),
        };
        let (response, place) = match opened {
            Ok(opened) => opened,
            Err(refused) => {
                client.undo(Instant::now());
                return Err(refused);
            }
        };
        let passed = |body| Passed {
            body,
            counted,
            ended,
            over: false,
            _answered: answered,
            _place: place,
            _share: share,
            _client: client,
        };
        Ok(response.map(|body| Body::new(passed(body))))
    }

    /// Who may not be the node that it says it is reports nothing.
    async fn admit(&self, reports: Request<AxumBody>) -> Result<(Request<Begun>, ClientUse), Status> {
        let (mut head, body) = reports.into_parts();
        let (peer, metrics, limits) = (peer(&head), self.core.metrics(), self.core.limits());
        let admitted = self.rules.now().admit(&head, &peer, metrics)?;
        let rule = admitted.as_ref().map(|under| &*under.rule);
        let client = Shown::of(&head).identity(rule);
        let allowed = admitted.as_ref().map(Under::allowed);
        let opened = self.core.admit_client((client.clone(), true), allowed, Instant::now());
        let counted = opened.map_err(|error| {
            tracing::warn!(target: AUDIT, %peer, %client, "a stream of load reports is refused: {error}");
            Status::resource_exhausted(error.to_string())
        })?;
        let Some(rule) = rule else { return Ok((Request::from_parts(head, Begun::unread(body)), counted)) };
        // What is shown to the relay is nothing for its origin.
        head.headers.remove(header::AUTHORIZATION);
        if !rule.limits_nodes() {
            return Ok((Request::from_parts(head, Begun::unread(body)), counted));
        }
        let reading = Begun::read(body, limits.node_bytes.saturating_add(MOST_BESIDE));
        let read = tokio::time::timeout(limits.first_request, reading).await;
        let (body, node) = read.unwrap_or_else(|_| Err(Status::unavailable("no report came in time")))?;
        if let Some(reason) = rule.denies_node(&node) {
            metrics.downstream_denied(Denial::Node);
            tracing::warn!(target: AUDIT, %peer, node = %node.id, "a node is denied: {reason}");
            return Err(Status::permission_denied(format!("a node that is refused: {reason}")));
        }
        Ok((Request::from_parts(head, body), counted))
    }

    /// Has a place on a connection: beyond what the origin bears a stream would wait without a word.
    async fn open(&self, mut reports: Request<Body>) -> Result<(Response<Body>, Place), Status> {
        let unreachable =
            |words| Status::unavailable(format!("the origin {:?} cannot be reached: {words}", self.origin));
        let mut place = Err(String::new());
        for pool in &*self.pools {
            place = pool.place().await.map_err(|error| error.error);
            if place.is_ok() {
                break;
            }
        }
        let mut place = place.map_err(unreachable)?;
        let mut channel = place.channel();
        std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(|error| unreachable(with_causes(&error)))?;
        reports.headers_mut().extend(place.credentials().into_headers());
        let response = channel.call(reports).await.map_err(|error| unreachable(with_causes(&error)))?;
        // Where a balancer has no origin, the status comes without an answer.
        if !response.headers().contains_key("grpc-status") {
            place.answered();
        }
        Ok((response, place))
    }
}

impl Service<Request<AxumBody>> for LoadReports {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, reports: Request<AxumBody>) -> Self::Future {
        let passing = self.clone().pass(reports);
        Box::pin(async move { Ok(passing.await.unwrap_or_else(Status::into_http)) })
    }
}

/// The client's request as the relay makes it.
///
/// # Errors
/// It came by here before: in a loop of relays every stream would become another, without end (rule 159).
fn to_origin<B>(reports: Request<B>, core: &RelayCore) -> Result<Request<B>, Status> {
    let (mut head, body) = reports.into_parts();
    for name in of_the_connection(&head.headers) {
        head.headers.remove(name);
    }
    let mut metadata = MetadataMap::from_headers(head.headers);
    core.hand_on(&mut metadata).map_err(|error| {
        tracing::warn!("a stream of load reports is refused: {error}");
        Status::failed_precondition(error.to_string())
    })?;
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = http::Uri::from_static(METHOD);
    *request.headers_mut() = metadata.into_headers();
    request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
    Ok(request)
}

/// Those that are not to be passed on, and those that the connection says are its own.
fn of_the_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let said = headers.get_all(header::CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let named = said.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok());
    NOT_PASSED_ON.into_iter().chain(named).collect()
}

/// What the client says, as long as there is somebody to hear the answer.
struct Reports {
    body: Begun,
    bytes: Counter,
    answer: oneshot::Receiver<Infallible>,
}

impl http_body::Body for Reports {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        // An error resets the stream to the origin: HTTP/2 would leave its other half open.
        if Pin::new(&mut self.answer).poll(cx).is_ready() {
            return Poll::Ready(Some(Err("the stream is over".into())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.bytes.add(bytes_in(frame));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// What the origin says, up to its end, or to the relay's.
struct Passed {
    body: Body,
    counted: LoadReportStream,
    ended: Ended,
    over: bool,
    /// Dropped with this.
    _answered: oneshot::Sender<Infallible>,
    /// After the stream, which may be the last on its connection.
    _place: Place,
    /// Of those that there may be.
    _share: Share,
    /// Of those of its client.
    _client: ClientUse,
}

impl http_body::Body for Passed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let status = if self.ended.poll(cx).is_ready() {
            shutting_down()
        } else {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Err(broken))) => {
                    Status::unavailable(format!("the stream to the origin broke: {}", with_causes(&broken)))
                }
                Poll::Ready(Some(Ok(frame))) => {
                    self.counted.down.add(bytes_in(&frame));
                    return Poll::Ready(Some(Ok(frame)));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        };
        // An error would become RST_STREAM, and the client would not learn why.
        self.over = true;
        let mut trailers = HeaderMap::new();
        if status.add_header(&mut trailers).is_err() {
            trailers.insert("grpc-status", HeaderValue::from(14));
        }
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

fn bytes_in(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}

/// Resolves when streams must end.
struct Ended(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Ended {
    fn new(mut ended: End) -> Self {
        Self(Box::pin(async move {
            let moments = ended.wait_for(Option::is_some).await.ok().and_then(|moments| moments.clone());
            // Not all clients report elsewhere at once.
            if let Some(moments) = moments {
                moments.turn().await;
            }
        }))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

fn shutting_down() -> Status {
    Status::unavailable("the relay is shutting down")
}
