//! Connections on which nothing is said, with frames of HTTP/2 written by hand: a library answers pings before a test sees
//! them.

mod attacks;
mod calls;
mod contention;
mod seats;
mod secured;

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::http2::UNSENT;
use super::*;
use crate::config::Config;
use crate::seats::Seats;

/// Which limits ended connections.
type EndedBy = Arc<Mutex<Vec<&'static str>>>;

fn limits() -> Limits {
    Config::parse("relay.yaml", "origins: [{ name: up, server: 'a:1' }]").unwrap().limits
}

impl Connection for DuplexStream {
    fn tell(&self, _: &mut Extensions) {}
}

/// One of as many as anybody wants.
fn seat() -> Seat {
    let cx = &mut Context::from_waker(std::task::Waker::noop());
    let Poll::Ready(Ok(seat)) = Seats::new(usize::MAX).poll_take(cx, (None, None), || {}) else {
        unreachable!("there is room")
    };
    seat
}

/// Serves one connection with the defaults.
fn serve(
    io: DuplexStream,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> (JoinHandle<()>, EndedBy) {
    serve_within(limits(), io, router, stop)
}

fn serve_within(
    limits: Limits,
    io: DuplexStream,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> (JoinHandle<()>, EndedBy) {
    serve_by(None, limits, io, router, stop)
}

fn serve_by(
    tls: Option<Arc<tls::Downstream>>,
    limits: Limits,
    io: DuplexStream,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> (JoinHandle<()>, EndedBy) {
    let ended = EndedBy::default();
    let tell = ended.clone();
    let ended_by = Arc::new(move |limit| tell.lock().unwrap().push(limit));
    let serving = Serving { router, limits, limited: ended_by, open: OpenCalls::default(), tls };
    let connections = tokio_stream::iter([Ok((io, seat()))]).chain(tokio_stream::pending());
    (tokio::spawn(async move { serving.serve(connections, stop).await }), ended)
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;

/// A client that asks for nothing.
struct Quiet(DuplexStream, EndedBy);

impl Quiet {
    /// It may be without a call for so long.
    async fn connect(patience: Duration) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let limits = Limits { first_request: patience, ..limits() };
        let (_, ended) = serve_within(limits, far, Router::new(), pending());
        let mut client = Self(near, ended);
        client.0.write_all(PREFACE).await.unwrap();
        client.write(SETTINGS, 0, &[]).await;
        client
    }

    async fn write(&mut self, kind: u8, flags: u8, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &[0; 4], payload].concat();
        self.0.write_all(&frame).await.unwrap();
    }

    /// What the next frame of this kind says, and any other is answered; none once the connection is over.
    async fn next(&mut self, wanted: u8, with: u8) -> Option<Vec<u8>> {
        timeout(Duration::from_secs(3600), self.next_ever(wanted, with)).await.expect("nothing comes")
    }

    async fn next_ever(&mut self, wanted: u8, with: u8) -> Option<Vec<u8>> {
        loop {
            let mut header = [0; 9];
            self.0.read_exact(&mut header).await.ok()?;
            let [a, b, c, kind, flags, ..] = header;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            match (kind, flags & ACK) {
                this if this == (wanted, with) => return Some(payload),
                (SETTINGS, 0) => self.write(SETTINGS, ACK, &[]).await,
                (PING, 0) => self.write(PING, ACK, &payload).await,
                _ => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rule_137_a_quiet_client_is_pinged_every_five_minutes_and_let_go_20_seconds_after_it_does_not_answer() {
    let mut client = Quiet::connect(Duration::from_secs(1 << 20)).await;
    for _ in 0..12 {
        let before = Instant::now();
        let ping = client.next(PING, 0).await.unwrap();
        assert_eq!(before.elapsed().as_secs(), 300);
        client.write(PING, ACK, &ping).await;
    }
    client.next(PING, 0).await.unwrap();
    let before = Instant::now();
    while client.next(PING, 0).await.is_some() {}
    assert_eq!(before.elapsed().as_secs(), 20);
}

/// A gRPC server with its defaults would end the connection at the third ping.
#[tokio::test(start_paused = true)]
async fn rule_137_a_client_that_pings_every_second_is_answered_each_time() {
    let mut client = Quiet::connect(Duration::from_secs(1 << 20)).await;
    let start = Instant::now();
    for _ in 0..3600 {
        sleep(Duration::from_secs(1)).await;
        client.write(PING, 0, b"still on").await;
        assert_eq!(client.next(PING, ACK).await.unwrap(), b"still on");
    }
    assert_eq!(start.elapsed().as_secs(), 3600, "each at once");
}

/// Has always more to say, and counts what it was asked for.
struct Endless(Arc<AtomicUsize>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = Bytes::from_static(&[0; 1024]);
        self.0.fetch_add(chunk.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }
}

/// `UNSENT` is what one client can have the relay copy.
#[tokio::test(start_paused = true)]
async fn a_client_that_opens_no_window_is_told_no_more_than_fits_into_it_and_a_little() {
    const WINDOW: u32 = 100_000;
    let (near, far) = tokio::io::duplex(1 << 16);
    let asked = Arc::new(AtomicUsize::new(0));
    let endless = asked.clone();
    let router = Router::new().fallback(move || async move { Response::new(Body::new(Endless(endless))) });
    serve(far, router, pending());
    let mut client = h2::client::Builder::new();
    client.initial_window_size(WINDOW).initial_connection_window_size(1 << 20);
    let (mut http2, connection) = client.handshake::<_, Bytes>(near).await.unwrap();
    tokio::spawn(connection);
    let (response, _requests) = http2.send_request(Request::post("http://relay/").body(()).unwrap(), false).unwrap();
    let _unread = response.await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let asked = asked.load(Ordering::Relaxed);
    assert!((WINDOW as usize..=WINDOW as usize + UNSENT + 1024).contains(&asked), "{asked}");
}

/// What a relay without a call says to this, until it ends the connection.
async fn answered(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut near, far) = tokio::io::duplex(1 << 16);
    serve(far, Router::new(), sleep(Duration::from_secs(5)));
    for piece in pieces {
        near.write_all(piece).await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    let mut answer = Vec::new();
    near.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn the_first_bytes_say_what_a_client_speaks_in_pieces_of_any_size() {
    let first = |answer: Vec<u8>| answer.get(3).copied();
    assert_eq!(first(answered(&[PREFACE, &[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]]).await), Some(SETTINGS));
    let pieces: Vec<_> = PREFACE.chunks(1).chain([&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0][..]]).collect();
    assert_eq!(first(answered(&pieces).await), Some(SETTINGS));
    for request in
        ["GET / HTTP/1.1\r\nhost: a\r\n\r\n", "PRI / HTTP/1.1\r\nhost: a\r\n\r\n", "P / HTTP/1.1\r\nhost: a\r\n\r\n"]
    {
        let whole = answered(&[request.as_bytes()]).await;
        assert!(whole.starts_with(b"HTTP/1.1 404"), "{}", String::from_utf8_lossy(&whole));
        let pieces: Vec<_> = request.as_bytes().chunks(1).collect();
        assert!(answered(&pieces).await.starts_with(b"HTTP/1.1 404"));
    }
    assert_eq!(answered(&[]).await, b"", "who says nothing is let go when all stop");
    assert_eq!(answered(&[&PREFACE[..10]]).await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_say_what_it_speaks_is_let_go() {
    let (mut near, far) = tokio::io::duplex(1 << 16);
    let (_serving, ended) = serve(far, Router::new(), pending());
    let start = Instant::now();
    near.write_all(&PREFACE[..20]).await.unwrap();
    near.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(*ended.lock().unwrap(), ["preface"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_call_is_let_go() {
    let start = Instant::now();
    let mut client = Quiet::connect(Duration::from_secs(200)).await;
    while client.next(PING, 0).await.is_some() {}
    assert_eq!(start.elapsed().as_secs(), 200);
    assert_eq!(*client.1.lock().unwrap(), ["first_request"]);

    let (mut near, far) = tokio::io::duplex(1 << 16);
    let (_serving, _ended) = serve(far, Router::new(), pending());
    let start = Instant::now();
    near.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    near.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 10, "a request that does not come whole");
}
