//! The calls on one connection, and how many there are on all.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::sleep;
use tower_service::Service;

use crate::claim::Claim;
use crate::kept_body::KeptBody;
use crate::seats::Place;

/// How many calls are open on all connections.
pub(crate) type OpenCalls = Arc<watch::Sender<usize>>;

/// Told which limit ended a connection, or has its client wait.
pub(crate) type Limited = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The calls on one connection.
pub(super) struct Calls {
    open: AtomicUsize,
    /// With so many open the connection is full.
    at_most: usize,
    limited: Limited,
    /// One ended since the last look.
    lately: AtomicBool,
    all: OpenCalls,
    place: Place,
}

/// An open call.
pub(super) struct Call {
    calls: Arc<Calls>,
    claim: Claim,
}

/// What serves the calls of one connection.
#[derive(Clone)]
pub(super) struct OfOne {
    router: Router,
    /// What it says of its client.
    client: Extensions,
    calls: Arc<Calls>,
}

/// What a client says in a call, until it has said something.
struct Asked<B> {
    body: B,
    unasked: Option<Claim>,
}

/// The answer to a call, which is open as long as this is there.
pub(super) type Answer = KeptBody<Call>;

impl Calls {
    pub(super) fn new(at_most: u32, limited: Limited, all: OpenCalls, place: Place) -> Arc<Self> {
        let at_most = usize::try_from(at_most).unwrap_or(usize::MAX);
        Arc::new(Self { open: AtomicUsize::new(0), at_most, limited, lately: AtomicBool::new(false), all, place })
    }

    /// Resolves when there was no call for so long: from now on, and after the last up to twice that.
    pub(super) async fn none_for(&self, patience: Duration) {
        loop {
            sleep(patience).await;
            if self.open.load(Ordering::Relaxed) == 0 && !self.lately.swap(false, Ordering::Relaxed) {
                return;
            }
        }
    }

    fn begin(self: &Arc<Self>) -> Call {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.all.send_modify(|open| *open += 1);
        // One that its client took back may still be counted.
        if open >= self.at_most {
            // HTTP/2 has the client wait with the next.
            (self.limited)("streams_per_connection");
        }
        Call { claim: Claim::of(self.place.clone()), calls: self.clone() }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Calls { open, lately, all, .. } = &*self.calls;
        self.claim.is_over();
        lately.store(true, Ordering::Relaxed);
        open.fetch_sub(1, Ordering::Relaxed);
        all.send_modify(|open| *open -= 1);
    }
}

impl OfOne {
    pub(super) fn new(router: Router, client: Extensions, calls: Arc<Calls>) -> Self {
        Self { router, client, calls }
    }
}

impl<B> Service<Request<B>> for OfOne
where
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<B>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().extend(self.client.clone());
        let call = self.calls.begin();
        request.extensions_mut().insert(call.claim.clone());
        let answering = self.router.call(request.map(|body| Asked::of(body, &call.claim)));
        Box::pin(async move { Ok(answering.await?.map(|body| KeptBody::new(body, call))) })
    }
}

impl<B: http_body::Body<Data = Bytes>> Asked<B> {
    fn of(body: B, claim: &Claim) -> Self {
        let mut asked = Self { unasked: Some(claim.clone()), body };
        if asked.body.is_end_stream() {
            asked.has_asked();
        }
        asked
    }

    fn has_asked(&mut self) {
        self.unasked.take().into_iter().for_each(|claim| claim.has_asked());
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Asked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // It is nearly always so, and a frame is large to pass through.
        if self.unasked.is_none() {
            return Pin::new(&mut self.body).poll_frame(cx);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(said)) = &frame
            && said.data_ref().is_some_and(|data| !data.is_empty())
        {
            self.has_asked();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
