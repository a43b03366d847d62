//! What clients have, to who asks for it: the client status discovery service (CSDS).

use std::convert::Infallible;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use prost::Message;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_stream::{Stream, StreamExt};
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use super::node_matcher::NodeMatchers;
use crate::wire::client_status::{
    ClientConfig, ClientStatusRequest, ClientStatusResponse, FETCH_METHOD, STREAM_METHOD,
};

/// How large an answer may be.
const MOST_BYTES: usize = 64 << 20;
/// How large a question may be: of one that is not whole, nothing else bounds what is kept.
const MOST_ASKED: usize = 64 << 10;

/// Who knows what clients have: a [`ControlPlane`](super::ControlPlane), [`NodeGroups`](super::NodeGroups), or what one makes
/// [`ClientConfig`]s of.
pub trait ClientStatus: Send + Sync + 'static {
    /// Visits each client with what it has, until the visitor has room for no more; `contents` says whether the resources
    /// themselves are among that. It may take its time: it is called where it keeps nobody waiting.
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>);

    /// The same for those whose nodes, encoded, are meant. Who has many clients asks that before it makes anything of one.
    fn visit_clients_of(
        &self,
        is_meant: &dyn Fn(&Bytes) -> bool,
        contents: bool,
        visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>,
    ) {
        self.visit_clients(contents, &mut |config| {
            if is_meant(&config.node) { visitor(config) } else { ControlFlow::Continue(()) }
        });
    }
}

impl<T: ClientStatus> ClientStatus for Arc<T> {
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
        (**self).visit_clients(contents, visitor);
    }

    fn visit_clients_of(
        &self,
        is_meant: &dyn Fn(&Bytes) -> bool,
        contents: bool,
        visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>,
    ) {
        (**self).visit_clients_of(is_meant, contents, visitor);
    }
}

/// Serves the client status discovery service, unary and streaming (gRFC A40). What is asked for is answered once: it is no
/// watch. `node_matchers` pick clients by the id and the metadata of their nodes, but not by regular expressions. One answer at a time is made, of at most 64 MiB: who has more is to be asked without contents.
///
/// ```no_run
/// use xds_transport::grpc::server::{ClientStatusService, ControlPlane};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = ControlPlane::new();
/// let routes = plane.service().into_routes().add_service(ClientStatusService::new(plane.clone()));
/// tonic::transport::Server::builder().add_routes(routes).serve("[::1]:18000".parse()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ClientStatusService<S> {
    clients: Arc<S>,
    turn: Arc<Semaphore>,
}

impl<S: ClientStatus> ClientStatusService<S> {
    /// Tells of these clients. Whoever can reach it learns what they all have: do not serve it to strangers.
    pub fn new(clients: S) -> Self {
        Self { clients: Arc::new(clients), turn: Arc::new(Semaphore::new(1)) }
    }

    async fn answer(self, request: ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
        let nodes = NodeMatchers::read(&request.node_matchers).map_err(Status::invalid_argument)?;
        // It goes along, so that a caller that hangs up does not let the next answer be made beside this one.
        let Ok(turn) = self.turn.acquire_owned().await else { return Err(Status::unavailable("shutting down")) };
        let made = spawn_blocking(move || {
            let config = gather(&*self.clients, &nodes, !request.exclude_resource_contents, MOST_BYTES);
            drop(turn);
            config.map(|config| ClientStatusResponse { config })
        });
        made.await.map_err(|error| Status::internal(error.to_string()))?
    }
}

/// All clients that are meant, if there is room for them.
fn gather(
    clients: &impl ClientStatus,
    nodes: &NodeMatchers,
    contents: bool,
    most: usize,
) -> Result<Vec<ClientConfig>, Status> {
    let (mut configs, mut bytes) = (Vec::new(), 0);
    clients.visit_clients_of(&|node| nodes.match_encoded(node), contents, &mut |config| {
        bytes += config.encoded_len();
        configs.push(config);
        if bytes > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if bytes > most {
        let than = if contents { "; without contents it may be less" } else { "" };
        return Err(Status::resource_exhausted(format!("clients have more than {most} bytes of it{than}")));
    }
    Ok(configs)
}

impl<S> Clone for ClientStatusService<S> {
    fn clone(&self) -> Self {
        Self { clients: self.clients.clone(), turn: self.turn.clone() }
    }
}

impl<S> NamedService for ClientStatusService<S> {
    const NAME: &'static str = "envoy.service.status.v3.ClientStatusDiscoveryService";
}

type Answering<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, B> tower_service::Service<Request<B>> for ClientStatusService<S>
where
    S: ClientStatus,
    B: Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Answering<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let called = Called(self.clone());
        let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(MOST_ASKED);
        Box::pin(async move {
            Ok(match request.uri().path() {
                FETCH_METHOD => grpc.unary(called, request).await,
                STREAM_METHOD => grpc.streaming(called, request).await,
                path => Status::unimplemented(format!("no method {path}")).into_http(),
            })
        })
    }
}

/// A call of either method.
struct Called<S>(ClientStatusService<S>);

impl<S: ClientStatus> UnaryService<ClientStatusRequest> for Called<S> {
    type Response = ClientStatusResponse;
    type Future = Answering<Result<tonic::Response<ClientStatusResponse>, Status>>;

    fn call(&mut self, request: tonic::Request<ClientStatusRequest>) -> Self::Future {
        let answer = self.0.clone().answer(request.into_inner());
        Box::pin(async { answer.await.map(tonic::Response::new) })
    }
}

type Answers = Pin<Box<dyn Stream<Item = Result<ClientStatusResponse, Status>> + Send>>;

impl<S: ClientStatus> StreamingService<ClientStatusRequest> for Called<S> {
    type Response = ClientStatusResponse;
    type ResponseStream = Answers;
    type Future = Answering<Result<tonic::Response<Answers>, Status>>;

    fn call(&mut self, requests: tonic::Request<Streaming<ClientStatusRequest>>) -> Self::Future {
        let service = self.0.clone();
        let answers = requests.into_inner().then(move |request| {
            let service = service.clone();
            async move { service.answer(request?).await }
        });
        Box::pin(async { Ok(tonic::Response::new(Box::pin(answers) as Answers)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many clients of ten bytes each and more.
    struct Clients(usize);

    impl ClientStatus for Clients {
        fn visit_clients(&self, _: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
            let config = ClientConfig { node: vec![0; 10].into(), ..ClientConfig::default() };
            let _ = (0..self.0).try_for_each(|_| visitor(config.clone()));
        }
    }

    #[test]
    fn there_is_room_for_so_many_bytes_and_who_has_more_is_told_what_to_leave_out() {
        let all = NodeMatchers::default();
        assert_eq!(gather(&Clients(3), &all, true, 36).unwrap().len(), 3);
        for (contents, advised) in [(true, true), (false, false)] {
            let refused = gather(&Clients(4), &all, contents, 36).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
            assert!(refused.message().contains("more than 36 bytes"), "{refused}");
            assert_eq!(refused.message().contains("without contents"), advised, "{refused}");
        }
    }
}
