//! One gRPC stream over HTTP/2, written by hand on either side.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn in_time<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, happens).await.expect("nothing comes")
}

pub(crate) async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let io = TcpStream::connect(address).await.unwrap();
    let (requests, connection) = h2::client::handshake(io).await.unwrap();
    tokio::spawn(connection);
    requests
}

/// Sends so much, as the windows on the way have room for it.
pub(crate) async fn send(stream: &mut SendStream<Bytes>, mut length: usize) {
    while length > 0 {
        stream.reserve_capacity(length.min(1 << 16));
        let room = in_time(std::future::poll_fn(|cx| stream.poll_capacity(cx))).await.unwrap().unwrap();
        stream.send_data(vec![0; room].into(), false).unwrap();
        length = length.saturating_sub(room);
    }
}

/// A client's stream.
pub(crate) struct Call {
    pub(crate) sending: SendStream<Bytes>,
    response: Option<ResponseFuture>,
    pub(crate) receiving: Option<Receiving>,
}

impl Call {
    pub(crate) async fn open(address: SocketAddr, path: &str) -> Self {
        Self::open_with(address, path, &[]).await
    }

    /// The same, with more headers.
    pub(crate) async fn open_with(address: SocketAddr, path: &str, headers: &[(&str, &[u8])]) -> Self {
        Self::open_on(&connect(address).await, address, path, headers).await
    }

    /// The same, on a connection that there is.
    pub(crate) async fn open_on(
        requests: &SendRequest<Bytes>,
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &[u8])],
    ) -> Self {
        let request = Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (response, sending) =
            requests.clone().ready().await.unwrap().send_request(request.body(()).unwrap(), false).unwrap();
        Self { sending, response: Some(response), receiving: None }
    }

    /// Sends as the windows on the way have room, and no more once the stream is over.
    pub(crate) async fn send(&mut self, mut data: Bytes) {
        while !data.is_empty() {
            self.sending.reserve_capacity(data.len());
            let room = in_time(std::future::poll_fn(|cx| self.sending.poll_capacity(cx))).await;
            let Some(Ok(room)) = room else { return };
            if self.sending.send_data(data.split_to(room.min(data.len())), false).is_err() {
                return;
            }
        }
    }

    pub(crate) async fn response(&mut self) -> HeaderMap {
        let (head, body) = in_time(self.response.take().unwrap()).await.unwrap().into_parts();
        self.receiving = Some(Receiving::new(body));
        head.headers
    }

    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        if self.receiving.is_none() {
            self.response().await;
        }
        self.receiving.as_mut().unwrap().message().await.unwrap()
    }

    /// Code and words, of the trailers or of a response that has no more.
    pub(crate) async fn status(&mut self) -> (i32, String) {
        let headers = if self.receiving.is_none() { self.response().await } else { HeaderMap::new() };
        if headers.contains_key("grpc-status") {
            return status_of(&headers);
        }
        while self.message().await.is_some() {}
        let trailers = in_time(self.receiving.as_mut().unwrap().body.trailers()).await.unwrap().unwrap();
        status_of(&trailers)
    }
}

/// What comes in on a stream.
pub(crate) struct Receiving {
    body: RecvStream,
    buffer: BytesMut,
}

impl Receiving {
    fn new(body: RecvStream) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    pub(crate) async fn message(&mut self) -> Result<Option<Bytes>, h2::Error> {
        loop {
            if let [_, a, b, c, d, ..] = self.buffer[..] {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if self.buffer.len() >= 5 + length {
                    return Ok(Some(self.buffer.split_to(5 + length).split_off(5).freeze()));
                }
            }
            match self.data().await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
    }

    pub(crate) async fn data(&mut self) -> Result<Option<Bytes>, h2::Error> {
        let Some(data) = in_time(self.body.data()).await.transpose()? else { return Ok(None) };
        self.body.flow_control().release_capacity(data.len())?;
        Ok(Some(data))
    }
}

/// Somebody who serves one stream after the other.
pub(crate) struct Origin(TcpListener);

/// A connection as its server has it.
pub(crate) struct Connection {
    streams: mpsc::UnboundedReceiver<(Request<RecvStream>, SendResponse<Bytes>)>,
    connection: AbortHandle,
}

/// A stream as its server has it.
pub(crate) struct Served {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) receiving: Receiving,
    respond: SendResponse<Bytes>,
    connection: AbortHandle,
}

impl Origin {
    pub(crate) async fn listen() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// Where one was that has gone.
    pub(crate) async fn listen_at(address: SocketAddr) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self(socket.listen(16).unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The next connection, and its first stream.
    pub(crate) async fn accept(&self) -> Served {
        self.connection(None).await.stream().await
    }

    /// The next connection, which bears so many streams at a time.
    pub(crate) async fn connection(&self, bears: Option<u32>) -> Connection {
        let (io, _) = in_time(self.0.accept()).await.unwrap();
        let mut builder = h2::server::Builder::new();
        // What is not read of one stream holds up no other here.
        builder.initial_connection_window_size(1 << 24);
        if let Some(bears) = bears {
            builder.max_concurrent_streams(bears);
        }
        let mut connection = builder.handshake(io).await.unwrap();
        let (opened, streams) = mpsc::unbounded_channel();
        let connection = tokio::spawn(async move {
            while let Some(Ok(stream)) = connection.accept().await {
                let _ = opened.send(stream);
            }
        });
        Connection { streams, connection: connection.abort_handle() }
    }
}

impl Connection {
    pub(crate) async fn stream(&mut self) -> Served {
        let (request, respond) = in_time(self.streams.recv()).await.unwrap();
        let (head, body) = request.into_parts();
        let (path, connection) = (head.uri.path().to_owned(), self.connection.clone());
        Served { path, headers: head.headers, receiving: Receiving::new(body), respond, connection }
    }
}

impl Served {
    pub(crate) fn respond(&mut self) -> SendStream<Bytes> {
        self.respond_with("x-nothing", "")
    }

    /// The same, with one more header.
    pub(crate) fn respond_with(&mut self, name: &str, value: &str) -> SendStream<Bytes> {
        let response = Response::builder().header("content-type", "application/grpc").header(name, value);
        self.respond.send_response(response.body(()).unwrap(), false).unwrap()
    }

    /// The connection breaks.
    pub(crate) fn cut(self) {
        self.connection.abort();
    }
}

pub(crate) fn framed(message: &[u8]) -> Bytes {
    [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat().into()
}

pub(crate) fn trailers(code: &'static str, words: &'static str) -> HeaderMap {
    let pairs = [("grpc-status", code), ("grpc-message", words)];
    pairs.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
}

fn status_of(headers: &HeaderMap) -> (i32, String) {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    (text("grpc-status").unwrap().parse().unwrap(), unescaped(&text("grpc-message").unwrap_or_default()))
}

/// `%20` is a space.
fn unescaped(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).unwrap()
}
