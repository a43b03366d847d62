//! Incremental ADS served by tonic the ordinary way: messages of prost, a stream in, a stream out.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

/// The service, and the path of its one method here.
pub const SERVICE: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
/// The path of incremental ADS.
pub const PATH: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/// How many responses may wait for one client: an initial state is some hundred.
const WAITING: usize = 256;

/// Where the responses of one stream go.
pub type Responses = mpsc::Sender<Result<DeltaDiscoveryResponse, Status>>;

/// Who is told of every stream.
pub trait Handler: Send + Sync + 'static {
    /// A stream was opened: its requests, and where its responses go. Called before the client sees headers.
    fn open(&self, requests: Streaming<DeltaDiscoveryRequest>, responses: Responses);
}

/// The tower service around a handler.
pub struct DeltaAds<H>(Arc<H>);

impl<H: Handler> DeltaAds<H> {
    /// Serves what `handler` sends.
    pub fn new(handler: Arc<H>) -> Self {
        Self(handler)
    }
}

impl<H> Clone for DeltaAds<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H> NamedService for DeltaAds<H> {
    const NAME: &'static str = SERVICE;
}

impl<H: Handler> tower_service::Service<http::Request<Body>> for DeltaAds<H> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = Method(self.0.clone());
        Box::pin(async move {
            if request.uri().path() != PATH {
                return Ok(Status::unimplemented("only incremental ADS is served").into_http());
            }
            Ok(Grpc::new(ProstCodec::default()).streaming(method, request).await)
        })
    }
}

struct Method<H>(Arc<H>);

impl<H: Handler> StreamingService<DeltaDiscoveryRequest> for Method<H> {
    type Response = DeltaDiscoveryResponse;
    type ResponseStream = ReceiverStream<Result<DeltaDiscoveryResponse, Status>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<DeltaDiscoveryRequest>>) -> Self::Future {
        let (responses, stream) = mpsc::channel(WAITING);
        self.0.open(request.into_inner(), responses);
        std::future::ready(Ok(Response::new(ReceiverStream::new(stream))))
    }
}
