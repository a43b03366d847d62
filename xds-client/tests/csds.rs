//! A program tells what it has by CSDS, over gRPC.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::Instant;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::client::Grpc;
use tonic::transport::{Channel, Server as GrpcServer};
use tonic::{Code, Streaming};
use xds_transport::grpc::client::fetch_client_status;
use xds_transport::grpc::server::ClientStatusService;
use xds_transport::wire::client_status::{
    ClientResourceStatus, ClientStatusRequest, ClientStatusResponse, STREAM_METHOD,
};
use xdstp_client::Client;
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::test::Network;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

#[tokio::test]
async fn r073_csds_is_a_service_over_a_client() {
    let network = Network::new(Instant::now());
    for type_url in [CDS, SDS] {
        network.server("xds:1").put(type_url, "web", "7", b"\x0a\x03web");
    }
    let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    let client = Client::builder(bootstrap).transport(network.clone()).build().unwrap();
    let _watches = [client.watch(CDS, "web"), client.watch(CDS, "none"), client.watch(SDS, "web")];
    network.settle();

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = GrpcServer::builder().add_service(ClientStatusService::new(client));
    tokio::spawn(served.serve_with_incoming(TcpListenerStream::new(listener)));
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let answer = fetch_client_status(channel.clone(), ClientStatusRequest::default()).await.unwrap();
    let told: Vec<_> = answer.config[0]
        .generic_xds_configs
        .iter()
        .map(|config| (&*config.name, &*config.version_info, config.client_status(), !config.xds_config.is_empty()))
        .collect();
    let acked = ClientResourceStatus::Acked;
    // Whoever may ask is not told what is secret.
    let expected = [
        ("none", "", ClientResourceStatus::DoesNotExist, false),
        ("web", "7", acked, true),
        ("web", "7", acked, false),
    ];
    assert_eq!(told, expected);

    // On a stream each request is answered once, and nothing comes unasked.
    let (ask, asked) = tokio::sync::mpsc::channel(1);
    let mut answers = streamed(&channel, STREAM_METHOD, ReceiverStream::new(asked)).await.unwrap();
    for _ in 0..2 {
        ask.send(ClientStatusRequest::default()).await.unwrap();
        let answered = answers.message().await.unwrap().unwrap();
        assert_eq!(names(&answered), names(&answer));
    }
    drop(ask);
    assert!(answers.message().await.unwrap().is_none());

    // What picks clients by what is not known is refused, and there is no v2.
    let regex = Bytes::from_static(&[10, 2, 42, 0]);
    let picked = ClientStatusRequest { node_matchers: vec![regex], ..Default::default() };
    let refused = fetch_client_status(channel.clone(), picked.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let mut refused = streamed(&channel, STREAM_METHOD, tokio_stream::once(picked)).await.unwrap();
    assert_eq!(refused.message().await.unwrap_err().code(), Code::InvalidArgument);
    let of_v2 = "/envoy.service.status.v2.ClientStatusDiscoveryService/StreamClientStatus";
    let refused = streamed(&channel, of_v2, tokio_stream::once(ClientStatusRequest::default())).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
}

fn names(answer: &ClientStatusResponse) -> Vec<(&str, &str)> {
    let configs = answer.config.iter().flat_map(|of| &of.generic_xds_configs);
    configs.map(|config| (&*config.type_url, &*config.name)).collect()
}

async fn streamed(
    channel: &Channel,
    method: &'static str,
    requests: impl Stream<Item = ClientStatusRequest> + Send + 'static,
) -> Result<Streaming<ClientStatusResponse>, tonic::Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::default();
    let answers = grpc.streaming(tonic::Request::new(requests), PathAndQuery::from_static(method), codec).await;
    answers.map(tonic::Response::into_inner)
}
