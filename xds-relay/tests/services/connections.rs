//! How many connections a relay has to its origin.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use xds_transport::Protocol;
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Resource};

use crate::Running;
use crate::stream::{Call, framed, in_time};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const CLIENTS: usize = 250;

/// Who answers every stream with one cluster, and counts connections and streams.
#[derive(Clone, Default)]
struct Origin(Arc<watch::Sender<[usize; 2]>>);

impl Origin {
    /// Serves until it is dropped.
    fn serve(self, listener: TcpListener) -> JoinSet<()> {
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (io, _) = listener.accept().await.unwrap();
                self.0.send_modify(|[connections, _]| *connections += 1);
                connections.spawn(connection(self.clone(), io));
            }
        });
        serving
    }

    /// What is counted once there are so many streams.
    async fn with_streams(&self, expected: usize) -> [usize; 2] {
        *in_time(self.0.subscribe().wait_for(|[_, streams]| *streams >= expected)).await.unwrap()
    }
}

async fn connection(origin: Origin, io: TcpStream) {
    let mut connection: h2::server::Connection<_, Bytes> = h2::server::handshake(io).await.unwrap();
    let mut streams = JoinSet::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        origin.0.send_modify(|[_, streams]| *streams += 1);
        let response = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
        let mut answers = respond.send_response(response, false).unwrap();
        answers.send_data(framed(&backend().encode_to_vec()), false).unwrap();
        streams.spawn(async move {
            let mut requests = request.into_body();
            while let Some(Ok(data)) = requests.data().await {
                let _ = requests.flow_control().release_capacity(data.len());
            }
            drop(answers);
        });
    }
}

fn backend() -> DeltaDiscoveryResponse {
    let any = Any { type_url: CLUSTERS.into(), value: Bytes::from_static(b"\x0a\x07backend") };
    let resource = Resource { name: "backend".into(), version: "1".into(), resource: Some(any), ..Resource::default() };
    DeltaDiscoveryResponse {
        type_url: CLUSTERS.into(),
        nonce: "1".into(),
        resources: vec![resource],
        ..DeltaDiscoveryResponse::default()
    }
}

/// A client whose node is nobody else's, and which has its cluster.
async fn client(relay: SocketAddr, id: usize) -> Call {
    let mut call = Call::open(relay, Protocol::Delta.aggregated_method()).await;
    let request = DeltaDiscoveryRequest {
        node: Node { id: format!("node-{id}"), ..Node::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_names_subscribe: vec!["backend".into()],
        ..DeltaDiscoveryRequest::default()
    };
    call.sending.send_data(framed(&request.encode_to_vec()), false).unwrap();
    let response = DeltaDiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
    assert_eq!(response.resources.len(), 1);
    call
}

#[tokio::test]
async fn the_streams_of_node_groups_share_connections_and_come_back_together() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let before = Origin::default();
    let mut serving = before.clone().serve(listener);
    let relay = Running::start(&format!("[{{ name: up, server: '{address}' }}]")).await;
    let mut clients = Vec::new();
    for id in 0..CLIENTS {
        clients.push(client(relay.address, id).await);
    }
    assert_eq!(before.with_streams(CLIENTS).await, [3, CLIENTS]);

    serving.shutdown().await;
    let after = Origin::default();
    let _serving = after.clone().serve(TcpListener::bind(address).await.unwrap());
    assert_eq!(after.with_streams(CLIENTS).await, [3, CLIENTS]);
}
