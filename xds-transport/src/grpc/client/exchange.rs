//! A stream of encoded messages in both directions, and no queue.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::channel::GrpcChannel;
use super::codec::BytesCodec;
use super::received::{Noting, Received};
use super::whole::Handed;

/// Reading and writing are two arms of one future: a server that does not read while it writes, in front of a client that does
/// the same, would leave both waiting for ever.
pub(super) struct Exchange {
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

impl Exchange {
    /// Calls a method, with `metadata` that the server has before any request.
    pub(super) fn open(
        channel: impl GrpcChannel,
        method: impl Into<String>,
        max_message_size: usize,
        metadata: MetadataMap,
    ) -> Self {
        Self::open_beside(channel, method, max_message_size, metadata, Received::default(), || {})
    }

    /// The same beside others: when bytes came in last on any of them is noted as `received`, and `taken` is told whenever the
    /// transport took a request.
    pub(super) fn open_beside(
        channel: impl GrpcChannel,
        method: impl Into<String>,
        max_message_size: usize,
        metadata: MetadataMap,
        received: Received,
        mut taken: impl FnMut() + Send + 'static,
    ) -> Self {
        let method = method.into();
        let (requests, outgoing) = mpsc::channel(1);
        let outgoing = ReceiverStream::new(outgoing).map(move |request| {
            taken();
            request
        });
        let handed = Handed::default();
        let channel = Noting { channel, received: received.clone(), limit: max_message_size, handed: handed.clone() };
        let opening = async move {
            let method = PathAndQuery::try_from(method).map_err(|error| Status::internal(error.to_string()))?;
            let mut grpc = Grpc::new(channel).max_decoding_message_size(max_message_size);
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let mut request = Request::new(outgoing);
            *request.metadata_mut() = metadata;
            grpc.streaming(request, method, BytesCodec { handed }).await
        };
        Self { requests, responses: Responses::Opening(Box::pin(opening)), received }
    }

    /// Whether the transport took all requests so far.
    pub(super) fn has_room(&self) -> bool {
        self.requests.capacity() > 0 && !self.requests.is_closed()
    }

    /// Hands over a request, for which there is room.
    pub(super) fn send(&self, request: Bytes) {
        // A closed request side is told by the response side, with its reason.
        let _ = self.requests.try_send(request);
    }

    /// What the server answered the stream with, before any response.
    pub(super) fn poll_metadata(&mut self, cx: &mut Context<'_>) -> Poll<Result<MetadataMap, Status>> {
        self.responses.poll_open(cx).map_ok(|response| response.metadata().clone())
    }

    /// The next response, or the good end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        self.responses.poll_next(cx)
    }

    /// What the server answered the stream with, before any response. Meanwhile whatever `transmit` yields is sent.
    pub(super) async fn metadata(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<MetadataMap, Status> {
        let poll = |responses: &mut Responses, cx: &mut Context<'_>| {
            responses.poll_open(cx).map_ok(|response| response.metadata().clone())
        };
        self.transmit_until(transmit, poll).await
    }

    /// The next response, or the good end. Meanwhile whatever `transmit` yields is sent: it is asked when there is room, until
    /// it has nothing more.
    pub(super) async fn next(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Result<Option<Bytes>, Status> {
        self.transmit_until(transmit, Responses::poll_next).await
    }

    /// Sends all that `transmit` has, and then the end; and waits for that of the responses, which are not looked at.
    pub(super) async fn finish(self, mut transmit: impl FnMut() -> Option<Bytes>) -> Result<(), Status> {
        let Self { requests, mut responses, .. } = self;
        loop {
            tokio::select! {
                biased;
                room = requests.reserve() => {
                    let Some((room, last)) = room.ok().and_then(|room| Some((room, transmit()?))) else { break };
                    room.send(last);
                }
                next = std::future::poll_fn(|cx| responses.poll_next(cx)) => if next?.is_none() {
                    return Ok(());
                },
            }
        }
        // What was handed over before goes out first.
        drop(requests);
        while std::future::poll_fn(|cx| responses.poll_next(cx)).await?.is_some() {}
        Ok(())
    }

    /// When bytes of a response came in last.
    pub(super) fn received_at(&self) -> Option<Instant> {
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

#[cfg(all(test, feature = "grpc-server"))]
mod tests {
    use std::future::{pending, ready};
    use std::io;
    use std::time::Duration;

    use hyper_util::rt::TokioIo;
    use prost::Message as _;
    use tokio::io::DuplexStream;
    use tokio::time::timeout;
    use tonic::transport::{Endpoint, Server};

    use super::*;
    use crate::grpc::server::{LoadReporting, LoadReportingService, LoadReports};
    use crate::wire::load_report::{LoadStatsRequest, METHOD};

    const SOON: Duration = Duration::from_secs(10);

    /// What it says may be another thing by the time it can be sent.
    #[tokio::test(start_paused = true)]
    async fn a_request_is_made_once_the_one_before_it_is_taken() {
        let nobody = tower::service_fn(|_| pending::<io::Result<TokioIo<DuplexStream>>>());
        let channel = Endpoint::from_static("http://nobody").connect_with_connector_lazy(nobody);
        let mut exchange = Exchange::open(channel, METHOD, 100, MetadataMap::new());
        let mut made = 0;
        let make = || {
            made += 1;
            Some(Bytes::new())
        };
        timeout(SOON, exchange.next(make)).await.unwrap_err();
        assert_eq!(made, 1);
    }

    /// Is there until its client has no more to say.
    struct Patient;

    impl LoadReporting for Patient {
        async fn take(&self, mut reports: LoadReports) -> Result<(), Status> {
            while reports.next().await?.is_some() {}
            Ok(())
        }
    }

    /// A server may wait for it before it ends its side.
    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_requests_is_said_before_that_of_the_responses_is_waited_for() {
        let (near, far) = tokio::io::duplex(1 << 16);
        let incoming = tokio_stream::iter([Ok::<_, io::Error>(far)]);
        let server = Server::builder().add_service(LoadReportingService::new(Patient));
        tokio::spawn(server.serve_with_incoming(incoming));
        let mut near = Some(TokioIo::new(near));
        let connector =
            tower::service_fn(move |_| ready(near.take().ok_or_else(|| io::Error::other("one connection"))));
        let channel = Endpoint::from_static("http://in.memory").connect_with_connector(connector).await.unwrap();
        let exchange = Exchange::open(channel, METHOD, 100, MetadataMap::new());
        let mut requests = vec![LoadStatsRequest::default().encode_to_vec()];
        let finished = exchange.finish(|| requests.pop().map(Into::into));
        timeout(SOON, finished).await.expect("each waits for the other").unwrap();
    }
}
