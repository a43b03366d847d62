//! A server that says what a test has it say.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use futures_core::Stream;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::state::etcd::messages::{
    RangeRequest, RangeResponse, TxnRequest, TxnResponse, WatchCreateRequest, WatchRequest, WatchResponse,
};

type Answer<Q, A> = Arc<dyn Fn(Q) -> A + Send + Sync>;

/// What is answered, but for what is `late`, to which nothing is said. Of a transaction `None` is no answer at all; a watch ends after its last, if that says so.
#[derive(Clone)]
pub(super) struct Script {
    pub(super) range: Answer<RangeRequest, Result<RangeResponse, Status>>,
    pub(super) late: Arc<dyn Fn(&RangeRequest) -> bool + Send + Sync>,
    pub(super) txn: Answer<TxnRequest, Option<Result<TxnResponse, Status>>>,
    pub(super) watch: Answer<WatchCreateRequest, (Vec<WatchResponse>, Then)>,
    /// How many watches there are now.
    pub(super) watches: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Stays,
    Ends,
}

/// A server, until it is dropped.
pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    _until_dropped: oneshot::Sender<()>,
}

impl Scripted {
    pub(super) fn serve(script: Script) -> Self {
        let (until_dropped, dropped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let server = Server::builder().add_service(Kv(script.clone())).add_service(Watches(script));
            runtime.block_on(async {
                tokio::select! {
                    served = server.serve_with_incoming(TcpListenerStream::new(listener)) => served.unwrap(),
                    _ = dropped => {}
                }
            });
        });
        Self { address, _until_dropped: until_dropped }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

macro_rules! service {
    ($service:ident, $name:literal, |$script:ident, $request:ident| $answer:expr) => {
        #[derive(Clone)]
        struct $service(Script);

        impl NamedService for $service {
            const NAME: &'static str = $name;
        }

        impl Service<http::Request<Body>> for $service {
            type Response = http::Response<Body>;
            type Error = Infallible;
            type Future = Answering;

            fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
                Poll::Ready(Ok(()))
            }

            fn call(&mut self, $request: http::Request<Body>) -> Answering {
                let $script = self.0.clone();
                Box::pin(async move { Ok($answer) })
            }
        }
    };
}

service!(Kv, "etcdserverpb.KV", |script, request| match request.uri().path() {
    "/etcdserverpb.KV/Range" => Grpc::new(ProstCodec::default()).unary(Ranging(script), request).await,
    _ => Grpc::new(ProstCodec::default()).unary(Committing(script), request).await,
});
service!(Watches, "etcdserverpb.Watch", |script, request| {
    Grpc::new(ProstCodec::default()).streaming(Watching(script), request).await
});

struct Ranging(Script);

impl UnaryService<RangeRequest> for Ranging {
    type Response = RangeResponse;
    type Future = Pin<Box<dyn Future<Output = Result<Response<RangeResponse>, Status>> + Send>>;

    fn call(&mut self, request: Request<RangeRequest>) -> Self::Future {
        let request = request.into_inner();
        match (self.0.late)(&request) {
            true => Box::pin(std::future::pending()),
            false => Box::pin(ready((self.0.range)(request).map(Response::new))),
        }
    }
}

struct Committing(Script);

impl UnaryService<TxnRequest> for Committing {
    type Response = TxnResponse;
    type Future = Pin<Box<dyn Future<Output = Result<Response<TxnResponse>, Status>> + Send>>;

    fn call(&mut self, request: Request<TxnRequest>) -> Self::Future {
        match (self.0.txn)(request.into_inner()) {
            Some(answer) => Box::pin(ready(answer.map(Response::new))),
            None => Box::pin(std::future::pending()),
        }
    }
}

struct Watching(Script);

impl StreamingService<WatchRequest> for Watching {
    type Response = WatchResponse;
    type ResponseStream = Told;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Told>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<WatchRequest>>) -> Self::Future {
        let script = self.0.clone();
        Box::pin(async move {
            let mut requests = request.into_inner();
            let create = requests.message().await?.and_then(|request| request.create).unwrap();
            let (answers, then) = (script.watch)(create);
            let answers = answers.into_iter();
            script.watches.fetch_add(1, Ordering::SeqCst);
            Ok(Response::new(Told { answers, then, _requests: requests, watches: script.watches }))
        })
    }
}

pub(super) struct Told {
    answers: std::vec::IntoIter<WatchResponse>,
    then: Then,
    _requests: Streaming<WatchRequest>,
    watches: Arc<AtomicUsize>,
}

impl Drop for Told {
    fn drop(&mut self) {
        self.watches.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stream for Told {
    type Item = Result<WatchResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.answers.next() {
            Some(answer) => Poll::Ready(Some(Ok(answer))),
            None if self.then == Then::Stays => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}
