//! The driver over HTTP/2 in memory: an origin written by hand, and a clock that jumps when all wait.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use h2::SendStream;
use h2::server::SendResponse;
use http::{Request, Response};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use xds_transport::client::{Interest, Update, Verdict};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};

use super::*;
use crate::Backoff;
use crate::upstream::Connection;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const QUIET: Duration = Duration::from_secs(15);

type Log = Arc<Mutex<Vec<(u64, &'static str)>>>;

/// Wants all clusters, and waits for a quarter of a minute of quiet.
struct Recorder {
    start: Instant,
    log: Log,
    asked: bool,
    quiet: Option<Instant>,
    nodes: VecDeque<Bytes>,
}

impl Recorder {
    fn new(nodes: &[&str]) -> (Self, Log) {
        let log = Log::default();
        let nodes = nodes.iter().map(|id| encoded_node(id)).collect();
        (Self { start: now(), log: log.clone(), asked: false, quiet: Some(now() + QUIET), nodes }, log)
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
                Connection::Disconnected { .. } => "disconnected",
            },
        );
    }

    fn node(&mut self) -> Option<Bytes> {
        self.nodes.pop_front()
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

/// Drives `recorder` over connections in memory; the far ends come out of the channel.
fn run(recorder: Recorder) -> mpsc::UnboundedReceiver<DuplexStream> {
    let (connections, far_ends) = mpsc::unbounded_channel();
    let at_once = Backoff::new(Duration::ZERO, Duration::ZERO);
    let endpoint = Endpoint::new("in.memory:1").unwrap().with_backoff(at_once);
    let transport = endpoint.transport.clone();
    let connect = move || -> Connecting {
        let (near, far) = tokio::io::duplex(1 << 16);
        let _ = connections.send(far);
        let mut near = Some(TokioIo::new(near));
        let connector = tower::service_fn(move |_| {
            std::future::ready(near.take().ok_or_else(|| std::io::Error::other("one connection an attempt")))
        });
        let transport = transport.clone();
        Box::pin(async move { transport.connect_with_connector(connector).await })
    };
    tokio::spawn(drive_over(connect, endpoint, recorder, Arc::new(Notify::new())));
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
    let response = DeltaDiscoveryResponse { type_url: CDS.into(), nonce: "1".into(), ..Default::default() };
    let mut message = framed(&response);
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
