//! A stream of bytes: nothing is done of itself.

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};
use xdstp_client::upstream::Pool;

/// What a response may measure: more than any check asks for.
const MAX_MESSAGE_SIZE: usize = 64 << 20;
/// How many messages wait for either side.
const WAITING: usize = 16;

/// An open stream. Dropping it cancels the call.
pub(crate) struct Link {
    requests: mpsc::Sender<Bytes>,
    heard: mpsc::Receiver<Result<Bytes, Status>>,
    task: JoinHandle<()>,
}

impl Link {
    pub(crate) fn open(server: Pool, path: String) -> Self {
        let (requests, outgoing) = mpsc::channel(WAITING);
        let (tell, heard) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            let end = match carry(&server, path, outgoing, &tell).await {
                Ok(()) => Status::ok("the server ended the stream"),
                Err(status) => status,
            };
            // That nobody listens any more is no error.
            let _ = tell.send(Err(end)).await;
        });
        Self { requests, heard, task }
    }

    /// Whether the stream took it.
    pub(crate) async fn send(&self, message: Bytes) -> bool {
        self.requests.send(message).await.is_ok()
    }

    /// The next message.
    ///
    /// # Errors
    /// What the stream ended with: code OK where the server ended it well.
    pub(crate) async fn next(&mut self) -> Result<Bytes, Status> {
        self.heard.recv().await.unwrap_or_else(|| Err(Status::ok("the stream is over")))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    server: &Pool,
    path: String,
    outgoing: mpsc::Receiver<Bytes>,
    tell: &mpsc::Sender<Result<Bytes, Status>>,
) -> Result<(), Status> {
    let path = PathAndQuery::try_from(path).map_err(|error| Status::internal(error.to_string()))?;
    // It is the stream's for as long as that is open.
    let place = server.place().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut grpc = Grpc::new(place.channel()).max_decoding_message_size(MAX_MESSAGE_SIZE);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let response = grpc.streaming(Request::new(ReceiverStream::new(outgoing)), path, Raw).await?;
    let mut messages = response.into_inner();
    while let Some(message) = messages.message().await? {
        if tell.send(Ok(message)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Messages that stay encoded.
#[derive(Clone, Copy)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
