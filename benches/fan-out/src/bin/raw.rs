//! The baseline: a tonic server that passes every response of the origin on to every client as it is,
//! and reads their ACKs. It knows no subscription, keeps no resource and sends no initial state.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use fan_out::delta_ads::{DeltaAds, Handler, PATH, Responses};
use fan_out::{Error, content};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

#[derive(Default)]
struct Clients(Mutex<Vec<Responses>>);

impl Handler for Clients {
    fn open(&self, mut requests: Streaming<DeltaDiscoveryRequest>, responses: Responses) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(responses);
        tokio::spawn(async move { while let Ok(Some(_)) = requests.message().await {} });
    }
}

impl Clients {
    fn send(&self, response: &DeltaDiscoveryResponse) {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.try_send(Ok(response.clone())).is_ok());
    }
}

/// `raw ORIGIN`: prints the address it listens on.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let origin = std::env::args().nth(1).ok_or("usage: raw ORIGIN_ADDRESS")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let clients = Arc::new(Clients::default());
    let service = DeltaAds::new(clients.clone());
    tokio::spawn(
        Server::builder().tcp_nodelay(true).add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
    );

    let (requests, outgoing) = mpsc::channel(64);
    let ask = DeltaDiscoveryRequest {
        type_url: content::TYPE_URL.into(),
        resource_names_subscribe: vec![content::glob()],
        ..DeltaDiscoveryRequest::default()
    };
    requests.send(ask).await?;
    let channel = Endpoint::from_shared(format!("http://{origin}"))?.connect().await?;
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
    grpc.ready().await?;
    let codec = ProstCodec::<DeltaDiscoveryRequest, DeltaDiscoveryResponse>::default();
    let request = Request::new(ReceiverStream::new(outgoing));
    let mut responses = grpc.streaming(request, PATH.parse()?, codec).await?.into_inner();
    println!("{address}");
    std::io::stdout().flush()?;
    while let Some(response) = responses.message().await? {
        // What the origin had before the first round is not measured.
        if response.resources.iter().any(|resource| resource.version != "0") {
            clients.send(&response);
        }
        let ack = DeltaDiscoveryRequest {
            type_url: response.type_url,
            response_nonce: response.nonce,
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(ack).await?;
    }
    Ok(())
}
