//! Any routes, reached by connections in memory.

use std::io;

use prost::{Message, Name};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::call::Connection;

/// A server.
pub(crate) struct InMemory {
    connections: mpsc::UnboundedSender<io::Result<DuplexStream>>,
    pub(crate) serving: JoinHandle<()>,
}

impl InMemory {
    pub(crate) fn serve(routes: Routes) -> Self {
        Self::serve_until(routes, std::future::pending())
    }

    /// Until a signal comes, and everything that is open is over.
    pub(crate) fn serve_until(routes: Routes, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        let (connections, incoming) = mpsc::unbounded_channel();
        let server = Server::builder().add_routes(routes);
        let serving = tokio::spawn(async move {
            server.serve_with_incoming_shutdown(UnboundedReceiverStream::new(incoming), signal).await.unwrap();
        });
        Self { connections, serving }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let (near, far) = tokio::io::duplex(1 << 16);
        self.connections.send(Ok(far)).unwrap();
        Connection::handshake(near).await
    }
}

/// Of Envoy's, as much as is used here.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cluster {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "28")]
    pub(crate) alt_stat_name: String,
}

impl Name for Cluster {
    const NAME: &'static str = "Cluster";
    const PACKAGE: &'static str = "envoy.config.cluster.v3";
}

impl Cluster {
    pub(crate) fn new(name: &str, alt_stat_name: &str) -> Self {
        Self { name: name.to_owned(), alt_stat_name: alt_stat_name.to_owned() }
    }
}
