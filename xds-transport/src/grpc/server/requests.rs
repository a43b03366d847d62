//! Reading the requests of one stream: by a task of its own, because a response body whose window
//! is full is not polled for long, and two full windows must not wait for each other.

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tonic::Status;

use crate::grpc::now;
use crate::grpc::server::apart::Long;
use crate::grpc::server::gzip::{self, Unpack};
use crate::grpc::server::handle::Shared as _;
use crate::grpc::server::state::{StreamState, status_of};
use crate::grpc::server::unfinished::Share;
use crate::server::{ProtocolError, Source};

/// What is decompressed at once; what has more is, where nobody waits.
const QUICK: usize = 64 << 10;

/// Length of the gRPC message prefix: a flag and four bytes of length.
const PREFIX: usize = 5;

/// Hands every request to the stream until the client sends no more.
pub(crate) async fn read<S: Source + Send + 'static>(
    mut body: Body,
    state: Arc<StreamState<S>>,
    taken: Taken,
    mut unfinished: Share,
) {
    let mut unread = Unread::default();
    let end = loop {
        let data = match body.frame().await {
            None if unread.buffer.is_empty() => return state.half_close(),
            None => break Status::internal("the requests end within one"),
            Some(Err(status)) => break Status::cancelled(status.to_string()),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        unread.data = data;
        if let Err(status) = handle(&mut unread, &state, taken, &mut unfinished).await {
            break status;
        }
    };
    state.end_with(end);
}

/// Which requests are taken.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    /// The longest, in bytes, decompressed if it was not.
    pub(crate) limit: usize,
    /// Whether the client says that it compresses them.
    pub(crate) gzip: bool,
}

/// What was read and not handled.
#[derive(Default)]
struct Unread {
    /// The begin of a request.
    buffer: BytesMut,
    /// Something was taken from it.
    taken: bool,
    /// What came last: it goes on.
    data: Bytes,
}

/// Hands over what is whole.
async fn handle<S: Source + Send + 'static>(
    unread: &mut Unread,
    state: &Arc<StreamState<S>>,
    taken: Taken,
    unfinished: &mut Share,
) -> Result<(), Status> {
    while let Some(long) = unread.handle_quickly(state, taken)? {
        // It may wait for others.
        keep(unfinished, long.len() + unread.buffer.len(), state)?;
        // Who reads no such request has no room for it.
        Box::pin(state.handle_apart(long, unfinished.client())).await?;
    }
    keep(unfinished, unread.buffer.len(), state)
}

/// Another may have found that this stream keeps most, and say so just now: it ends once, with the first word.
fn keep<S: Source + Send + 'static>(
    unfinished: &mut Share,
    bytes: usize,
    state: &StreamState<S>,
) -> Result<(), Status> {
    unfinished.keep(bytes).map_err(|error| {
        state.refuse(&error);
        Status::ok("")
    })
}

impl Unread {
    /// Hands over what is whole, up to a request that takes long.
    fn handle_quickly<S: Source>(&mut self, state: &StreamState<S>, taken: Taken) -> Result<Option<Long>, Status> {
        let mut work = false;
        while let Some(framed) = self.next(|front| length(front, state, taken))? {
            let is_packed = framed.first().is_some_and(|flag| *flag != 0);
            let mut message = framed.slice(PREFIX..);
            if is_packed {
                match gzip::unpack(&message, QUICK.min(taken.limit)) {
                    Ok(unpacked) => message = unpacked,
                    Err(Unpack::TooLong) => return Ok(Some(Long::Packed(message, taken.limit))),
                    Err(Unpack::Broken(words)) => return Err(Status::internal(words)),
                }
            }
            let mut inner = state.lock();
            let inner = &mut *inner;
            let Some(source) = inner.source.as_mut() else { return Ok(None) };
            let at = now();
            let handled = inner.stream.handle_quickly(at, message, source);
            work |= inner.stream.leaves_work(at, source);
            if let Some(long) = handled.map_err(|error| status_of(&error, source))? {
                return Ok(Some(Long::Plain(long)));
            }
        }
        if work {
            state.wake.wake();
        }
        Ok(None)
    }

    /// The next message that is whole. One that came in one piece is not copied.
    fn next(&mut self, length: impl Fn(&[u8]) -> Result<Option<usize>, Status>) -> Result<Option<Bytes>, Status> {
        let Self { buffer, taken, data } = self;
        let begun = !buffer.is_empty();
        if begun {
            buffer.extend_from_slice(&std::mem::take(data));
        }
        let front = if begun { &buffer[..] } else { &data[..] };
        let length = length(front)?;
        match length.filter(|length| *length <= front.len()) {
            Some(length) if begun => {
                *taken = true;
                Ok(Some(buffer.split_to(length).freeze()))
            }
            Some(length) => Ok(Some(data.split_to(length))),
            None => {
                if std::mem::take(taken) {
                    // What is left of a buffer keeps all of it: the first request may have been large, and the next one is an ACK.
                    *buffer = BytesMut::from(&buffer[..]);
                }
                buffer.extend_from_slice(&std::mem::take(data));
                make_room(buffer, length.unwrap_or_default());
                Ok(None)
            }
        }
    }
}

/// The length of the message at the front with its prefix, once that is there.
fn length<S: Source>(front: &[u8], state: &StreamState<S>, taken: Taken) -> Result<Option<usize>, Status> {
    let Some((prefix, _)) = front.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let [flag, length @ ..] = *prefix;
    match flag {
        0 => {}
        1 if taken.gzip => {}
        1 => return Err(Status::internal("a compressed request without grpc-encoding")),
        other => return Err(Status::internal(format!("a request with the flag {other}"))),
    }
    let limit = taken.limit;
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(state.refusal(&ProtocolError::TooLong { what: "request", length, limit }));
    }
    Ok(Some(PREFIX + length))
}

