//! Who a stream is of, and what it is served from.

use std::net::SocketAddr;
use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::Protocol;
use crate::grpc::server::handle::{StreamHandle, Wake};
use crate::server::{Settings, Source};

/// Who decides what a stream is served from.
pub trait Accept: Send + Sync + 'static {
    /// What a stream pulls from.
    type Source: Source + Send + 'static;

    /// A stream was opened. The source wakes it when there is something to pull, and learns of its
    /// end by being dropped.
    ///
    /// # Errors
    /// What the stream ends with at once.
    fn accept(&self, opened: Opened) -> Result<Accepted<Self::Source>, Status>;

    /// The settings of every stream.
    fn settings(&self) -> Settings;

    /// How long a stream lives, more or less, so that clients spread over the servers there are: each is ended at a
    /// moment of its own, between three and five quarters of this (rule 93). Otherwise streams do not age.
    fn max_stream_age(&self) -> Option<Duration> {
        None
    }

    /// The longest request taken, in bytes: what a client may make the server hold before anything
    /// is known of it (rule 132).
    fn max_request_bytes(&self) -> usize {
        16 << 20
    }

    /// How many bytes of requests that are not whole yet are kept, of all streams together. Beyond, the stream that
    /// sends most of one ends with RESOURCE_EXHAUSTED.
    fn max_unfinished_bytes(&self) -> usize {
        256 << 20
    }

    /// How long a stream may take to send its first request. A client may have nothing to ask for yet.
    fn first_request_within(&self) -> Option<Duration> {
        None
    }
}

/// A stream that was just opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// Where the client is, if the connection says.
    pub peer: Option<SocketAddr>,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// What the client said before any request.
    pub metadata: MetadataMap,
    /// Has the stream pull its source.
    pub wake: Wake,
    /// The stream from outside.
    pub handle: StreamHandle,
}

/// What a stream is served from, and what it is answered with before that: with nothing, if it is made from a source.
#[derive(Debug)]
pub struct Accepted<S> {
    /// What the stream pulls from.
    pub source: S,
    /// Said to the client before any response.
    pub metadata: MetadataMap,
}

impl<S> From<S> for Accepted<S> {
    fn from(source: S) -> Self {
        Self { source, metadata: MetadataMap::new() }
    }
}
