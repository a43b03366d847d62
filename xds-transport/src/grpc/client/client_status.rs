//! Asking what clients have: the client status discovery service (CSDS).

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::channel::GrpcChannel;
use super::codec::DEFAULT_MAX_MESSAGE_SIZE;
use crate::wire::client_status::{ClientStatusRequest, ClientStatusResponse, FETCH_METHOD};

/// Asks a server, a relay or a gRPC client once what its clients have, and how it fares there.
///
/// ```no_run
/// use xds_transport::grpc::client::fetch_client_status;
/// use xds_transport::wire::client_status::ClientStatusRequest;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:18000").connect().await?;
/// for config in fetch_client_status(channel, ClientStatusRequest::default()).await?.config {
///     for of in config.generic_xds_configs {
///         println!("{} {} {:?}", of.type_url, of.name, of.client_status());
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The status it answers with: UNIMPLEMENTED where nobody serves this.
pub async fn fetch_client_status(
    channel: impl GrpcChannel,
    request: ClientStatusRequest,
) -> Result<ClientStatusResponse, Status> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(DEFAULT_MAX_MESSAGE_SIZE);
    grpc.ready().await.map_err(|error| Status::unavailable(error.into().to_string()))?;
    let path = PathAndQuery::from_static(FETCH_METHOD);
    let response = grpc.unary(Request::new(request), path, ProstCodec::default()).await?;
    Ok(response.into_inner())
}
