//! A program tells what it has by CSDS, over gRPC.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::Instant;

use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server as GrpcServer};
use xds_transport::grpc::client::fetch_client_status;
use xds_transport::grpc::server::ClientStatusService;
use xds_transport::wire::client_status::{ClientResourceStatus, ClientStatusRequest};
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
    let answer = fetch_client_status(channel, ClientStatusRequest::default()).await.unwrap();
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
}
