//! The floor: a server on nothing but HTTP/2 that encodes every response of the origin once, writes these bytes to every
//! client, and throws away what they say. It knows no subscription, keeps no resource and sends no initial state.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fan_out::framed;
use fan_out::{Error, content, updates};
use h2::{RecvStream, SendStream};
use tokio::net::{TcpListener, TcpStream};
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryResponse};

/// HTTP/2 windows: what clients say is read at once, so that they need not be small.
const WINDOW: u32 = 16 << 20;

#[derive(Default)]
struct Clients(Mutex<[Vec<SendStream<Bytes>>; 2]>);

impl Clients {
    fn send(&self, response: &DeltaDiscoveryResponse) {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [delta, sotw] = &mut *clients;
        if !delta.is_empty() {
            send_to(delta, &framed(response));
        }
        if !sotw.is_empty() {
            send_to(sotw, &framed(&full(response)));
        }
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
            let stream = respond.send_response(head, false)?;
            self.0.lock().unwrap_or_else(PoisonError::into_inner)[usize::from(is_sotw)].push(stream);
            tokio::spawn(ignore(request.into_body()));
        }
        Ok(())
    }
}

/// `lean ORIGIN`: prints the address it listens on.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let origin = std::env::args().nth(1).ok_or("usage: lean ORIGIN_ADDRESS")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let clients = Arc::new(Clients::default());
    let served = clients.clone();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let clients = served.clone();
            tokio::spawn(async move { clients.serve(tcp).await });
        }
    });
    let ready = || {
        println!("{address}");
        Ok(std::io::stdout().flush()?)
    };
    updates::watch(&origin, ready, |response| clients.send(response)).await
}

fn send_to(clients: &mut Vec<SendStream<Bytes>>, message: &Bytes) {
    clients.retain_mut(|client| client.send_data(message.clone(), false).is_ok());
}

/// The same as a client of the other variant is told it.
fn full(response: &DeltaDiscoveryResponse) -> DiscoveryResponse {
    DiscoveryResponse {
        version_info: response.nonce.clone(),
        type_url: response.type_url.clone(),
        nonce: response.nonce.clone(),
        resources: response.resources.iter().filter_map(|resource| resource.resource.clone()).collect(),
        ..DiscoveryResponse::default()
    }
}

async fn ignore(mut body: RecvStream) {
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
    }
}
