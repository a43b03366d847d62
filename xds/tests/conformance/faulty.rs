//! A server with a planted defect: our own behind a hand that changes what is said, either way.

use std::net::SocketAddr;
use std::sync::mpsc;

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Status, Streaming};
use xds_transport::Dialect;
use xdstp_client::Endpoint;
use xdstp_client::upstream::Pool;

use super::defects::{Defect, Hand};
use super::link::{Link, Raw};
use super::plane::{Plane, incoming, serve};

impl Plane {
    /// The same with a defect.
    pub(crate) fn with(defect: Option<Defect>, dialect: Dialect) -> Self {
        let (started, start) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let plane = serve(dialect).await;
                let server = stand_before(plane.server, defect).await;
                started.send(Self { server, ..plane }).unwrap();
                std::future::pending::<()>().await;
            });
        });
        start.recv().unwrap()
    }
}

async fn stand_before(server: SocketAddr, defect: Option<Defect>) -> SocketAddr {
    let origin = Pool::new(Endpoint::new(&server.to_string()).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let streams = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let answer = move |request: Request| {
        let number = streams.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        answer(origin.clone(), Hand::new(defect, number, request.uri().path()), request)
    };
    let routes = Routes::from(axum::Router::new().fallback(answer));
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming(listener)));
    address
}

async fn answer(origin: Pool, hand: Hand, request: Request) -> Response<tonic::body::Body> {
    let link = Link::open(origin, request.uri().path().to_owned());
    let mut grpc = tonic::server::Grpc::new(Raw).max_decoding_message_size(64 << 20);
    grpc.streaming(Between(Some((link, hand))), request).await
}

/// A stream between a client and the origin.
struct Between(Option<(Link, Hand)>);

impl tonic::server::StreamingService<Bytes> for Between {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<Result<Bytes, Status>>;
    type Future = std::future::Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let (link, hand) = self.0.take().unwrap();
        let (tell, told) = tokio::sync::mpsc::channel(16);
        tokio::spawn(async move {
            if let Err(status) = carry(link, hand, request.into_inner(), &tell).await {
                let _ = tell.send(Err(status)).await;
            }
        });
        std::future::ready(Ok(tonic::Response::new(ReceiverStream::new(told))))
    }
}

async fn carry(
    mut link: Link,
    mut hand: Hand,
    mut requests: Streaming<Bytes>,
    tell: &tokio::sync::mpsc::Sender<Result<Bytes, Status>>,
) -> Result<(), Status> {
    loop {
        tokio::select! {
            request = requests.message() => match request {
                Ok(Some(request)) => hand.request(request)?,
                _ => return Ok(()),
            },
            response = link.next() => match response {
                Ok(response) => hand.response(response)?,
                Err(status) if status.code() == tonic::Code::Ok => return Ok(()),
                Err(status) => return Err(status),
            },
        }
        for request in hand.up.drain(..) {
            link.send(request).await;
        }
        for response in hand.down.drain(..) {
            if tell.send(Ok(response)).await.is_err() {
                return Ok(());
            }
        }
    }
}
