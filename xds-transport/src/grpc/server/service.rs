//! The tower service: a path picks protocol and type, a call opens a stream.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use axum::body::Body;
use http::{Request, Response, header};
use tokio::task::AbortHandle;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Code, Status};

use crate::Protocol;
use crate::grpc::methods;
use crate::grpc::now;
use crate::grpc::server::age::{jittered, random};
use crate::grpc::server::apart::Apart;
use crate::grpc::server::body::ResponseBody;
use crate::grpc::server::unfinished::Unfinished;
use crate::grpc::server::{refusal, requests};
use crate::server::{ProtocolError, Settings, Source, Stream};

/// Who decides what a stream is served from.
pub trait Accept: Send + Sync + 'static {
    /// What a stream pulls from.
    type Source: Source + Send + 'static;

    /// A stream was opened. The source wakes it when there is something to pull, and learns of its
    /// end by being dropped.
    ///
    /// # Errors
    /// What the stream ends with at once.
    fn accept(&self, opened: Opened) -> Result<Accepted<Self::Source>, Status>;

    /// The settings of every stream.
    fn settings(&self) -> Settings;

    /// How long a stream lives, more or less, so that clients spread over the servers there are: each is ended at a
    /// moment of its own, between three and five quarters of this (rule 93). Otherwise streams do not age.
    fn max_stream_age(&self) -> Option<Duration> {
        None
    }

    /// The longest request taken, in bytes: what a client may make the server hold before anything
    /// is known of it (rule 132).
    fn max_request_bytes(&self) -> usize {
        16 << 20
    }

    /// How many bytes of requests that are not whole yet are kept, of all streams together. Beyond, the stream that
    /// sends most of one ends with RESOURCE_EXHAUSTED.
    fn max_unfinished_bytes(&self) -> usize {
        256 << 20
    }

    /// How long a stream may take to send its first request. A client may have nothing to ask for yet.
    fn first_request_within(&self) -> Option<Duration> {
        None
    }
}

/// A stream that was just opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// Where the client is, if the connection says.
    pub peer: Option<SocketAddr>,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// What the client said before any request.
    pub metadata: MetadataMap,
    /// Has the stream pull its source.
    pub wake: Wake,
    /// The stream from outside.
    pub handle: StreamHandle,
}

/// What a stream is served from, and what it is answered with before that: with nothing, if it is made from a source.
#[derive(Debug)]
pub struct Accepted<S> {
    /// What the stream pulls from.
    pub source: S,
    /// Said to the client before any response.
    pub metadata: MetadataMap,
}

impl<S> From<S> for Accepted<S> {
    fn from(source: S) -> Self {
        Self { source, metadata: MetadataMap::new() }
    }
}

/// Has a stream look at its source. Cheap to clone and to call, from any thread, under no lock.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    waker: AtomicWaker,
    /// Woken since the stream looked last: HTTP/2 polls a body far more often than there is something to say.
    due: AtomicBool,
}

impl Wake {
    /// The stream has something to pull.
    pub fn wake(&self) {
        self.0.due.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Register before asking whether it [is due](Self::take_due), or a wake in between is lost.
    pub(crate) fn register(&self, waker: &Waker) {
        self.0.waker.register(waker);
    }

    pub(crate) fn take_due(&self) -> bool {
        self.0.due.swap(false, Ordering::AcqRel)
    }
}

/// A stream as others see it: for admin pages, and to end it.
#[derive(Clone, Debug)]
pub struct StreamHandle(Weak<dyn Shared>);

impl StreamHandle {
    /// Looks at the stream, unless it is over, or busy with a long request.
    pub fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        if let Some(shared) = self.0.upgrade() {
            shared.inspect(look);
        }
    }

    /// Ends the stream with UNAVAILABLE: the client reconnects, elsewhere if it can.
    pub fn end(&self, reason: &str) {
        if let Some(shared) = self.0.upgrade() {
            shared.end(Status::unavailable(reason));
        }
    }

    /// Ends the stream with RESOURCE_EXHAUSTED: what it asks for is too much.
    pub fn refuse(&self, reason: &str) {
        if let Some(shared) = self.0.upgrade() {
            shared.end(Status::resource_exhausted(reason));
        }
    }
}

pub(crate) trait Shared: std::fmt::Debug + Send + Sync {
    fn inspect(&self, look: &mut dyn FnMut(&Stream));
    fn end(&self, status: Status);
    fn refuse(&self, error: &ProtocolError);
}

/// What the response body and the request task of one stream share.
pub(crate) struct StreamState<S> {
    inner: Mutex<Inner<S>>,
    /// What it is to end with: others say so, and do not wait for what it is busy with.
    ended: Mutex<Option<Ended>>,
    /// Who reads its requests.
    reading: OnceLock<AbortHandle>,
    pub(crate) wake: Wake,
    pub(crate) apart: Apart,
}

pub(crate) struct Inner<S> {
    pub(crate) stream: Stream,
    /// `None` before the first and after the last moment.
    pub(crate) source: Option<S>,
    /// The client sends no more: the stream is over once there is nothing to say.
    pub(crate) half_closed: bool,
}

enum Ended {
    With(Status),
    /// Of which its source has not heard.
    Because(ProtocolError),
}

impl<S> StreamState<S> {
    pub(crate) fn new(inner: Inner<S>, wake: Wake) -> Self {
        let (ended, reading) = (Mutex::default(), OnceLock::new());
        Self { inner: Mutex::new(inner), ended, reading, wake, apart: Apart::default() }
    }