/// A long message is not copied whenever it outgrows the buffer: but nobody has room for what he only announced.
fn make_room(buffer: &mut BytesMut, length: usize) {
    if buffer.len() >= length / 8 {
        buffer.reserve(length.saturating_sub(buffer.len()));
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::Write as _;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http_body::Frame as BodyFrame;
    use prost::Message as _;
    use tokio::sync::oneshot;
    use xdstp_cache::{Cache, Options};

    use super::*;
    use crate::grpc::server::handle::{Shared, Wake};
    use crate::grpc::server::state::Inner;
    use crate::grpc::server::unfinished::Unfinished;
    use crate::server::{Settings, Stream};
    use crate::wire::DeltaDiscoveryRequest;
    use crate::{Frame, Protocol};

    /// Some bytes, and no more.
    struct Begun(Option<Bytes>, #[expect(dead_code, reason = "it is dropped with this")] oneshot::Sender<Infallible>);

    impl http_body::Body for Begun {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<BodyFrame<Bytes>, Infallible>>> {
            self.0.take().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(BodyFrame::data(bytes)))))
        }
    }

    /// So many bytes of a request that is longer.
    fn begun(length: usize) -> Vec<u8> {
        [&[0, 0, 1, 0, 0][..], &vec![0; length - PREFIX]].concat()
    }

    /// Another stream finds that this one keeps most, and this one finds the same, before either has said so.
    #[test]
    fn a_stream_that_two_find_to_keep_most_ends_once() {
        let stream = Stream::new(Protocol::Delta, Settings::default());
        let inner = Inner { stream, source: Some(Cache::new(Options::default())), half_closed: false };
        let state = Arc::new(StreamState::<Cache<Frame>>::new(inner, Wake::default()));
        let shared: Arc<dyn Shared> = state.clone();
        let mut share = Unfinished::new(100).share(Arc::downgrade(&shared), None);
        keep(&mut share, 101, &state).unwrap_err();
        shared.refuse(&ProtocolError::Aged);
        let mut source = Cache::new(Options::default());
        let end = state.take_end(Some(&mut source)).map(|status| status.code());
        assert_eq!(end, Some(tonic::Code::ResourceExhausted), "told, and its source with it, by who takes it");
        assert!(state.take_end(Some(&mut source)).is_none());
    }

    /// Its client may leave no room for a response, and its end is not told then.
    #[tokio::test(start_paused = true)]
    async fn of_a_stream_that_is_to_end_nothing_is_kept_though_it_is_stuck() {
        let unfinished = Unfinished::new(100);
        let begin = |length| {
            let stream = Stream::new(Protocol::Delta, Settings::default());
            let inner = Inner { stream, source: Some(Cache::new(Options::default())), half_closed: false };
            let state = Arc::new(StreamState::<Cache<Frame>>::new(inner, Wake::default()));
            let shared: Arc<dyn Shared> = state.clone();
            let (kept, given_up) = oneshot::channel();
            let taken = Taken { limit: 1 << 20, gzip: false };
            let body = Body::new(Begun(Some(begun(length).into()), kept));
            let reading =
                tokio::spawn(read(body, state.clone(), taken, unfinished.share(Arc::downgrade(&shared), None)));
            state.is_read_by(reading.abort_handle());
            (state, given_up)
        };
        let (_most, mut given_up) = begin(80);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(given_up.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let (_less, mut kept) = begin(30);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(given_up.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(kept.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    /// What waits to be handled where it keeps nobody waiting is kept, and so is what came after it.
    #[tokio::test]
    async fn a_long_request_and_the_begin_of_the_next_are_kept_together() {
        let names = DeltaDiscoveryRequest { type_url: "x".repeat(2 * QUICK), ..DeltaDiscoveryRequest::default() };
        let mut packing = GzEncoder::new(Vec::new(), Compression::best());
        packing.write_all(&names.encode_to_vec()).unwrap();
        let packed = packing.finish().unwrap();
        let length = u32::try_from(packed.len()).unwrap().to_be_bytes();
        let bytes = [&[1][..], &length, &packed, &begun(packed.len())].concat();
        for (most, is_too_much) in [(2 * packed.len() - 1, true), (2 * packed.len(), false)] {
            let inner = Inner {
                stream: Stream::new(Protocol::Delta, Settings::default()),
                source: Some(Cache::new(Options::default())),
                half_closed: false,
            };
            let state = Arc::new(StreamState::<Cache<Frame>>::new(inner, Wake::default()));
            let shared: Arc<dyn Shared> = state.clone();
            let mut share = Unfinished::new(most).share(Arc::downgrade(&shared), None);
            let taken = Taken { limit: 1 << 20, gzip: true };
            let mut unread = Unread { data: Bytes::copy_from_slice(&bytes[..10]), ..Unread::default() };
            handle(&mut unread, &state, taken, &mut share).await.unwrap();
            unread.data = Bytes::copy_from_slice(&bytes[10..]);
            // What is too much was said to the stream; else it has an end of its own, with words.
            let words = handle(&mut unread, &state, taken, &mut share).await.unwrap_err();
            assert_eq!(words.code() == tonic::Code::Ok, is_too_much, "{words}");
        }
    }

    #[test]
    fn who_sent_an_eighth_of_a_request_has_room_for_it_and_nobody_before() {
        let room = |sent| {
            let mut buffer = BytesMut::from(&begun(sent)[..]);
            make_room(&mut buffer, 8000);
            buffer.capacity()
        };
        assert!(room(999) < 8000);
        assert!(room(1000) >= 8000);
    }
}
