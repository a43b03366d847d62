//! One stream to an origin over gRPC, of resources ([`Ads`], or [`PerType`]) or of load reports ([`Lrs`]): bytes in, bytes out, and no
//! queue. And what [clients have](fetch_client_status).

mod channel;
mod client_status;
mod codec;
mod exchange;
mod lrs;
mod not_grpc;
mod per_type;
mod received;
mod whole;

use std::time::Instant;

use bytes::Bytes;
use tonic::Status;
use tonic::metadata::MetadataMap;

pub use self::channel::GrpcChannel;
pub use self::client_status::fetch_client_status;
pub use self::codec::DEFAULT_MAX_MESSAGE_SIZE;
use self::exchange::Exchange;
pub use self::lrs::Lrs;
pub use self::not_grpc::NotGrpc;
pub use self::per_type::{PerType, TypeEvent};
use crate::{Protocol, TypeService};

/// An open stream of resources: of all types, or of [one](Self::open_for_type).
///
/// Reading and writing are two arms of one future: a server that does not read while it writes, in front of a
/// client that does the same, would leave both waiting for ever.
///
/// ```no_run
/// use std::{sync::Arc, time::Instant};
/// use bytes::Bytes;
/// use xds_transport::{Protocol, TypeRules, client, grpc::client::Ads};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:18000").connect().await?;
/// let mut machine = client::Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
/// let mut ads = Ads::open(channel, machine.protocol(), 64 << 20);
/// machine.connected(Instant::now());
/// while let Some(message) = ads.next(|| machine.poll_transmit(Instant::now())).await? {
///     machine.handle_message(Instant::now(), message)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Ads(Exchange);

impl Ads {
    /// Opens a stream on `channel`, where responses may measure up to `max_message_size` bytes.
    pub fn open(channel: impl GrpcChannel, protocol: Protocol, max_message_size: usize) -> Self {
        Self::open_with_metadata(channel, protocol, max_message_size, MetadataMap::new())
    }

    /// The same, with `metadata` that the server has before any request.
    pub fn open_with_metadata(
        channel: impl GrpcChannel,
        protocol: Protocol,
        max_message_size: usize,
        metadata: MetadataMap,
    ) -> Self {
        Self(Exchange::open(channel, protocol.aggregated_method(), max_message_size, metadata))
    }

    /// The same by the method of one type, of a server that has no aggregated one: what is asked for and what comes is of that type
    /// alone (rule 1).
    pub fn open_for_type(
        channel: impl GrpcChannel,
        service: &TypeService,
        protocol: Protocol,
        max_message_size: usize,
        metadata: MetadataMap,
    ) -> Self {
        Self(Exchange::open(channel, service.method(protocol), max_message_size, metadata))
    }

    /// What the server answered the stream with, before any response. Meanwhile whatever `transmit` yields is sent, as
    /// by [`next`](Self::next), which may be called without this: a server may wait for the first request.
    ///
    /// # Errors
    /// What the server, or the transport, ended the stream with. Where that is no gRPC the source is [`NotGrpc`].
    pub async fn metadata(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<MetadataMap, Status> {
        self.0.metadata(transmit).await
    }

    /// The next response; `None` when the server ended the stream well. Meanwhile whatever `transmit` yields is
    /// sent: it is asked when there is room, until it has nothing more. Dropping the future loses nothing, so call
    /// this anew when there is more to send.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub async fn next(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<Option<Bytes>, Status> {
        self.0.next(transmit).await
    }

    /// When bytes of a response came in last, be it whole or not, by tokio's clock. It is noted while
    /// [`next`](Self::next) is awaited.
    pub fn received_at(&self) -> Option<Instant> {
        self.0.received_at()
    }
}

impl std::fmt::Debug for Ads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ads").finish_non_exhaustive()
    }
}
