//! The tower service: a path picks protocol and type, a call opens a stream.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use http::header::{self, HeaderValue};
use http::{Request, Response};
use tonic::{Code, Status};

use crate::grpc::now;
use crate::grpc::server::accept::{Accept, Accepted, Opened};
use crate::grpc::server::age::{jittered, random};
use crate::grpc::server::body::ResponseBody;
use crate::grpc::server::handle::{Shared, StreamHandle, Wake};
use crate::grpc::server::requests::Taken;
use crate::grpc::server::state::{Inner, StreamState};
use crate::grpc::server::streams::Streams;
use crate::grpc::server::turns::Turns;
use crate::grpc::server::unfinished::Unfinished;
use crate::grpc::server::{refusal, requests};
use crate::server::{Settings, Source, Stream};

/// A tower service that serves every discovery method: add it to a server as its fallback. What is of connections, such as their
/// keepalive, is for that server to say: tonic's has `http2_keepalive_interval`.
pub struct Service<A> {
    accept: Arc<A>,
    settings: Settings,
    bounds: Bounds,
    unfinished: Arc<Unfinished>,
    turns: Option<Turns>,
    streams: Streams,
}

/// What streams of a service may do.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    stream_age: Option<Duration>,
    request_bytes: usize,
    first_request: Option<Duration>,
    streams: Option<usize>,
}

impl<A: Accept> Service<A> {
    /// A service whose streams are served from what `accept` decides.
    pub fn new(accept: A) -> Self {
        let bounds = Bounds { stream_age: None, request_bytes: 16 << 20, first_request: None, streams: None };
        Self {
            accept: Arc::new(accept),
            settings: Settings::default(),
            bounds,
            unfinished: Unfinished::new(256 << 20),
            turns: None,
            streams: Streams::default(),
        }
    }

    /// The settings of every stream.
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// How long a stream lives, more or less, so that clients spread over the servers there are: each is ended at a
    /// moment of its own, between three and five quarters of this (rule 93). Otherwise streams do not age.
    #[must_use]
    pub fn max_stream_age(mut self, age: Duration) -> Self {
        self.bounds.stream_age = Some(age);
        self
    }

    /// How many streams there may be: with one more, that ends with RESOURCE_EXHAUSTED. Otherwise any number.
    #[must_use]
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.bounds.streams = Some(streams);
        self
    }

    /// The longest request taken, in bytes: what a client may make the server hold before anything is known of it (rule 132).
    /// 16 MiB otherwise.
    #[must_use]
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.bounds.request_bytes = bytes;
        self
    }

    /// How many bytes of requests that are not whole yet are kept, of all streams together. Beyond, of the
    /// [client](Accepted::client) that sends most the stream that sends most of one ends with RESOURCE_EXHAUSTED. 256 MiB otherwise.
    #[must_use]
    pub fn max_unfinished_bytes(self, bytes: usize) -> Self {
        Self { unfinished: Unfinished::new(bytes), ..self }
    }

    /// What tells how many bytes of requests that are not whole are kept, for as long as anybody asks.
    pub fn unfinished_bytes(&self) -> impl Fn() -> usize + Send + Sync + use<A> {
        let unfinished = self.unfinished.clone();
        move || unfinished.bytes()
    }

    /// How many streams that have much to send or to compare go on at a time: others, who have little, wait behind so many of them, and
    /// not behind all. Of those that wait, each [client](Accepted::client) has its turn. Otherwise any number. It is for servers that poll a body once it is woken, whatever
    /// its client takes: one that does not would hold up those behind it.
    #[must_use]
    pub fn long_turns(self, at_a_time: usize) -> Self {
        Self { turns: Some(Turns::new(at_a_time)), ..self }
    }

    /// How long a stream may take to send its first request. A client may have nothing to ask for yet, so that it may take any
    /// time otherwise.
    #[must_use]
    pub fn first_request_within(mut self, time: Duration) -> Self {
        self.bounds.first_request = Some(time);
        self
    }

    /// Its streams: how many there are, and how they are ended.
    pub fn streams(&self) -> Streams {
        self.streams.clone()
    }

    /// The service as tonic's routes, to which others can be added.
    pub fn into_routes(self) -> tonic::service::Routes {
        tonic::service::Routes::from(axum::Router::new().fallback_service(self))
    }

    async fn open(self, request: Request<Body>, gzip: bool) -> Result<Response<Body>, Status> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let (bounds, settings) = (self.bounds, self.settings);
        let served = settings.rules.served(path);
        let (protocol, only_type) =
            served.ok_or_else(|| Status::new(Code::Unimplemented, format!("no method {path}")))?;
        let mut stream = match only_type {
            Some(type_url) => Stream::of_type(protocol, type_url, settings),
            None => Stream::new(protocol, settings),
        };
        if let Some(ends) = bounds.stream_age.and_then(|age| now().checked_add(jittered(age, random()))) {
            stream.end_at(ends);
        }
        if let Some(within) = bounds.first_request {
            stream.expect_request(now(), within);
        }
        let wake = Wake::default();
        let inner = Inner { stream, source: None, half_closed: false };
        let state = Arc::new(StreamState::<A::Source>::new(inner, wake.clone()));
        let shared: Arc<dyn Shared> = state.clone();
        let entry = self.streams.enter(Arc::downgrade(&shared), bounds.streams)?;
        let opened = Opened::new(head, protocol, wake, StreamHandle(Arc::downgrade(&shared)));
        let Accepted { source, metadata, client } = unless_ended(&state, self.accept.accept(opened)).await?;
        state.lock().source = Some(source);
        let unfinished = self.unfinished.share(Arc::downgrade(&shared), client);
        let taken = Taken { limit: bounds.request_bytes, gzip };
        let reading = tokio::spawn(requests::read(body, state.clone(), taken, unfinished));
        state.is_read_by(reading.abort_handle());
        let body = Body::new(ResponseBody::new(state, reading, entry, self.turns.map(|turns| turns.of(client))));
        let mut response = Response::new(body);
        *response.headers_mut() = metadata.into_headers();
        refusal::name_encodings(response.headers_mut());
        response.headers_mut().insert(header::CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
        Ok(response)
    }
}

