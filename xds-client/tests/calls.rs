//! What calls carry, and by which methods they are made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::{Arc, Mutex};

use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use xds_transport::grpc::server::{Accept, Accepted, ControlPlane, Opened, Service, Shared, SharedSource};
use xds_transport::{Protocol, TypeService};
use xdstp_client::{Client, Endpoint, Event};

#[derive(Clone, PartialEq, prost::Message)]
struct Cluster {
    #[prost(string, tag = "1")]
    name: String,
}

impl prost::Name for Cluster {
    const NAME: &'static str = "Cluster";
    const PACKAGE: &'static str = "envoy.config.cluster.v3";
}

/// The header of each stream, and its method.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

struct Noting(Shared, Seen);

impl Accept for Noting {
    type Source = SharedSource;

    async fn accept(&self, opened: Opened) -> Result<Accepted<SharedSource>, Status> {
        let header = opened.metadata().get("x-mesh").map(|said| said.to_str().unwrap().to_owned());
        self.1.lock().unwrap().push((header.unwrap_or_default(), opened.request.uri.path().to_owned()));
        self.0.accept(opened).await
    }
}

#[tokio::test]
async fn calls_carry_headers_of_ones_own_and_may_be_of_one_type() {
    let (plane, seen) = (ControlPlane::new(), Seen::default());
    plane.put("cart", &Cluster { name: "cart".into() }).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::new(&listener.local_addr().unwrap().to_string()).unwrap();
    let routes = Service::new(Noting(plane.shared().clone(), seen.clone())).into_routes();
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)));

    let mut headers = MetadataMap::new();
    headers.insert("x-mesh", "shop".parse().unwrap());
    let clusters = TypeService::new("envoy.service.cluster.v3.ClusterDiscoveryService", "Clusters");
    let of_all = endpoint.clone().with_metadata(headers.clone());
    for endpoint in [of_all, endpoint.with_metadata(headers).with_type_service(clusters.clone())] {
        let client = Client::connect(endpoint);
        let mut watch = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "cart");
        let event = watch.changed().await;
        assert!(matches!(event, Event::Put { .. }), "{event:?}");
    }
    let methods = [Protocol::Delta.aggregated_method().to_owned(), clusters.method(Protocol::Delta)];
    assert_eq!(*seen.lock().unwrap(), methods.map(|method| ("shop".to_owned(), method)));
}
