//! The driver over HTTP/2 in memory: an origin written by hand, and a clock that jumps when all wait.

mod aged;
mod frames;
mod jitter;
mod pace;
mod parts;
mod per_type;
mod per_type_ends;
mod pieces;
mod shared;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use h2::SendStream;
use h2::server::SendResponse;
use http::{Request, Response};
use prost::Message as _;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tonic::metadata::MetadataMap;
use xds_transport::client::{Interest, Update, Verdict};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};
use xds_transport::{Protocol, RateLimit};

use self::frames::Frames;
use super::*;
use crate::Backoff;
use crate::upstream::connect;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const QUIET: Duration = Duration::from_secs(15);

/// What a recorder that says what streams ended with says of that.
const ANOTHER_SERVER: &str = "another server";

type Log = Arc<Mutex<Vec<(u64, &'static str)>>>;

/// Wants all clusters, and waits for a quarter of a minute of quiet.
struct Recorder {
    start: Instant,
    log: Log,
    asked: bool,
    quiet: Option<Instant>,
    nodes: VecDeque<Bytes>,
    declines: bool,
    errors: mpsc::UnboundedSender<Option<String>>,
    /// How long it is until the next attempt, each time that a stream is over.
    waits: Option<mpsc::UnboundedSender<Duration>>,
}

impl Recorder {
    fn new(nodes: &[&str]) -> (Self, Log) {
        let log = Log::default();
        let nodes = nodes.iter().map(|id| encoded_node(id)).collect();
        let (errors, _) = mpsc::unbounded_channel();
        (
            Self {
                start: now(),
                log: log.clone(),
                asked: false,
                quiet: Some(now() + QUIET),
                nodes,
                declines: false,
                errors,
                waits: None,
            },
            log,
        )
    }

    /// One that says what streams ended with.
    fn of_errors() -> (Self, mpsc::UnboundedReceiver<Option<String>>) {
        let (errors, told) = mpsc::unbounded_channel();
        (Self { errors, ..Self::new(&[]).0 }, told)
    }

    fn note(&self, at: Instant, what: &'static str) {
        let at = (at - self.start).as_secs();
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push((at, what));
    }
}

impl Consumer for Recorder {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        if !std::mem::replace(&mut self.asked, true) {
            apply(Command::Subscribe(CDS.into(), Interest::Wildcard));
        }
    }

    fn update(&mut self, now: Instant, _: Update) -> Verdict {
        self.note(now, "update");
        Verdict::Accept
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        self.note(
            now,
            match connection {
                Connection::Connected => "connected",
                Connection::Answered => "answered",
                Connection::Disconnected { error, retry_at } => {
                    let _ = self.errors.send(error);
                    if let Some(waits) = &self.waits {
                        let _ = waits.send(retry_at - now);
                    }
                    "disconnected"
                }
            },
        );
    }

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}

    fn another_server(&mut self, _: Instant) {
        let _ = self.errors.send(Some(ANOTHER_SERVER.to_owned()));
    }

    fn node(&mut self) -> Option<Bytes> {
        self.nodes.pop_front()
    }

    fn metadata(&mut self) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert("x-who", "me".parse().unwrap());
        metadata
    }

    fn opened(&mut self, metadata: &MetadataMap) -> Result<(), String> {
        if self.declines && metadata.contains_key("x-who") { Err("it is me".into()) } else { Ok(()) }
    }

    fn received(&mut self, at: Instant) {
        self.note(at, "received");
        self.quiet = Some(at + QUIET);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.quiet
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.note(now, "quiet");
        self.quiet = None;
    }
}

fn encoded_node(id: &str) -> Bytes {
    Node { id: id.into(), ..Node::default() }.encode_to_vec().into()
}

fn endpoint() -> Endpoint {
    Endpoint::new("in.memory:1").unwrap().with_backoff(Backoff::new(Duration::from_secs(1), Duration::from_secs(1)))
}

/// Drives a consumer over connections in memory; the far ends come out of the channel.
fn run(recorder: Recorder) -> mpsc::UnboundedReceiver<DuplexStream> {
    run_at(endpoint(), recorder)
}

fn run_at(endpoint: Endpoint, consumer: impl Consumer) -> mpsc::UnboundedReceiver<DuplexStream> {
    run_woken(endpoint, consumer, Arc::new(Notify::new()))
}

fn run_woken(endpoint: Endpoint, consumer: impl Consumer, wake: Arc<Notify>) -> mpsc::UnboundedReceiver<DuplexStream> {
    let (connections, far_ends) = mpsc::unbounded_channel();
    let transport = endpoint.transport.clone();
    let connect = move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let _ = connections.send(far);
        let mut near = Some(near);
        let connector = tower::service_fn(move |_| {
            std::future::ready(near.take().ok_or_else(|| std::io::Error::other("one connection an attempt")))
        });
        connect::over(transport.clone(), connector)
    };
    let node = endpoint.node.clone();
    tokio::spawn(drive_from(Pool::over(endpoint, connect), node, consumer, wake));
    far_ends
}