/// Who decides about a stream may take long, and nobody who ends it waits for that.
async fn unless_ended<S: Source, T>(
    state: &StreamState<S>,
    deciding: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let mut deciding = pin!(deciding);
    poll_fn(|cx| {
        // Before looking, or an end between looking and registering is not seen.
        state.wake.register(cx.waker());
        match state.take_end(None) {
            Some(end) => Poll::Ready(Err(end)),
            None => deciding.as_mut().poll(cx),
        }
    })
    .await
}

impl<A> Clone for Service<A> {
    fn clone(&self) -> Self {
        let Self { accept, settings, bounds, unfinished, turns, streams } = self;
        let (accept, settings) = (accept.clone(), settings.clone());
        let (unfinished, turns, streams) = (unfinished.clone(), turns.clone(), streams.clone());
        Self { accept, settings, bounds: *bounds, unfinished, turns, streams }
    }
}

impl<A> fmt::Debug for Service<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bounds, unfinished, turns, .. } = self;
        let mut service = f.debug_struct("Service");
        service.field("bounds", bounds).field("unfinished_bytes", &unfinished.bytes());
        service.field("long_turns", &turns.as_ref().map(Turns::left)).finish_non_exhaustive()
    }
}

impl<A: Accept> tower_service::Service<Request<Body>> for Service<A> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if let Some(refusal) = refusal::of_other_protocols(&request) {
            return Box::pin(ready(Ok(refusal)));
        }
        let gzip = match request.headers().get("grpc-encoding").map(HeaderValue::as_bytes) {
            None | Some(b"identity") => false,
            Some(b"gzip") => true,
            Some(encoding) => return Box::pin(ready(Ok(refusal::of_encoding(encoding)))),
        };
        let opening = self.clone().open(request, gzip);
        Box::pin(async { Ok(opening.await.unwrap_or_else(Status::into_http)) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use xdstp_cache::{Cache, Options};

    use super::*;
    use crate::Frame;

    #[test]
    fn of_unfinished_requests_256_mib_are_kept_unless_somebody_says_otherwise() {
        let shared = crate::grpc::server::Shared::new(Cache::new(Options::default()), Settings::default());
        let nobody: Weak<StreamState<Cache<Frame>>> = Weak::new();
        let mut share = shared.service().unfinished.share(nobody, None);
        share.keep(256 << 20).unwrap();
        share.keep((256 << 20) + 1).unwrap_err();
    }
}
