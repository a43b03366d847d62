//! An origin on a loopback socket that says what it is told to say, and counts what it hears.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::Response;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use xds_transport::wire::walk::{FieldValue, Fields};

/// One origin with one client.
pub struct Origin {
    /// Where it is.
    pub address: SocketAddr,
    heard: Rc<RefCell<Heard>>,
    news: Arc<Notify>,
    responses: mpsc::UnboundedSender<Bytes>,
}

/// What came on the stream.
struct Heard {
    requests: usize,
    bytes: usize,
    names: Option<HashSet<Bytes>>,
    buffer: BytesMut,
}

impl Origin {
    /// An origin that waits for its client, on a thread-local set of tasks.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (responses, waiting) = mpsc::unbounded_channel();
        let (heard, news) = (Rc::new(RefCell::new(Heard::new())), Arc::<Notify>::default());
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(serve(listener, waiting, heard.clone(), news.clone()));
        Self { address, heard, news, responses }
    }

    /// Sends an encoded response.
    pub fn say(&self, response: &[u8]) {
        let mut message = BytesMut::with_capacity(response.len() + 5);
        message.put_u8(0);
        message.put_u32(response.len() as u32);
        message.extend_from_slice(response);
        self.responses.send(message.freeze()).unwrap();
    }

    /// How many requests came so far.
    pub fn requests(&self) -> usize {
        self.heard.borrow().requests
    }

    /// How many bytes of requests came so far.
    pub fn bytes(&self) -> usize {
        self.heard.borrow().bytes
    }

    /// Returns when that many requests came.
    pub async fn until_requests(&self, requests: usize) {
        while self.requests() < requests {
            self.news.notified().await;
        }
    }

    /// Returns when that many names were asked for, in however many requests. To be called once: from then on requests
    /// are counted, and not looked at.
    pub async fn until_names(&self, names: usize) {
        while self.heard.borrow().names.as_ref().is_some_and(|asked| asked.len() < names) {
            self.news.notified().await;
        }
        self.heard.borrow_mut().names = None;
    }
}

async fn serve(
    listener: TcpListener,
    mut responses: mpsc::UnboundedReceiver<Bytes>,
    heard: Rc<RefCell<Heard>>,
    news: Arc<Notify>,
) {
    let (socket, _) = listener.accept().await.unwrap();
    socket.set_nodelay(true).unwrap();
    let mut connection = h2::server::Builder::new()
        .initial_window_size(64 << 20)
        .initial_connection_window_size(64 << 20)
        .max_send_buffer_size(64 << 20)
        .handshake::<_, Bytes>(socket)
        .await
        .unwrap();
    let (request, mut respond) = connection.accept().await.unwrap().unwrap();
    tokio::task::spawn_local(async move { while let Some(Ok(_)) = connection.accept().await {} });
    let mut requests = request.into_body();
    tokio::task::spawn_local(async move {
        while let Some(Ok(data)) = requests.data().await {
            requests.flow_control().release_capacity(data.len()).unwrap();
            heard.borrow_mut().hear(&data);
            news.notify_one();
        }
    });
    let headers = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let mut stream = respond.send_response(headers, false).unwrap();
    while let Some(response) = responses.recv().await {
        stream.send_data(response, false).unwrap();
    }
}

impl Heard {
    fn new() -> Self {
        Self { requests: 0, bytes: 0, names: Some(HashSet::new()), buffer: BytesMut::new() }
    }

    fn hear(&mut self, data: &[u8]) {
        self.bytes += data.len();
        self.buffer.extend_from_slice(data);
        while let Some(length) = self.buffer.get(1..5) {
            let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
            if self.buffer.len() < 5 + length {
                return;
            }
            let request = self.buffer.split_to(5 + length).freeze().slice(5..);
            self.requests += 1;
            if let Some(names) = &mut self.names {
                names.extend(Fields::of(&request).flatten().filter_map(|field| match (field.number, field.value) {
                    // The same field in both protocols.
                    (3, FieldValue::Bytes(name)) => Some(Bytes::copy_from_slice(name)),
                    _ => None,
                }));
            }
        }
    }
}
