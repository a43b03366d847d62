//! What an origin says when it ends a connection. HTTP/2 tells it to streams that it did not take any more; those that
//! were open learn only that the connection broke. So the frames that come in are looked at as they pass by.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// RFC 9113, 4.1: a length of three bytes, a type, flags, and the stream.
const HEADER: usize = 9;
const GO_AWAY: u8 = 7;
/// RFC 9113, 6.8: the last stream and the code come before the words.
const BEFORE_WORDS: usize = 8;
const MAX_WORDS: usize = 256;

/// The GOAWAY of a connection, when there was one.
#[derive(Clone, Debug, Default)]
pub(super) struct GoAway(Arc<Mutex<Option<Said>>>);

/// A code, and words beside it.
#[derive(Clone, Debug)]
struct Said {
    code: u32,
    words: String,
}

impl GoAway {
    /// What the origin said, in words.
    pub(super) fn words(&self) -> Option<String> {
        let said = self.lock().clone()?;
        let name = usize::try_from(said.code).ok().and_then(|code| CODES.get(code)).copied();
        let name = name.map_or_else(|| format!("{:#x}", said.code), str::to_owned);
        Some(match said.words.as_str() {
            "" => format!("GOAWAY {name}"),
            words => format!("GOAWAY {name}: {words}"),
        })
    }

    /// Whether it finds fault with us: servers that only want their streams to end say so without an error.
    pub(super) fn is_complaint(&self) -> bool {
        self.lock().as_ref().is_some_and(|said| said.code != 0)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// RFC 9113, 7.
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// The client's side of a connection, which listens for GOAWAY.
#[derive(Debug)]
pub(super) struct Listening<T> {
    io: T,
    frames: Frames,
    go_away: GoAway,
}

impl<T> Listening<T> {
    pub(super) fn new(io: T, go_away: GoAway) -> Self {
        Self { io, frames: Frames::default(), go_away }
    }
}

/// Where in the frames of a connection its bytes are.
#[derive(Debug, Default)]
struct Frames {
    /// Of the header, or of what is wanted after it; never much.
    kept: Vec<u8>,
    /// After the header: how many bytes of the frame are to come, and whether they are wanted.
    payload: Option<(usize, bool)>,
}

impl Frames {
    /// Looks at the bytes that come next; yields a GOAWAY that they complete.
    fn pass(&mut self, mut bytes: &[u8]) -> Option<Said> {
        let mut said = None;
        loop {
            match &mut self.payload {
                None => {
                    let (now, rest) = bytes.split_at(bytes.len().min(HEADER - self.kept.len()));
                    self.kept.extend_from_slice(now);
                    bytes = rest;
                    let [a, b, c, kind, ..] = *self.kept.as_slice() else { return said };
                    if self.kept.len() < HEADER {
                        return said;
                    }
                    let length = u32::from_be_bytes([0, a, b, c]) as usize;
                    self.payload = Some((length, kind == GO_AWAY));
                    self.kept.clear();
                }
                Some((left, wanted)) => {
                    let (now, rest) = bytes.split_at(bytes.len().min(*left));
                    if *wanted {
                        let room = BEFORE_WORDS + MAX_WORDS - self.kept.len();
                        self.kept.extend_from_slice(now.get(..room).unwrap_or(now));
                    }
                    *left -= now.len();
                    bytes = rest;
                    if *left > 0 {
                        return said;
                    }
                    said = wanted.then(|| go_away(&self.kept)).flatten().or(said);
                    *self = Self::default();
                }
            }
        }
    }
}

fn go_away(payload: &[u8]) -> Option<Said> {
    let (_last_stream, rest) = payload.split_first_chunk::<4>()?;
    let (code, words) = rest.split_first_chunk::<4>()?;
    let words = String::from_utf8_lossy(words).escape_debug().to_string();
    Some(Said { code: u32::from_be_bytes(*code), words })
}

impl<T: AsyncRead + Unpin> AsyncRead for Listening<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, into))?;
        if let Some(said) = self.frames.pass(into.filled().get(before..).unwrap_or_default()) {
            *self.go_away.lock() = Some(said);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Listening<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], payload].concat()
    }

    #[test]
    fn a_goaway_is_heard_wherever_the_bytes_are_cut() {
        let calm = [&[0, 0, 0, 1, 0, 0, 0, 11], "too_many_pings".as_bytes()].concat();
        let all = [frame(0, &[7; 300]), frame(4, &[]), frame(GO_AWAY, &calm), frame(6, &[7; 8])].concat();
        for size in 1..all.len() {
            let go_away = GoAway::default();
            let mut frames = Frames::default();
            for piece in all.chunks(size) {
                if let Some(said) = frames.pass(piece) {
                    *go_away.lock() = Some(said);
                }
            }
            assert_eq!(go_away.words().as_deref(), Some("GOAWAY ENHANCE_YOUR_CALM: too_many_pings"));
            assert!(go_away.is_complaint());
        }
    }

    #[test]
    fn odd_goaways_are_heard_as_far_as_they_go() {
        let heard = |payload: &[u8]| {
            let said = Frames::default().pass(&frame(GO_AWAY, payload));
            GoAway(Arc::new(Mutex::new(said))).words()
        };
        assert_eq!(heard(&[0; 8]).as_deref(), Some("GOAWAY NO_ERROR"));
        assert_eq!(heard(&[0xff; 8]).as_deref(), Some("GOAWAY 0xffffffff"));
        assert_eq!(heard(&[0; 7]), None);
        let long = [&[0; 8][..], &[b'x'; 100_000]].concat();
        assert_eq!(heard(&long).map(|words| words.len()), Some("GOAWAY NO_ERROR: ".len() + MAX_WORDS));
        assert_eq!(
            heard(b"\0\0\0\0\0\0\0\x0b\x1b[2J\n\xff").as_deref(),
            Some("GOAWAY ENHANCE_YOUR_CALM: \\u{1b}[2J\\n\u{fffd}")
        );
    }
}