    /// Its requests are read by this task, until it is to end.
    pub(crate) fn is_read_by(&self, task: AbortHandle) {
        let _ = self.reading.set(task);
        // It may have been said before.
        if self.lock_ended().is_some() {
            self.read_no_more();
        }
    }

    /// What is kept of a request that is not whole is kept for nobody. The response may be stuck for as long as its client likes.
    fn read_no_more(&self) {
        if let Some(reading) = self.reading.get() {
            reading.abort();
        }
    }

    fn lock_ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is held for one call of the machine, never across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn half_close(&self) {
        let mut inner = self.lock();
        inner.half_closed = true;
        inner.stream.half_closed();
        drop(inner);
        self.wake.wake();
    }

    /// What the stream ends with, its source told.
    pub(crate) fn refusal(&self, error: &ProtocolError) -> Status
    where
        S: Source,
    {
        match &mut self.lock().source {
            Some(source) => ended(error, source),
            None => Status::ok(""),
        }
    }

    pub(crate) fn end_with(&self, status: Status) {
        self.finish(Ended::With(status));
    }

    fn finish(&self, end: Ended) {
        self.lock_ended().get_or_insert(end);
        self.read_no_more();
        self.wake.wake();
    }

    /// What it is to end with, if it is: once.
    pub(crate) fn take_end(&self, source: Option<&mut S>) -> Option<Status>
    where
        S: Source,
    {
        let end = self.lock_ended().take()?;
        Some(match (end, source) {
            (Ended::With(status), _) => status,
            (Ended::Because(error), Some(source)) => ended(&error, source),
            // It is over.
            (Ended::Because(_), None) => Status::ok(""),
        })
    }
}

/// What a stream ends with, its source told.
fn ended(error: &ProtocolError, source: &mut impl Source) -> Status {
    source.ends(error);
    requests::status_of(error, source)
}

impl<S> std::fmt::Debug for StreamState<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamState").finish_non_exhaustive()
    }
}

impl<S: Source + Send + 'static> Shared for StreamState<S> {
    fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        loop {
            match self.inner.try_lock() {
                Ok(inner) => return look(&inner.stream),
                Err(TryLockError::Poisoned(poisoned)) => return look(&poisoned.get_ref().stream),
                Err(TryLockError::WouldBlock) if self.apart.is_busy() => return,
                // For one call of the machine.
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
    }

    fn end(&self, status: Status) {
        self.end_with(status);
    }

    fn refuse(&self, error: &ProtocolError) {
        self.finish(Ended::Because(error.clone()));
    }
}

/// A tower service that serves every discovery method: add it to a server as its fallback.
pub struct Service<A> {
    accept: Arc<A>,
    unfinished: Arc<Unfinished>,
}

impl<A: Accept> Service<A> {
    /// A service whose streams are served from what `accept` decides.
    pub fn new(accept: Arc<A>) -> Self {
        let unfinished = Unfinished::new(accept.max_unfinished_bytes());
        Self { accept, unfinished }
    }

    /// The service as tonic's routes, to which others can be added.
    pub fn into_routes(self) -> tonic::service::Routes {
        tonic::service::Routes::from(axum::Router::new().fallback_service(self))
    }

    fn open(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let (protocol, only_type) =
            methods::served(path).ok_or_else(|| Status::new(Code::Unimplemented, format!("no method {path}")))?;
        let settings = self.accept.settings();
        let mut stream = match only_type {
            Some(type_url) => Stream::of_type(protocol, type_url, settings),
            None => Stream::new(protocol, settings),
        };
        if let Some(ends) = self.accept.max_stream_age().and_then(|age| now().checked_add(jittered(age, random()))) {
            stream.end_at(ends);
        }
        if let Some(within) = self.accept.first_request_within() {
            stream.expect_request(now(), within);
        }
        let wake = Wake::default();
        let inner = Inner { stream, source: None, half_closed: false };
        let state = Arc::new(StreamState::<A::Source>::new(inner, wake.clone()));
        let shared: Arc<dyn Shared> = state.clone();
        let peer = head.extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
        let (metadata, handle) = (MetadataMap::from_headers(head.headers), StreamHandle(Arc::downgrade(&shared)));
        let Accepted { source, metadata } = self.accept.accept(Opened { peer, protocol, metadata, wake, handle })?;
        state.lock().source = Some(source);
        let unfinished = self.unfinished.share(Arc::downgrade(&shared));
        let reading = tokio::spawn(requests::read(body, state.clone(), self.accept.max_request_bytes(), unfinished));
        state.is_read_by(reading.abort_handle());
        let body = Body::new(ResponseBody::new(state, reading));
        let mut response = Response::new(body);
        *response.headers_mut() = metadata.into_headers();
        response.headers_mut().insert(header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
        Ok(response)
    }
}

impl<A> Clone for Service<A> {
    fn clone(&self) -> Self {
        Self { accept: self.accept.clone(), unfinished: self.unfinished.clone() }
    }
}

impl<A: Accept> tower_service::Service<Request<Body>> for Service<A> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if let Some(refusal) = refusal::of_other_protocols(&request) {
            return ready(Ok(refusal));
        }
        let encoding = request.headers().get("grpc-encoding").filter(|encoding| *encoding != "identity");
        if let Some(encoding) = encoding {
            return ready(Ok(refusal::of_encoding(encoding)));
        }
        ready(Ok(self.open(request).unwrap_or_else(Status::into_http)))
    }
}
