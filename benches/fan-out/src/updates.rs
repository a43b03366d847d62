//! What an origin says, to a tonic server that passes it on.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

use crate::delta_ads::PATH;
use crate::{Error, content};

/// Watches `names` at `origin`, and ACKs what comes. `ready` is called once the origin has the request, `publish` with
/// every response.
///
/// # Errors
/// The stream failed. It returns when the stream is over.
pub async fn watch(
    origin: &str,
    names: Vec<String>,
    ready: impl FnOnce() -> Result<(), Error>,
    publish: impl Fn(&DeltaDiscoveryResponse),
) -> Result<(), Error> {
    let (requests, outgoing) = mpsc::channel(64);
    let ask = DeltaDiscoveryRequest {
        type_url: content::TYPE_URL.into(),
        resource_names_subscribe: names,
        ..DeltaDiscoveryRequest::default()
    };
    requests.send(ask).await?;
    let channel = Endpoint::from_shared(format!("http://{origin}"))?.connect().await?;
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
    grpc.ready().await?;
    let codec = ProstCodec::<DeltaDiscoveryRequest, DeltaDiscoveryResponse>::default();
    let request = Request::new(ReceiverStream::new(outgoing));
    let mut responses = grpc.streaming(request, PATH.parse()?, codec).await?.into_inner();
    ready()?;
    while let Some(response) = responses.message().await? {
        publish(&response);
        let ack = DeltaDiscoveryRequest {
            type_url: response.type_url,
            response_nonce: response.nonce,
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(ack).await?;
    }
    Ok(())
}
