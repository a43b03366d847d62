//! What clients have, to who asks for it: the client status discovery service (CSDS).

mod places;
mod told;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Request, Response};
use http_body::Body;
use prost::Message;
use tokio::task::spawn_blocking;
use tonic::server::NamedService;
use tonic::{Status, Streaming};
use tonic_prost::ProstDecoder;

use self::places::Places;
use self::told::{Answering, Answers, Told};
use super::node_matcher::NodeMatchers;
use crate::wire::client_status::{ClientConfig, ClientStatusRequest, FETCH_METHOD, STREAM_METHOD};

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

/// Whose a call is, among the extensions of its request: of one client, one answer about [clients](ClientStatusService) is made and
/// read at a time, and in the line for that it has one place. A call without it is of a client of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientNumber(pub u64);

/// Serves the client status discovery service, unary and streaming (gRFC A40). What is asked for is answered once: it is no
/// watch. `node_matchers` pick clients by the id and the metadata of their nodes, but not by regular expressions. Four answers at a
/// time are made and read, one of each [client](ClientNumber), and of at most 64 MiB: who has more is to be asked without contents. One
/// is to be read within half a minute and a second for each MiB; and at all, where others wait.
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
pub struct ClientStatusService<S> {
    clients: Arc<S>,
    places: Places,
}

impl<S: ClientStatus> ClientStatusService<S> {
    /// Tells of these clients. Whoever can reach it learns what they all have: do not serve it to strangers.
    pub fn new(clients: S) -> Self {
        Self { clients: Arc::new(clients), places: Places::new() }
    }

    async fn answer(self, request: ClientStatusRequest, client: Option<u64>) -> Result<Told, Status> {
        let nodes = NodeMatchers::read(&request.node_matchers).map_err(Status::invalid_argument)?;
        // It goes along until the answer was read, so that no more of them are there than places.
        let place = self.places.next(client).await;
        let made = spawn_blocking(move || {
            let configs = gather(&*self.clients, &nodes, !request.exclude_resource_contents, MOST_BYTES)?;
            Ok::<_, Status>((told::length(&configs), configs, place))
        });
        let (length, configs, place) = made.await.map_err(|error| Status::internal(error.to_string()))??;
        Ok(Told::new(configs, length, place))
    }

    /// What answers the requests of a call.
    fn answers(&self, client: Option<u64>) -> impl FnMut(ClientStatusRequest) -> Answering + Send + Unpin + 'static {
        let service = self.clone();
        move |request| Box::pin(service.clone().answer(request, client))
    }

    async fn fetch(self, mut requests: Requests, client: Option<u64>) -> Result<Response<tonic::body::Body>, Status> {
        let request = requests.message().await?.ok_or_else(|| Status::internal("Missing request message."))?;
        let told = self.clone().answer(request, client).await?;
        Ok(response(Answers::one(told, self.answers(client))))
    }
}

type Requests = Streaming<ClientStatusRequest>;

fn response(answers: impl Body<Data = Bytes, Error = Status> + Send + 'static) -> Response<tonic::body::Body> {
    let mut response = Response::new(tonic::body::Body::new(answers));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// Nothing that is compressed is understood.
fn is_plain(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get("grpc-encoding") {
        Some(encoding) if encoding != "identity" => {
            let encoding = encoding.to_str().unwrap_or("an encoding that is no text");
            Err(Status::unimplemented(format!("Content is compressed with `{encoding}` which isn't supported")))
        }
        _ => Ok(()),
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
        Self { clients: self.clients.clone(), places: self.places.clone() }
    }
}

impl<S: fmt::Debug> fmt::Debug for ClientStatusService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientStatusService").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl<S> NamedService for ClientStatusService<S> {
    const NAME: &'static str = "envoy.service.status.v3.ClientStatusDiscoveryService";
}

