//! The tower service: a path picks protocol and type, a call opens a stream.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use http::{Request, Response, header};
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Code, Status};

use crate::grpc::now;
use crate::grpc::server::accept::{Accept, Accepted, Opened};
use crate::grpc::server::age::{jittered, random};
use crate::grpc::server::body::ResponseBody;
use crate::grpc::server::handle::{Shared, StreamHandle, Wake};
use crate::grpc::server::state::{Inner, StreamState};
use crate::grpc::server::unfinished::Unfinished;
use crate::grpc::server::{refusal, requests};
use crate::server::Stream;

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
        let settings = self.accept.settings();
        let served = settings.rules.served(path);
        let (protocol, only_type) =
            served.ok_or_else(|| Status::new(Code::Unimplemented, format!("no method {path}")))?;
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
