//! Who a stream is of, and what it is served from.

use std::future::Future;
use std::net::SocketAddr;

use http::request::Parts;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpConnectInfo;

use crate::Protocol;
use crate::grpc::server::certificate::ClientCertificate;
use crate::grpc::server::handle::{StreamHandle, Wake};
use crate::grpc::server::told;
use crate::server::Source;

/// Who decides what a stream is served from.
pub trait Accept: Send + Sync + 'static {
    /// What a stream pulls from.
    type Source: Source + Send + 'static;

    /// A stream was opened. The source wakes it when there is something to pull, and learns of its end by being dropped. The
    /// client waits for this, and no other does.
    ///
    /// # Errors
    /// What the stream ends with at once.
    fn accept(&self, opened: Opened) -> impl Future<Output = Result<Accepted<Self::Source>, Status>> + Send;
}

/// A stream that was just opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The call: its path, its headers, and what the connection and layers before this one say of the client.
    pub request: Parts,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// Has the stream pull its source.
    pub wake: Wake,
    /// The stream from outside.
    pub handle: StreamHandle,
}

impl Opened {
    pub(crate) fn new(request: Parts, protocol: Protocol, wake: Wake, handle: StreamHandle) -> Self {
        Self { request: told::of_client(request), protocol, wake, handle }
    }

    /// Where the client is, if it came over TCP and the connection says so.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.request.extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr)
    }

    /// What the client proved to be, if the connection says so.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        self.request.extensions.get()
    }

    /// What the client said before any request.
    pub fn metadata(&self) -> MetadataMap {
        MetadataMap::from_headers(self.request.headers.clone())
    }
}

/// What a stream is served from, and what it is answered with before that: with nothing, if it is made from a source.
#[derive(Debug)]
pub struct Accepted<S> {
    /// What the stream pulls from.
    pub source: S,
    /// Said to the client before any response.
    pub metadata: MetadataMap,
    /// Whose stream it is, by a number that all streams of that client have and no other: where all together take too much, one of the client
    /// that takes most of it ends, and where many wait for what takes long, clients take turns. Without one each stream is a client of its own.
    pub client: Option<u64>,
}

impl<S> From<S> for Accepted<S> {
    fn from(source: S) -> Self {
        Self { source, metadata: MetadataMap::new(), client: None }
    }
}
