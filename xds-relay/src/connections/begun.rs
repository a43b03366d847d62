//! The first bytes of a connection, which say what it speaks.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};

use super::portion::Portion;

/// What every connection of HTTP/2 begins with (RFC 9113, 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that has begun: who reads it is given the first bytes once more.
pub(super) struct Begun<I> {
    io: Take<I>,
    first: [u8; PREFACE.len()],
    /// How many of them came.
    came: usize,
    /// How many of them were read again.
    read: usize,
    heard: Heard,
    /// Of HTTP/2.
    portion: Option<Portion>,
}

/// What whoever serves a connection is to know of what was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Said>);

#[derive(Debug, Default)]
struct Said {
    anything: AtomicBool,
    too_much: AtomicBool,
}

impl Heard {
    /// Whether anything was read since the last look.
    pub(super) fn take(&self) -> bool {
        self.0.anything.swap(false, Ordering::Relaxed)
    }

    /// Whether the client changes its settings so often that no more is read.
    #[inline]
    pub(super) fn is_too_much(&self) -> bool {
        self.0.too_much.load(Ordering::Relaxed)
    }
}

impl<I: AsyncRead + Unpin> Begun<I> {
    /// Reads until it is known whether this is HTTP/2. `None` if the connection is over before. It is boxed: those who pass it on
    /// have room for it each.
    ///
    /// # Errors
    /// It breaks.
    pub(super) async fn read(mut io: I) -> io::Result<Option<Box<Self>>> {
        let (mut first, mut came) = ([0; PREFACE.len()], 0);
        while PREFACE.starts_with(first.get(..came).unwrap_or_default()) {
            let Some(rest) = first.get_mut(came..).filter(|rest| !rest.is_empty()) else { break };
            match io.read(rest).await? {
                0 => return Ok(None),
                more => came += more,
            }
        }
        let portion = (first == *PREFACE).then(Portion::new);
        Ok(Some(Box::new(Self { io: io.take(0), first, came, read: 0, heard: Heard::default(), portion })))
    }

    pub(super) fn is_http2(&self) -> bool {
        self.first == *PREFACE
    }

    /// Whether this is the beginning of TLS: a record of a handshake (RFC 8446, 5.1).
    pub(super) fn is_tls(&self) -> bool {
        self.came >= 2 && self.first.starts_with(&[22, 3])
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard.clone()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Begun<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(again) = this.first.get(this.read..this.came).filter(|again| !again.is_empty()) {
            let many = again.len().min(into.remaining());
            into.put_slice(again.get(..many).unwrap_or_default());
            this.read += many;
            return Poll::Ready(Ok(()));
        }
        let Some(most) = this.portion.as_ref().map_or(Some(usize::MAX), Portion::next) else {
            this.portion.iter_mut().for_each(Portion::begin);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        let before = into.filled().len();
        let read = if into.remaining() <= most {
            Pin::new(this.io.get_mut()).poll_read(cx, into)
        } else {
            this.io.set_limit(most as u64);
            Pin::new(&mut this.io).poll_read(cx, into)
        };
        if read.is_pending() {
            this.portion.iter_mut().for_each(Portion::begin);
            return Poll::Pending;
        }
        let said = into.filled().get(before..).filter(|said| !said.is_empty());
        if let Some(said) = said {
            this.heard.0.anything.store(true, Ordering::Relaxed);
            if !this.portion.as_mut().is_none_or(|portion| portion.take(said)) {
                this.heard.0.too_much.store(true, Ordering::Relaxed);
            }
        }
        read
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Begun<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.io.get_mut()).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io.get_mut()).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.io.get_mut()).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.get_ref().is_write_vectored()
    }
}
