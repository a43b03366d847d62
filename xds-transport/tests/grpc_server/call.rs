//! A client that writes HTTP/2 by hand: what it sends, and when, is the test's.

use std::io::Write;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response, Version};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, MutexGuard};
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Node};

use crate::CDS;

pub(crate) struct Connection {
    requests: SendRequest<Bytes>,
    running: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Connection {
    pub(crate) async fn handshake(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (requests, connection) = h2::client::handshake(io).await.unwrap();
        Self { requests, running: tokio::spawn(connection) }
    }

    /// A stream of the aggregated method.
    pub(crate) async fn aggregated(&self, protocol: Protocol) -> Call {
        self.call(protocol.aggregated_method(), &[("content-type", "application/grpc")]).await
    }

    pub(crate) async fn call(&self, path: &str, headers: &[(&str, &str)]) -> Call {
        let mut request = Request::post(format!("http://in.memory{path}")).version(Version::HTTP_2);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut requests = self.requests.clone().ready().await.unwrap();
        let (response, sending) = requests.send_request(request.body(()).unwrap(), false).unwrap();
        Call { sending, response: Some(response), body: None, buffer: BytesMut::new() }
    }

    /// The connection breaks.
    pub(crate) fn cut(self) {
        self.running.abort();
    }
}

pub(crate) struct Call {
    pub(crate) sending: SendStream<Bytes>,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    buffer: BytesMut,
}

impl Call {
    pub(crate) fn send(&mut self, message: &impl Message) {
        self.send_bytes(framed(0, &message.encode_to_vec()), false);
    }

    pub(crate) fn send_bytes(&mut self, bytes: Bytes, last: bool) {
        self.sending.send_data(bytes, last).unwrap();
    }

    pub(crate) async fn response(&mut self) -> Response<()> {
        let (head, body) = in_time(self.response.take().unwrap()).await.unwrap().into_parts();
        self.body = Some(body);
        Response::from_parts(head, ())
    }

    /// The next message; `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        if self.body.is_none() {
            self.response().await;
        }
        loop {
            if let [flag, a, b, c, d, ..] = self.buffer[..] {
                assert_eq!(flag, 0);
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if self.buffer.len() >= 5 + length {
                    return Some(self.buffer.split_to(5 + length).split_off(5).freeze());
                }
            }
            let chunk = self.chunk().await?;
            self.buffer.extend_from_slice(&chunk);
        }
    }

    pub(crate) async fn chunk(&mut self) -> Option<Bytes> {
        let body = self.body.as_mut().unwrap();
        let chunk = in_time(body.data()).await?.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        Some(chunk)
    }

    pub(crate) async fn delta(&mut self) -> Option<DeltaDiscoveryResponse> {
        Some(DeltaDiscoveryResponse::decode(self.message().await?).unwrap())
    }

    pub(crate) async fn sotw(&mut self) -> Option<DiscoveryResponse> {
        Some(DiscoveryResponse::decode(self.message().await?).unwrap())
    }

    /// Code and words of the trailers, which nothing but messages comes before.
    pub(crate) async fn status(&mut self) -> (i32, String) {
        while self.message().await.is_some() {}
        assert!(self.buffer.is_empty(), "half a message");
        let trailers = self.body.as_mut().unwrap().trailers().await.unwrap().unwrap();
        status_of(&trailers)
    }
}

/// Tests in which a stream does something apart take turns: the places for that are those of the process, and a clock that does
/// not run would jump while one test waits for what another has.
pub(crate) async fn apart() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Longer than any test waits for something: the clock jumps there when nothing else can happen.
async fn in_time<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(1000 * 3600), happens).await.expect("nothing comes")
}

pub(crate) fn status_of(headers: &HeaderMap) -> (i32, String) {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    (text("grpc-status").unwrap().parse().unwrap(), text("grpc-message").unwrap_or_default().replace("%20", " "))
}

pub(crate) fn framed(flag: u8, message: &[u8]) -> Bytes {
    [&[flag], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat().into()
}

pub(crate) fn gzip(message: &impl Message) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&message.encode_to_vec()).unwrap();
    encoder.finish().unwrap()
}

/// The first request for all clusters.
pub(crate) fn delta_wildcard() -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest { type_url: CDS.into(), ..Default::default() }
}

pub(crate) fn sotw_wildcard() -> DiscoveryRequest {
    DiscoveryRequest { type_url: CDS.into(), ..Default::default() }
}

pub(crate) fn node(features: &[&str]) -> Bytes {
    let client_features = features.iter().map(|&feature| feature.into()).collect();
    Node { id: "me".into(), client_features, ..Node::default() }.encode_to_vec().into()
}

pub(crate) fn ack(response: &DeltaDiscoveryResponse) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest { response_nonce: response.nonce.clone(), ..delta_wildcard() }
}
