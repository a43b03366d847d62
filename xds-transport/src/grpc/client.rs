//! One ADS stream to an origin over gRPC: bytes in, bytes out, and no queue. And what [clients have](fetch_client_status).

mod client_status;
mod codec;
mod not_grpc;
mod received;
mod whole;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

pub use self::client_status::fetch_client_status;
use self::codec::BytesCodec;
pub use self::codec::DEFAULT_MAX_MESSAGE_SIZE;
pub use self::not_grpc::NotGrpc;
use self::received::{Noting, Received};
use self::whole::Handed;
use crate::Protocol;

/// An open ADS stream.
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
pub struct Ads {
    /// One request is handed over at a time: the next is made when the transport took it.
    requests: mpsc::Sender<Bytes>,
    responses: Responses,
    received: Received,
}

enum Responses {
    /// A server may wait for the first request before it answers at all.
    Opening(Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send>>),
    Open(Box<Answer>),
}

/// What a stream is answered with: metadata, and what follows.
type Answer = Response<Streaming<Bytes>>;

impl Ads {
    /// Opens a stream on `channel`, where responses may measure up to `max_message_size` bytes.
    pub fn open(channel: Channel, protocol: Protocol, max_message_size: usize) -> Self {
        Self::open_with_metadata(channel, protocol, max_message_size, MetadataMap::new())
    }

    /// The same, with `metadata` that the server has before any request.
    pub fn open_with_metadata(
        channel: Channel,
        protocol: Protocol,
        max_message_size: usize,
        metadata: MetadataMap,
    ) -> Self {
        let (requests, outgoing) = mpsc::channel(1);
        let (received, handed) = (Received::default(), Handed::default());
        let channel = Noting { channel, received: received.clone(), limit: max_message_size, handed: handed.clone() };
        let opening = async move {
            let mut grpc = Grpc::new(channel).max_decoding_message_size(max_message_size);
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let path = PathAndQuery::from_static(protocol.aggregated_method());
            let mut request = Request::new(ReceiverStream::new(outgoing));
            *request.metadata_mut() = metadata;
            grpc.streaming(request, path, BytesCodec { handed }).await
        };
        Self { requests, responses: Responses::Opening(Box::pin(opening)), received }
    }

    /// What the server answered the stream with, before any response. Meanwhile whatever `transmit` yields is sent, as
    /// by [`next`](Self::next), which may be called without this: a server may wait for the first request.
    ///
    /// # Errors
    /// What the server, or the transport, ended the stream with. Where that is no gRPC the source is [`NotGrpc`].
    pub async fn metadata(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<MetadataMap, Status> {
        let poll = |responses: &mut Responses, cx: &mut Context<'_>| {
            responses.poll_open(cx).map_ok(|response| response.metadata().clone())
        };
        self.transmit_until(transmit, poll).await
    }

    /// The next response; `None` when the server ended the stream well. Meanwhile whatever `transmit` yields is
    /// sent: it is asked when there is room, until it has nothing more. Dropping the future loses nothing, so call
    /// this anew when there is more to send.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub async fn next(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<Option<Bytes>, Status> {
        self.transmit_until(transmit, Responses::poll_next).await
    }

    /// When bytes of a response came in last, be it whole or not, by tokio's clock. It is noted while
    /// [`next`](Self::next) is awaited.
    pub fn received_at(&self) -> Option<Instant> {
        self.received.last()
    }

    async fn transmit_until<T>(
        &mut self,
        mut transmit: impl FnMut() -> Option<Bytes>,
        mut poll: impl FnMut(&mut Responses, &mut Context<'_>) -> Poll<T>,
    ) -> T {
        let Self { requests, responses, .. } = self;
        let mut more = true;
        loop {
            tokio::select! {
                biased;
                // A closed request side is told by the response side, with its reason.
                Ok(room) = requests.reserve(), if more => match transmit() {
                    Some(request) => room.send(request),
                    None => more = false,
                },
                happened = std::future::poll_fn(|cx| poll(responses, cx)) => return happened,
            }
        }
    }
}

impl Responses {
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<&mut Answer, Status>> {
        if let Self::Opening(opening) = self {
            *self = Self::Open(Box::new(ready!(opening.as_mut().poll(cx))?));
        }
        match self {
            Self::Opening(_) => Poll::Pending,
            Self::Open(response) => Poll::Ready(Ok(response)),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        let streaming = ready!(self.poll_open(cx))?.get_mut();
        tokio_stream::Stream::poll_next(Pin::new(streaming), cx).map(Option::transpose)
    }
}

impl std::fmt::Debug for Ads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ads").finish_non_exhaustive()
    }
}
