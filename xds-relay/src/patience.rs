//! How long a client may take: to say what it speaks, and on a connection without a call.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use tonic::transport::server::{Connected, TcpConnectInfo};
use xds_transport::grpc::server::Alarm;

/// A connection of HTTP/2 begins with so many bytes (RFC 9113, 3.4), and no request of HTTP/1 is shorter.
const PREFACE: usize = 24;

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) preface: Duration,
    /// Without a call: before the first one, and after the last up to twice that.
    pub(crate) call: Duration,
}

/// Told which limit ended a connection.
pub(crate) type Ended = Arc<dyn Fn(&'static str) + Send + Sync>;

/// A connection that is over when the client takes too long.
pub(crate) struct Patient<I> {
    io: I,
    patience: Patience,
    /// How much of the preface came.
    said: usize,
    alarm: Alarm,
    calls: Arc<Calls>,
    ended: Ended,
    over: bool,
    /// Its place among those there may be.
    _counted: OwnedSemaphorePermit,
}

/// The calls on one connection.
#[derive(Debug)]
struct Calls {
    open: AtomicUsize,
    /// One ended since the last look.
    lately: AtomicBool,
    peer: TcpConnectInfo,
}

/// What a call knows of its connection.
#[derive(Clone, Debug)]
pub(crate) struct OfConnection(Arc<Calls>);

/// How many calls are open on all connections.
pub(crate) type OpenCalls = Arc<watch::Sender<usize>>;

/// An open call.
struct Call(Arc<Calls>, OpenCalls);

/// The answer to a call, which is open as long as this is there.
struct Answer {
    body: Body,
    _call: Call,
}

/// Has calls say to their connections that they are open, and counts those of all connections.
pub(crate) fn count_calls(router: Router, open: OpenCalls) -> Router {
    router.layer(from_fn_with_state(open, count))
}

async fn count(State(open): State<OpenCalls>, mut request: Request, next: Next) -> Response {
    let Some(OfConnection(calls)) = request.extensions_mut().remove() else { return next.run(request).await };
    request.extensions_mut().insert(calls.peer.clone());
    let call = Call::begin(calls, open);
    next.run(request).await.map(|body| Body::new(Answer { body, _call: call }))
}

impl<I: Connected<ConnectInfo = TcpConnectInfo>> Patient<I> {
    pub(crate) fn new(io: I, counted: OwnedSemaphorePermit, patience: Patience, ended: Ended) -> Self {
        let (open, lately, peer) = (AtomicUsize::new(0), AtomicBool::new(false), io.connect_info());
        let (calls, alarm) = (Arc::new(Calls { open, lately, peer }), Alarm::at(Instant::now() + patience.preface));
        Self { io, patience, said: 0, alarm, calls, ended, over: false, _counted: counted }
    }
}

impl<I> Patient<I> {
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        while !self.over && self.alarm.poll(cx).is_ready() {
            let Calls { open, lately, .. } = &*self.calls;
            if self.said < PREFACE {
                self.end("preface");
            } else if open.load(Ordering::Relaxed) == 0 && !lately.swap(false, Ordering::Relaxed) {
                self.end("first_request");
            } else {
                self.wait_for_call();
            }
        }
        self.over
    }

    fn end(&mut self, limit: &'static str) {
        self.over = true;
        (self.ended)(limit);
    }

    fn wait_for_call(&mut self) {
        self.alarm.set(Instant::now() + self.patience.call);
    }
}

impl Call {
    fn begin(of_connection: Arc<Calls>, open: OpenCalls) -> Self {
        of_connection.open.fetch_add(1, Ordering::Relaxed);
        open.send_modify(|open| *open += 1);
        Self(of_connection, open)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.lately.store(true, Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.1.send_modify(|open| *open -= 1);
    }
}

impl<I> Connected for Patient<I> {
    type ConnectInfo = OfConnection;

    fn connect_info(&self) -> OfConnection {
        OfConnection(self.calls.clone())
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Patient<I> {
    /// The end of what the client says, once it took too long: the server closes the connection then.
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_over(cx) {
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, into);
        if self.said < PREFACE {
            self.said += into.filled().len() - before;
            if self.said >= PREFACE {
                self.wait_for_call();
                // So that the alarm wakes who reads.
                let _ = self.is_over(cx);
            }
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Patient<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::Semaphore;
    use tokio::time::sleep;

    use super::*;

    const PATIENCE: Patience = Patience { preface: Duration::from_secs(10), call: Duration::from_secs(300) };

    /// A connection, who made it, and which limits ended it.
    fn connection() -> (Patient<DuplexStream>, DuplexStream, Arc<Mutex<Vec<&'static str>>>) {
        let (near, far) = duplex(1024);
        let ended = Arc::<Mutex<Vec<_>>>::default();
        let tell = ended.clone();
        let peer = TcpConnectInfo { local_addr: None, remote_addr: None };
        let calls = Arc::new(Calls { open: AtomicUsize::new(0), lately: AtomicBool::new(false), peer });
        let patient = Patient {
            io: far,
            patience: PATIENCE,
            said: 0,
            alarm: Alarm::at(Instant::now() + PATIENCE.preface),
            calls,
            ended: Arc::new(move |limit| tell.lock().unwrap().push(limit)),
            over: false,
            _counted: Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap(),
        };
        (patient, near, ended)
    }

    /// Reads to the end; after how many seconds it came.
    async fn seconds_to_end(patient: &mut Patient<DuplexStream>) -> u64 {
        let start = Instant::now();
        patient.read_to_end(&mut Vec::new()).await.unwrap();
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_say_what_it_speaks_is_let_go() {
        let (mut patient, mut client, ended) = connection();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\n").await.unwrap();
        assert_eq!(seconds_to_end(&mut patient).await, 10);
        assert_eq!(seconds_to_end(&mut patient).await, 0, "it stays over");
        assert_eq!(*ended.lock().unwrap(), ["preface"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_call_is_let_go() {
        let (mut patient, mut client, ended) = connection();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let call = Call::begin(patient.calls.clone(), OpenCalls::default());
        let reading = tokio::spawn(async move { seconds_to_end(&mut patient).await });
        sleep(Duration::from_secs(1000)).await;
        assert!(!reading.is_finished());
        drop(call);
        assert_eq!(reading.await.unwrap(), 1500, "up to twice the time later");
        assert_eq!(*ended.lock().unwrap(), ["first_request"]);

        let (mut patient, mut client, _) = connection();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        assert_eq!(seconds_to_end(&mut patient).await, 300);
    }
}
