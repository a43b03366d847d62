//! Messages put together before tonic's decoder sees them: that one keeps a buffer as large as the largest message for as
//! long as its stream lives, and a relay has a stream for every node group.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

/// Length of the gRPC message prefix: a flag and four bytes of length.
const PREFIX: usize = 5;
/// The prefix of an empty message, which the decoder gets for every message.
const EMPTY: Bytes = Bytes::from_static(&[0; PREFIX]);
/// How much room is made for a message before any of it is there, in bytes: its length is what somebody says.
const AT_ONCE: usize = 1 << 20;

/// The message that the decoder's empty one stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Handed(Arc<Mutex<Option<Bytes>>>);

impl Handed {
    pub(super) fn take(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, message: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }
}

/// A body that hands over whole messages, and empty ones in their place.
#[derive(Debug)]
pub(super) struct Whole<B> {
    body: B,
    pieces: Pieces,
    handed: Handed,
}

/// What came of messages that are not handed over.
#[derive(Debug)]
struct Pieces {
    limit: usize,
    /// The message that is put together, with its prefix.
    message: BytesMut,
    /// What came after it.
    rest: Bytes,
}

enum Next {
    Message(Bytes),
    /// A prefix that the decoder refuses, and finds the words for.
    Refused(Bytes),
}

impl<B> Whole<B> {
    /// Messages of up to `limit` bytes of a body, by way of `handed`.
    pub(super) fn new(body: B, limit: usize, handed: Handed) -> Self {
        Self { body, pieces: Pieces { limit, message: BytesMut::new(), rest: Bytes::new() }, handed }
    }
}

impl Pieces {
    fn next(&mut self) -> Option<Next> {
        self.fill(PREFIX)?;
        let (&[flag, a, b, c, d], _) = self.message.split_first_chunk::<PREFIX>()?;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if flag != 0 || length > self.limit {
            return Some(Next::Refused(std::mem::take(&mut self.message).freeze()));
        }
        if self.message.len() == PREFIX {
            // Of just the size, so that no more is kept of a message than there is.
            let mut room = BytesMut::with_capacity(PREFIX + length.min(AT_ONCE));
            room.extend_from_slice(&self.message);
            self.message = room;
        }
        self.fill(PREFIX + length)?;
        Some(Next::Message(std::mem::take(&mut self.message).freeze().split_off(PREFIX)))
    }

    /// Has `length` bytes of the message, if they are there.
    fn fill(&mut self, length: usize) -> Option<()> {
        let missing = length.saturating_sub(self.message.len());
        self.message.extend_from_slice(&self.rest.split_to(missing.min(self.rest.len())));
        (self.message.len() >= length).then_some(())
    }
}

impl<B: Body<Data = Bytes, Error = Status> + Unpin> Body for Whole<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            match self.pieces.next() {
                Some(Next::Message(message)) => {
                    self.handed.put(message);
                    return Poll::Ready(Some(Ok(Frame::data(EMPTY))));
                }
                Some(Next::Refused(prefix)) => return Poll::Ready(Some(Ok(Frame::data(prefix)))),
                None => {}
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                None if !self.pieces.message.is_empty() => {
                    return Poll::Ready(Some(Err(Status::internal("the responses end within one"))));
                }
                over => return Poll::Ready(over),
            };
            match frame.into_data() {
                Ok(data) => self.pieces.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
        [&[flag], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
    }

    fn pieces(limit: usize) -> Pieces {
        Pieces { limit, message: BytesMut::new(), rest: Bytes::new() }
    }

    #[test]
    fn messages_are_whole_wherever_they_are_cut_and_nothing_else_is_kept() {
        let messages: [&[u8]; 5] = [b"one", b"", &[7; 3000], b"", b"last"];
        let all = messages.map(|message| framed(0, message)).concat();
        for size in 1..all.len() {
            let (mut pieces, mut handed) = (pieces(3000), Vec::new());
            for piece in all.chunks(size) {
                pieces.rest = Bytes::copy_from_slice(piece);
                while let Some(Next::Message(message)) = pieces.next() {
                    assert_eq!(pieces.message.capacity(), 0);
                    handed.push(message);
                }
                assert!(pieces.rest.is_empty());
            }
            assert_eq!(handed, messages);
        }
    }

    #[test]
    fn what_is_refused_costs_nothing() {
        for (limit, refused) in [(2999, framed(0, &[7; 3000])), (3000, framed(1, b"small"))] {
            let mut pieces = pieces(limit);
            pieces.rest = refused.clone().into();
            assert!(matches!(pieces.next(), Some(Next::Refused(prefix)) if prefix == refused[..PREFIX]));
        }
        let mut pieces = pieces(usize::MAX);
        pieces.rest = Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]);
        assert!(pieces.next().is_none() && pieces.message.capacity() < 2 * AT_ONCE);
    }

    /// A buffer that grows as it is filled would be up to twice as large, and is kept for as long as the message.
    #[test]
    fn a_message_that_comes_in_pieces_has_room_of_just_its_size() {
        let mut pieces = pieces(3000);
        for piece in framed(0, &[7; 3000])[..3000].chunks(600) {
            pieces.rest = Bytes::copy_from_slice(piece);
            assert!(pieces.next().is_none());
        }
        assert_eq!(pieces.message.capacity(), PREFIX + 3000);
    }

    /// Bytes as they come in, and then no more.
    #[derive(Debug)]
    struct Coming(Vec<Vec<u8>>);

    impl Body for Coming {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            let next = (!self.0.is_empty()).then(|| self.0.remove(0));
            Poll::Ready(next.map(|data| Ok(Frame::data(data.into()))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    #[test]
    fn an_empty_frame_stands_for_each_message_and_the_end_within_one_is_an_error() {
        for (last, ends_well) in [(Vec::new(), true), (vec![0, 0], false)] {
            let came = [framed(0, b"one"), framed(0, b"two"), last].concat();
            let handed = Handed::default();
            let mut whole = Whole::new(Coming(vec![came]), 3, handed.clone());
            let mut cx = Context::from_waker(std::task::Waker::noop());
            for message in [&b"one"[..], b"two"] {
                assert!(!whole.is_end_stream());
                let polled = Pin::new(&mut whole).poll_frame(&mut cx);
                let Poll::Ready(Some(Ok(frame))) = polled else { panic!("{polled:?}") };
                assert_eq!(frame.data_ref(), Some(&EMPTY));
                assert_eq!(handed.take().as_deref(), Some(message));
            }
            assert_eq!(whole.is_end_stream(), ends_well);
            let end = Pin::new(&mut whole).poll_frame(&mut cx);
            assert_eq!(matches!(end, Poll::Ready(None)), ends_well);
            assert_eq!(matches!(end, Poll::Ready(Some(Err(_)))), !ends_well);
        }
    }
}