/// The one stream of a connection, which is kept going in a task of its own.
async fn accept(far: DuplexStream) -> (Request<h2::RecvStream>, SendResponse<Bytes>) {
    let mut connection = h2::server::handshake(far).await.unwrap();
    let stream = connection.accept().await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    stream
}

fn respond(mut to: SendResponse<Bytes>) -> SendStream<Bytes> {
    let response = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    to.send_response(response, false).unwrap()
}

fn framed(message: &impl prost::Message) -> Bytes {
    let message = message.encode_to_vec();
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    frame.into()
}

fn response() -> Bytes {
    framed(&DeltaDiscoveryResponse { type_url: CDS.into(), nonce: "1".into(), ..Default::default() })
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn taken(log: &Log) -> Vec<(u64, &'static str)> {
    std::mem::take(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
}

#[tokio::test(start_paused = true)]
async fn rule_151_every_piece_of_a_response_is_a_reason_to_wait_on() {
    let (recorder, log) = Recorder::new(&[]);
    let mut connections = run(recorder);
    let (_request, to) = accept(connections.recv().await.unwrap()).await;
    let mut body = respond(to);
    let mut message = response();
    body.send_data(message.split_to(3), false).unwrap();
    pass(10).await;
    body.send_data(message.split_to(10), false).unwrap();
    pass(10).await;
    body.send_data(message.split_to(10), false).unwrap();
    pass(14).await;
    // Told before a time is over, and not for every piece.
    assert_eq!(taken(&log), [(0, "connected"), (10, "received"), (20, "received")]);
    body.send_data(message, false).unwrap();
    pass(60).await;
    let expected = [(34, "received"), (34, "answered"), (34, "update"), (49, "quiet")];
    assert_eq!(taken(&log), expected);
}

#[tokio::test(start_paused = true)]
async fn rule_156_a_stream_is_connected_when_it_is_open_and_answered_when_there_is_a_response() {
    let (recorder, log) = Recorder::new(&[]);
    let mut connections = run(recorder);
    for _ in 0..2 {
        let (_request, mut to) = accept(connections.recv().await.unwrap()).await;
        pass(1).await;
        to.send_reset(h2::Reason::CANCEL);
        drop(to);
        pass(1).await;
    }
    assert!(taken(&log).iter().all(|(_, what)| *what != "answered"));
    let (_request, mut to) = accept(connections.recv().await.unwrap()).await;
    let response = Response::builder().header("content-type", "application/grpc");
    let mut body = to.send_response(response.body(()).unwrap(), false).unwrap();
    pass(1).await;
    assert!(taken(&log).iter().all(|(_, what)| *what != "answered"), "headers are no response");
    for expected in [1, 0] {
        body.send_data(self::response(), false).unwrap();
        pass(1).await;
        assert_eq!(taken(&log).iter().filter(|(_, what)| *what == "answered").count(), expected);
    }
}

/// Nothing that comes on such a stream is looked at, and it never counts as answered.
#[tokio::test(start_paused = true)]
async fn rule_159_a_stream_to_oneself_is_ended_by_what_it_is_answered_with_and_tried_again_late() {
    let (mut recorder, mut errors) = Recorder::of_errors();
    recorder.declines = true;
    let (start, log) = (now(), recorder.log.clone());
    let endpoint = endpoint().with_backoff(Backoff::new(Duration::from_millis(1), Duration::from_secs(30)));
    let mut connections = run_at(endpoint, recorder);
    for _ in 0..20 {
        let (request, mut to) = accept(connections.recv().await.unwrap()).await;
        let who = &request.headers()["x-who"];
        let response = Response::builder().header("content-type", "application/grpc").header("x-who", who);
        let mut body = to.send_response(response.body(()).unwrap(), false).unwrap();
        body.send_data(self::response(), false).unwrap();
        assert_eq!(errors.recv().await.unwrap().as_deref(), Some("it is me"));
    }
    assert!(taken(&log).iter().all(|(_, what)| !["answered", "update"].contains(what)));
    // Twenty waits of up to 30 s, the last of which is to come.
    assert!(now() - start > Duration::from_secs(60), "{:?}", now() - start);
}

#[tokio::test(start_paused = true)]
async fn every_stream_names_the_node_that_the_consumer_gives_before_it() {
    let (recorder, _log) = Recorder::new(&["first", "second"]);
    let mut connections = run(recorder);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (mut request, mut to) = accept(connections.recv().await.unwrap()).await;
        let data = request.body_mut().data().await.unwrap().unwrap();
        let first = DeltaDiscoveryRequest::decode(&data[5..]).unwrap();
        seen.push(Node::decode(first.node).unwrap().id);
        to.send_reset(h2::Reason::CANCEL);
    }
    assert_eq!(seen, ["first", "second", "second"]);
}

#[tokio::test(start_paused = true)]
async fn rule_137_a_quiet_origin_is_pinged_every_five_minutes_or_as_often_as_one_says() {
    for (endpoint, interval) in [(endpoint(), 300), (endpoint().with_keepalive(Duration::from_secs(30)), 30)] {
        assert_eq!(endpoint.keepalive().as_secs(), interval);
        let mut connections = run_at(endpoint, Recorder::new(&[]).0);
        let mut origin = Frames::accept(connections.recv().await.unwrap()).await;
        origin.respond(&response()).await;
        for _ in 0..12 {
            let before = now();
            let ping = async { while origin.next().await.unwrap() != frames::PING {} };
            tokio::time::timeout(Duration::from_secs(3600), ping).await.unwrap();
            // Servers by default bear one in five minutes: not a moment less.
            assert_eq!((now() - before).as_secs(), interval);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rule_137_a_connection_that_does_not_answer_a_ping_for_20_seconds_is_lost() {
    let (recorder, mut errors) = Recorder::of_errors();
    let start = now();
    let mut connections = run(recorder);
    let mut origin = Frames::accept(connections.recv().await.unwrap()).await;
    origin.respond(&response()).await;
    while now() - start < Duration::from_secs(299) {
        let _ = tokio::time::timeout(Duration::from_secs(299), origin.next()).await;
    }
    errors.recv().await.unwrap();
    assert_eq!((now() - start).as_secs(), 320);
}

#[tokio::test(start_paused = true)]
async fn rule_137_what_the_origin_complains_of_is_told_even_after_a_response() {
    for (code, words, expected) in [
        (11, "too_many_pings", Some("GOAWAY ENHANCE_YOUR_CALM: too_many_pings")),
        // Rule 91: a server that wants its streams elsewhere.
        (0, "max_age", None),
    ] {
        let (recorder, mut errors) = Recorder::of_errors();
        let mut connections = run(recorder);
        let mut origin = Frames::accept(connections.recv().await.unwrap()).await;
        origin.respond(&response()).await;
        pass(1).await;
        origin.go_away(code, words).await;
        drop(origin);
        let error = errors.recv().await.unwrap();
        match expected {
            Some(expected) => assert!(error.as_ref().is_some_and(|error| error.ends_with(expected)), "{error:?}"),
            None => assert_eq!(error, None),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_origin_says_when_it_hangs_up_before_a_response_is_told() {
    let (recorder, mut errors) = Recorder::of_errors();
    let mut connections = run(recorder);
    let mut origin = Frames::accept(connections.recv().await.unwrap()).await;
    origin.go_away(0, "max_age").await;
    drop(origin);
    let error = errors.recv().await.unwrap().unwrap();
    assert!(error.ends_with("GOAWAY NO_ERROR: max_age"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_origin_of_the_other_protocol_is_named_as_what_it_is() {
    for (protocol, method, other) in
        [(Protocol::Delta, "DeltaAggregatedResources", "sotw"), (Protocol::Sotw, "StreamAggregatedResources", "delta")]
    {
        let expected = format!(
            "the origin has no /envoy.service.discovery.v3.AggregatedDiscoveryService/{method}: it may speak {other} \
             (protocol: {other}), or have a method for each type (methods: per_type) \
             (Unimplemented: no method)"
        );
        let (recorder, mut errors) = Recorder::of_errors();
        let mut connections = run_at(endpoint().with_protocol(protocol), recorder);
        let (_request, mut to) = accept(connections.recv().await.unwrap()).await;
        let response = Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", "12")
            .header("grpc-message", "no method");
        to.send_response(response.body(()).unwrap(), true).unwrap();
        assert_eq!(errors.recv().await.unwrap(), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn who_answers_a_stream_and_speaks_no_grpc_is_told_by_the_http_status() {
    for (status, code) in [(404, "Unimplemented"), (503, "Unavailable"), (200, "Unknown")] {
        let (recorder, mut errors) = Recorder::of_errors();
        let log = recorder.log.clone();
        let mut connections = run(recorder);
        let (_request, mut to) = accept(connections.recv().await.unwrap()).await;
        let response = Response::builder().status(status).header("content-type", "text/html");
        // Nobody waits for the page to end.
        let mut page = to.send_response(response.body(()).unwrap(), false).unwrap();
        page.send_data("<html>".into(), false).unwrap();
        let error = errors.recv().await.unwrap().unwrap();
        assert!(error.starts_with(&format!("{code}: the answer is no gRPC: HTTP status {status}")), "{error}");
        assert!(error.ends_with("content type `text/html`"), "{error}");
        assert!(taken(&log).iter().all(|(_, what)| *what != "answered"));
    }
}
