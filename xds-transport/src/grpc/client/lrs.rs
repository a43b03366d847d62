//! Sending load reports: the load reporting service (LRS).

use bytes::Bytes;
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::channel::GrpcChannel;
use super::exchange::Exchange;
use crate::wire::load_report::METHOD;

/// An open stream of load reports. What goes over it are encoded [messages](crate::wire::load_report): a
/// [`LoadStatsRequest`](crate::wire::load_report::LoadStatsRequest) with a node, and then one whenever a report is due that a
/// [`LoadStatsResponse`](crate::wire::load_report::LoadStatsResponse) asks for.
///
/// ```no_run
/// use prost::Message;
/// use tonic::metadata::MetadataMap;
/// use xds_transport::grpc::client::Lrs;
/// use xds_transport::wire::load_report::{LoadStatsRequest, LoadStatsResponse};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:18000").connect().await?;
/// let mut lrs = Lrs::open(channel, 4 << 20, MetadataMap::new());
/// let mut first = Some(LoadStatsRequest::default().encode_to_vec().into());
/// while let Some(message) = lrs.next(|| first.take()).await? {
///     println!("it asks for {:?}", LoadStatsResponse::decode(message)?.clusters);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Lrs(Exchange);

impl Lrs {
    /// Opens a stream on `channel`, with `metadata` that the server has before any report; what it asks for may measure up to
    /// `max_message_size` bytes.
    pub fn open(channel: impl GrpcChannel, max_message_size: usize, metadata: MetadataMap) -> Self {
        Self(Exchange::open(channel, METHOD, max_message_size, metadata))
    }

    /// What the server asks for next; `None` when it ended the stream well. Meanwhile whatever `transmit` yields is sent, as by
    /// [`Ads::next`](super::Ads::next). Dropping the future loses nothing.
    ///
    /// # Errors
    /// What the server, or the transport, ended the stream with. Where that is no gRPC the source is
    /// [`NotGrpc`](super::NotGrpc).
    pub async fn next(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<Option<Bytes>, Status> {
        self.0.next(transmit).await
    }

    /// Sends what `transmit` yields until that has nothing more, ends this side, and waits for the server to end the stream: what
    /// was sent is not lost then, as it may be if the stream is dropped. How long that may take is for who calls it to bound; what
    /// the server asks for meanwhile is not looked at.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// ```no_run
    /// # async fn run(lrs: xds_transport::grpc::client::Lrs, last: bytes::Bytes) -> Result<(), tonic::Status> {
    /// let mut last = Some(last);
    /// lrs.finish(|| last.take()).await
    /// # }
    /// ```
    pub async fn finish(self, transmit: impl FnMut() -> Option<Bytes>) -> Result<(), Status> {
        self.0.finish(transmit).await
    }
}

impl std::fmt::Debug for Lrs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lrs").finish_non_exhaustive()
    }
}
