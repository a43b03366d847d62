//! When bytes of responses come in: a decoder tells of whole messages only, and a large one over a slow link takes its
//! time.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::channel::GrpcChannel;
use super::not_grpc::NotGrpc;
use super::whole::{Handed, Whole};
use crate::grpc::now;

/// The time of the last bytes that came in.
#[derive(Clone, Debug, Default)]
pub(super) struct Received(Arc<Mutex<Option<Instant>>>);

impl Received {
    pub(super) fn last(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now());
    }
}

/// A channel that notes when bytes of the responses on it come in, and puts their messages together; answers that are no
/// gRPC are errors.
#[derive(Debug)]
pub(super) struct Noting<C> {
    pub(super) channel: C,
    pub(super) received: Received,
    /// The longest message, and by which way messages go.
    pub(super) limit: usize,
    pub(super) handed: Handed,
}

impl<C: GrpcChannel> Service<Request<Body>> for Noting<C> {
    type Response = Response<Whole<NotedBody>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.channel.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (response, received) = (self.channel.call(request), self.received.clone());
        let (limit, handed) = (self.limit, self.handed.clone());
        Box::pin(async move {
            let response = response.await.map_err(Into::into)?.map(Body::new);
            match NotGrpc::of(&response) {
                Some(wrong) => Err(wrong.into_status().into()),
                None => Ok(response.map(|body| Whole::new(NotedBody { body, received }, limit, handed))),
            }
        })
    }
}

#[derive(Debug)]
pub(super) struct NotedBody {
    body: Body,
    received: Received,
}

impl http_body::Body for NotedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && frame.data_ref().is_some_and(|data| !data.is_empty())
        {
            self.received.note();
        }
        polled
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
    use std::convert::Infallible;
    use std::task::Waker;

    use http::HeaderMap;
    use http_body::Body as _;

    use super::*;

    /// One frame, and no more.
    struct Coming(Option<Frame<Bytes>>);

    impl http_body::Body for Coming {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.take().map(Ok))
        }
    }

    /// A server that is silent is taken for gone: what says nothing is no word of it.
    #[test]
    fn bytes_that_come_in_are_noted_and_nothing_else_is() {
        let is_noted = |frame| {
            let received = Received::default();
            let mut body = NotedBody { body: Body::new(Coming(Some(frame))), received: received.clone() };
            let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Some(Ok(_)))), "{polled:?}");
            received.last().is_some()
        };
        let frames =
            [Frame::data(Bytes::from_static(b"x")), Frame::data(Bytes::new()), Frame::trailers(HeaderMap::new())];
        assert_eq!(frames.map(is_noted), [true, false, false]);
    }
}