impl<S, B> tower_service::Service<Request<B>> for ClientStatusService<S>
where
    S: ClientStatus,
    B: Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let client = head.extensions.get().map(|ClientNumber(number)| *number);
            let requests = is_plain(&head.headers)
                .map(|()| Streaming::new_request(ProstDecoder::default(), body, None, Some(MOST_ASKED)));
            let answered = match (head.uri.path(), requests) {
                (FETCH_METHOD, Ok(requests)) => service.fetch(requests, client).await,
                (STREAM_METHOD, Ok(requests)) => Ok(response(Answers::to(requests, service.answers(client)))),
                (FETCH_METHOD | STREAM_METHOD, Err(status)) => Err(status),
                (path, _) => Err(Status::unimplemented(format!("no method {path}"))),
            };
            Ok(answered.unwrap_or_else(Status::into_http))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http_body_util::{BodyExt as _, Full};
    use tokio::task::JoinHandle;
    use tower_service::Service as _;

    use super::*;
    use crate::wire::client_status::ClientStatusResponse;

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

    /// Three clients, the second of which is large; it is counted how often they were visited.
    #[derive(Default)]
    struct Visited(AtomicUsize);

    impl Visited {
        fn all() -> Vec<ClientConfig> {
            let config = |length| ClientConfig { node: vec![7; length].into(), ..ClientConfig::default() };
            [10, 300_000, 0].map(config).to_vec()
        }
    }

    impl ClientStatus for Visited {
        fn visit_clients(&self, _: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            let _ = Self::all().into_iter().try_for_each(visitor);
        }
    }

    type Service = ClientStatusService<Arc<Visited>>;

    fn service() -> (Arc<Visited>, Service) {
        let clients = Arc::<Visited>::default();
        (clients.clone(), ClientStatusService::new(clients))
    }

    /// A call of a client that asks for everything.
    fn call(service: &Service, method: &str, client: Option<u64>) -> JoinHandle<Response<tonic::body::Body>> {
        let mut request = Request::new(Full::new(Bytes::from_static(&[0; 5])));
        *request.uri_mut() = method.parse().unwrap();
        client.into_iter().for_each(|number| _ = request.extensions_mut().insert(ClientNumber(number)));
        let answering = service.clone().call(request);
        tokio::spawn(async { answering.await.unwrap() })
    }

    /// Whatever is done meanwhile, on other threads, too.
    async fn answered(call: JoinHandle<Response<tonic::body::Body>>) -> tonic::body::Body {
        call.await.unwrap().into_body()
    }

    /// What is told, as it comes, and how it ends.
    async fn read(mut body: tonic::body::Body) -> (Vec<Bytes>, Option<HeaderValue>) {
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            match frame.unwrap().into_data() {
                Ok(piece) => pieces.push(piece),
                Err(trailers) => return (pieces, trailers.into_trailers().unwrap().remove("grpc-status")),
            }
        }
        (pieces, None)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_comes_in_pieces_that_are_one_message() {
        let (_, service) = service();
        for method in [FETCH_METHOD, STREAM_METHOD] {
            let (pieces, status) = read(answered(call(&service, method, None)).await).await;
            assert!(pieces.iter().all(|piece| piece.len() <= 16 << 10) && pieces.len() > 18, "{}", pieces.len());
            let all = pieces.concat();
            let told = ClientStatusResponse::decode(&all[5..]).unwrap();
            assert_eq!((told.config, status), (Visited::all(), Some(HeaderValue::from_static("0"))));
            assert_eq!((all[0], u32::from_be_bytes(all[1..5].try_into().unwrap()) as usize), (0, all.len() - 5));
        }
    }

    /// Who asks again and again, and reads nothing, would have each of them kept.
    #[tokio::test(start_paused = true)]
    async fn an_answer_is_made_when_its_client_has_read_the_one_before() {
        let (visited, service) = service();
        let made = || visited.0.load(Ordering::SeqCst);
        let mut calls: VecDeque<_> = (0..20).map(|_| call(&service, FETCH_METHOD, Some(1))).collect();
        let other = call(&service, FETCH_METHOD, Some(2));
        for at in 0..3 {
            let body = answered(calls.pop_front().unwrap()).await;
            // All that can go on does.
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(made(), 2 + at, "another client has its own");
            assert_eq!(read(body).await.1, Some(HeaderValue::from_static("0")));
        }
        answered(other).await;
        // Who hangs up leaves the line to the others.
        let last = calls.pop_back().unwrap();
        calls.iter().for_each(JoinHandle::abort);
        assert!(!read(answered(last).await).await.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_given_up_and_at_once_where_others_wait() {
        let (visited, service) = service();
        let made = || visited.0.load(Ordering::SeqCst);
        let over = Some(HeaderValue::from_static("4"));
        for (patience, others) in [(29, 0), (3, 4)] {
            let (before, start) = (made(), tokio::time::Instant::now());
            let mut unread = Vec::new();
            for client in 0..4 {
                unread.push(answered(call(&service, FETCH_METHOD, Some(client))).await);
            }
            let others: Vec<_> = (4..4 + others).map(|client| call(&service, FETCH_METHOD, Some(client))).collect();
            tokio::time::sleep(Duration::from_secs(patience)).await;
            if others.is_empty() {
                assert_eq!(service.places.left(), 0, "they have their time");
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
            let count = others.len();
            for other in others {
                let body = answered(other).await;
                assert_eq!(read(body).await.1, Some(HeaderValue::from_static("0")));
            }
            assert_eq!((made() - before, service.places.left()), (4 + count, 4));
            assert!(count == 0 || start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
            for body in unread {
                assert_eq!(read(body).await.1, over);
            }
        }
    }

    /// It takes longer than who does not read at all has, and others wait.
    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_has_its_time() {
        let (_, service) = service();
        let mut slow = Vec::new();
        for client in 0..4 {
            slow.push(answered(call(&service, FETCH_METHOD, Some(client))).await);
        }
        let waits = call(&service, FETCH_METHOD, Some(4));
        for _ in 0..15 {
            for body in &mut slow {
                assert!(body.frame().await.unwrap().unwrap().is_data());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(!waits.is_finished());
        for body in slow {
            assert_eq!(read(body).await.1, Some(HeaderValue::from_static("0")));
        }
        answered(waits).await;
    }
}
