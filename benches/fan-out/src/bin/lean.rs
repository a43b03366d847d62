//! The floor: a server on nothing but HTTP/2 that writes the bytes of the origin to every client, and throws away what
//! they say. It knows no subscription: who comes is sent all that the origin said before it changed anything.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use fan_out::delta_ads::PATH;
use fan_out::{Error, PREFIX, complete, content, framed};
use h2::{RecvStream, SendStream};
use prost::Message;
use tokio::net::TcpStream;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryResponse};

/// HTTP/2 windows: what others say is read at once, so that they need not be small.
const WINDOW: u32 = 16 << 20;

#[derive(Default)]
struct Clients(Mutex<State>);

#[derive(Default)]
struct State {
    delta: Fleet,
    sotw: Fleet,
}

/// The clients of one protocol, and what each is sent first.
#[derive(Default)]
struct Fleet {
    streams: Vec<SendStream<Bytes>>,
    initial: Vec<Bytes>,
}

impl Clients {
    /// Passes on a response as the origin sent it.
    fn send(&self, response: Bytes) -> Result<(), Error> {
        let State { delta, sotw } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        delta.send(&response);
        if !sotw.streams.is_empty() {
            sotw.send(&full(&response)?);
        }
        // Whatever changed has another version.
        if text_at(&response[PREFIX..], &[2, 1]) == Some("0") {
            delta.initial.push(response);
        }
        Ok(())
    }

    fn add(&self, stream: SendStream<Bytes>, is_sotw: bool) -> Result<(), Error> {
        let State { delta, sotw } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_sotw {
            for response in delta.initial.iter().skip(sotw.initial.len()) {
                sotw.initial.push(full(response)?);
            }
            sotw.add(stream);
        } else {
            delta.add(stream);
        }
        Ok(())
    }

    /// Serves what comes over a connection.
    async fn serve(&self, tcp: TcpStream) -> Result<(), Error> {
        tcp.set_nodelay(true)?;
        let mut http2 = h2::server::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(tcp)
            .await?;
        while let Some(request) = http2.accept().await {
            let (request, mut respond) = request?;
            let is_sotw = request.uri().path() == content::SOTW_PATH;
            let head = http::Response::builder().header("content-type", "application/grpc").body(())?;
            self.add(respond.send_response(head, false)?, is_sotw)?;
            tokio::spawn(ignore(request.into_body()));
        }
        Ok(())
    }
}

impl Fleet {
    fn send(&mut self, message: &Bytes) {
        self.streams.retain_mut(|stream| stream.send_data(message.clone(), false).is_ok());
    }

    fn add(&mut self, mut stream: SendStream<Bytes>) {
        if self.initial.iter().all(|message| stream.send_data(message.clone(), false).is_ok()) {
            self.streams.push(stream);
        }
    }
}

/// `lean ORIGIN NAME...`: prints the address it listens on.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let origin = arguments.next().ok_or("usage: lean ORIGIN_ADDRESS NAME...")?;
    let listener = fan_out::listen()?;
    let address = listener.local_addr()?;
    let clients = Arc::new(Clients::default());
    let served = clients.clone();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let clients = served.clone();
            tokio::spawn(async move { clients.serve(tcp).await });
        }
    });
    watch(&origin, arguments.collect(), address, &clients).await
}

/// Watches `names` at the origin, and ACKs what comes.
async fn watch(
    origin: &str,
    names: Vec<String>,
    address: std::net::SocketAddr,
    clients: &Clients,
) -> Result<(), Error> {
    let tcp = TcpStream::connect(origin).await?;
    tcp.set_nodelay(true)?;
    let (mut http2, connection) = h2::client::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake::<_, Bytes>(tcp)
        .await?;
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://{origin}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (response, mut requests) = http2.send_request(request, false)?;
    let ask = DeltaDiscoveryRequest { resource_names_subscribe: names, ..request_of(String::new()) };
    requests.send_data(framed(&ask), false)?;
    let mut body = response.await?.into_body();
    println!("{address}");
    std::io::stdout().flush()?;
    let mut partial = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        partial.extend_from_slice(&data);
        while let Some(length) = complete(&partial) {
            let response = partial.split_to(length).freeze();
            let nonce = text_at(&response[PREFIX..], &[5]).unwrap_or_default().to_owned();
            requests.send_data(framed(&request_of(nonce)), false)?;
            clients.send(response)?;
        }
    }
    Ok(())
}

fn request_of(response_nonce: String) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest { type_url: content::TYPE_URL.into(), response_nonce, ..DeltaDiscoveryRequest::default() }
}

/// The same as a client of the other protocol is told it.
fn full(response: &Bytes) -> Result<Bytes, Error> {
    let response = DeltaDiscoveryResponse::decode(response.slice(PREFIX..))?;
    Ok(framed(&DiscoveryResponse {
        version_info: response.nonce.clone(),
        type_url: response.type_url,
        nonce: response.nonce,
        resources: response.resources.into_iter().filter_map(|resource| resource.resource).collect(),
        ..DiscoveryResponse::default()
    }))
}

async fn ignore(mut body: RecvStream) {
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
    }
}
