//! The baseline: a tonic server that passes every response of the origin on to every client as it is,
//! and reads their ACKs. It knows no subscription: who comes is sent all that the origin said before it changed anything.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use fan_out::delta_ads::{DeltaAds, Handler, Responses};
use fan_out::{Error, updates};
use tonic::Streaming;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

#[derive(Default)]
struct Clients(Mutex<State>);

#[derive(Default)]
struct State {
    clients: Vec<Responses>,
    initial: Vec<DeltaDiscoveryResponse>,
}

impl Handler for Clients {
    fn open(&self, mut requests: Streaming<DeltaDiscoveryRequest>, responses: Responses) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for response in &state.initial {
            let _ = responses.try_send(Ok(response.clone()));
        }
        state.clients.push(responses);
        tokio::spawn(async move { while let Ok(Some(_)) = requests.message().await {} });
    }
}

impl Clients {
    fn send(&self, response: &DeltaDiscoveryResponse) {
        let State { clients, initial } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.try_send(Ok(response.clone())).is_ok());
        if response.resources.iter().all(|resource| resource.version == "0") {
            initial.push(response.clone());
        }
    }
}

/// `raw ORIGIN NAME...`: prints the address it listens on.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let origin = arguments.next().ok_or("usage: raw ORIGIN_ADDRESS NAME...")?;
    let listener = fan_out::listen()?;
    let address = listener.local_addr()?;
    let clients = Arc::new(Clients::default());
    let service = DeltaAds::new(clients.clone());
    tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))),
    );

    let ready = || {
        println!("{address}");
        Ok(std::io::stdout().flush()?)
    };
    updates::watch(&origin, arguments.collect(), ready, |response| clients.send(response)).await
}
