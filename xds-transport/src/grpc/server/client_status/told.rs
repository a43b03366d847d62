//! An answer about clients on its way out: encoded client by client as it is read, and given up where it is not.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::places::Place;
use crate::wire::client_status::{ClientConfig, ClientStatusRequest};

/// How much is handed on at a time: what is beyond stays here until it is asked for.
const PIECE: usize = 16 << 10;
/// The number of the field that has the clients.
const CONFIG: u32 = 1;
/// Who reads nothing for so long has no place that others wait for.
const STALL: Duration = Duration::from_secs(2);
/// Within what time an answer is read, and for each MiB of it how much more there is.
const WITHIN: Duration = Duration::from_secs(30);
const FOR_A_MIB: Duration = Duration::from_secs(1);

/// One answer, which has its place until it was read, or given up.
pub(super) struct Told {
    telling: Arc<Mutex<Option<Telling>>>,
    watching: AbortHandle,
}

/// What is not read yet.
struct Telling {
    head: Option<[u8; 5]>,
    left: std::vec::IntoIter<ClientConfig>,
    encoded: BytesMut,
    /// How many pieces were read.
    pieces: u64,
    place: Place,
}

impl Told {
    /// Of clients that are so many bytes as a message.
    pub(super) fn new(configs: Vec<ClientConfig>, length: usize, place: Place) -> Self {
        let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        let (head, left) = (Some([0, a, b, c, d]), configs.into_iter());
        let telling = Telling { head, left, encoded: BytesMut::new(), pieces: 0, place };
        let telling = Arc::new(Mutex::new(Some(telling)));
        let mibs = u32::try_from(length >> 20).unwrap_or(u32::MAX);
        // Who does not read does not ask for the next piece either.
        let watching = tokio::spawn(give_up(telling.clone(), WITHIN + FOR_A_MIB * mibs)).abort_handle();
        Self { telling, watching }
    }

    /// What comes next; nothing once all of it was read.
    fn next_piece(&self) -> Result<Option<Bytes>, Status> {
        let mut telling = lock(&self.telling);
        let Some(now) = &mut *telling else {
            return Err(Status::deadline_exceeded("the answer was not read in time"));
        };
        let piece = now.next_piece();
        if piece.is_none() {
            *telling = None;
        }
        Ok(piece)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.watching.abort();
        drop(lock(&self.telling).take());
    }
}

impl Telling {
    fn next_piece(&mut self) -> Option<Bytes> {
        self.pieces += 1;
        self.encoded.extend_from_slice(&self.head.take().into_iter().flatten().collect::<Vec<_>>());
        while self.encoded.len() < PIECE
            && let Some(config) = self.left.next()
        {
            prost::encoding::message::encode(CONFIG, &config, &mut self.encoded);
        }
        match self.encoded.len() {
            0 => None,
            // A copy: a part of it would keep all of it.
            length if length > PIECE => {
                let piece = self.encoded.get(..PIECE).map(Bytes::copy_from_slice);
                self.encoded.advance(PIECE);
                piece
            }
            _ => Some(std::mem::take(&mut self.encoded).freeze()),
        }
    }
}

fn lock(telling: &Mutex<Option<Telling>>) -> MutexGuard<'_, Option<Telling>> {
    telling.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives an answer up that is not read within some time, or not at all while others wait.
async fn give_up(telling: Arc<Mutex<Option<Telling>>>, within: Duration) {
    let (until, mut pieces) = (Instant::now() + within, 0);
    loop {
        sleep(STALL).await;
        let mut now = lock(&telling);
        let Some(left) = &*now else { return };
        let stalls = left.pieces == pieces && left.place.is_waited_for();
        if stalls || Instant::now() >= until {
            let over = now.take();
            drop(now);
            drop(over);
            return;
        }
        pieces = left.pieces;
    }
}

/// How long the message is that has these clients.
pub(super) fn length(configs: &[ClientConfig]) -> usize {
    prost::encoding::message::encoded_len_repeated(CONFIG, configs)
}

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Told, Status>> + Send>>;

/// The body of a response: an answer for each of the requests of a call. It ends with trailers.
pub(super) struct Answers<F> {
    requests: Option<Streaming<ClientStatusRequest>>,
    answer: F,
    now: Now,
}

enum Now {
    Asked,
    Answering(Answering),
    Telling(Told),
    Over,
}

impl<F> Answers<F> {
    /// To what is asked, one after the other.
    pub(super) fn to(requests: Streaming<ClientStatusRequest>, answer: F) -> Self {
        Self { requests: Some(requests), answer, now: Now::Asked }
    }

    /// The only one.
    pub(super) fn one(told: Told, answer: F) -> Self {
        Self { requests: None, answer, now: Now::Telling(told) }
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.now = Now::Over;
        self.requests = None;
        let mut trailers = HeaderMap::new();
        if status.add_header(&mut trailers).is_err() {
            trailers.insert("grpc-status", http::HeaderValue::from(13));
        }
        Frame::trailers(trailers)
    }
}

impl<F: FnMut(ClientStatusRequest) -> Answering + Unpin> Answers<F> {
    /// The next piece of what is told, unless the call is over.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        loop {
            self.now = match &mut self.now {
                Now::Asked => {
                    let Some(requests) = &mut self.requests else { return Poll::Ready(Err(Status::ok(""))) };
                    match ready!(Pin::new(requests).poll_next(cx)) {
                        Some(request) => Now::Answering((self.answer)(request?)),
                        None => return Poll::Ready(Err(Status::ok(""))),
                    }
                }
                Now::Answering(answering) => Now::Telling(ready!(answering.as_mut().poll(cx))?),
                Now::Telling(told) => match told.next_piece()? {
                    Some(piece) => return Poll::Ready(Ok(piece)),
                    None => Now::Asked,
                },
                Now::Over => return Poll::Ready(Err(Status::ok(""))),
            };
        }
    }
}

impl<F: FnMut(ClientStatusRequest) -> Answering + Unpin> Body for Answers<F> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if matches!(self.now, Now::Over) {
            return Poll::Ready(None);
        }
        let frame = match ready!(self.poll_piece(cx)) {
            Ok(piece) => Frame::data(piece),
            Err(status) => self.end(&status),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.now, Now::Over)
    }
}
