//! Why the other end ended a connection, where a failed write is what shows that it did.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long is read on after a write failed: what was said before is here already.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much of it is read: a reason is short, and comes last.
const AT_MOST: usize = 1 << 20;

/// A connection whose failed writes say why the other end ended it.
///
/// Who refuses a certificate sends an alert and closes. What is written meanwhile comes back as a reset, and fails before the
/// alert was read. So it is read on after a write that failed, until there is an error or the end: the error is what the write
/// failed with.
#[derive(Debug)]
pub(crate) struct LastWords<T> {
    io: T,
    failed: Option<Failed>,
}

/// A write that failed, and whose reason may still be read.
#[derive(Debug)]
struct Failed {
    with: io::Error,
    unread: usize,
    until: Pin<Box<Sleep>>,
}

impl<T> LastWords<T> {
    pub(crate) fn new(io: T) -> Self {
        Self { io, failed: None }
    }
}

impl<T: AsyncRead + Unpin> LastWords<T> {
    /// Writes, unless that has failed already: then it is read on.
    fn heed<R>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if self.failed.is_none() {
            match ready!(write(Pin::new(&mut self.io), cx)) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(with) => {
                    let until = Box::pin(sleep(PATIENCE));
                    self.failed = Some(Failed { with, unread: AT_MOST, until });
                }
            }
        }
        let said = ready!(self.read_on(cx));
        match (said, self.failed.take()) {
            (Some(reason), _) => Poll::Ready(Err(reason)),
            (None, Some(failed)) => Poll::Ready(Err(failed.with)),
            (None, None) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The error that reading ends with, if it ends with one.
    fn read_on(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let Some(failed) = &mut self.failed else { return Poll::Ready(None) };
        let mut room = [0; 4096];
        loop {
            let mut read = ReadBuf::new(&mut room);
            match Pin::new(&mut self.io).poll_read(cx, &mut read) {
                Poll::Ready(Err(reason)) => return Poll::Ready(Some(reason)),
                Poll::Ready(Ok(())) => {
                    failed.unread = failed.unread.saturating_sub(read.filled().len());
                    if read.filled().is_empty() || failed.unread == 0 {
                        return Poll::Ready(None);
                    }
                }
                Poll::Pending => return failed.until.as_mut().poll(cx).map(|()| None),
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for LastWords<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LastWords<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.heed(cx, |io, cx| io.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.heed(cx, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.heed(cx, |io, cx| io.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::AsyncWriteExt as _;
    use tokio::time::Instant;

    use super::*;

    /// A connection that cannot be written to, and what is read from it: more is to come if it does not end.
    struct Closed(VecDeque<io::Result<&'static [u8]>>);

    impl AsyncRead for Closed {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            match self.0.pop_front() {
                Some(read) => Poll::Ready(read.map(|bytes| into.put_slice(bytes))),
                None => Poll::Pending,
            }
        }
    }

    impl AsyncWrite for Closed {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::Error::other("the write failed")))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::other("the flush failed")))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn closed<const N: usize>(reads: [io::Result<&'static [u8]>; N]) -> LastWords<Closed> {
        LastWords::new(Closed(reads.into()))
    }

    fn alert() -> io::Result<&'static [u8]> {
        Err(io::Error::other("received an alert"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_fails_says_what_the_other_end_said_last() {
        let said = |error: io::Error| error.to_string();
        assert_eq!(said(closed([Ok(b"data"), alert()]).write(b"a").await.unwrap_err()), "received an alert");
        assert_eq!(said(closed([alert()]).flush().await.unwrap_err()), "received an alert");
        let slices = [IoSlice::new(b"a")];
        assert_eq!(said(closed([alert()]).write_vectored(&slices).await.unwrap_err()), "received an alert");
        assert_eq!(said(closed([Ok(b"data"), Ok(b"")]).write(b"a").await.unwrap_err()), "the write failed");
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_more_is_not_waited_for() {
        let begun = Instant::now();
        let error = closed([Ok(b"data")]).write(b"a").await.unwrap_err();
        assert_eq!((error.to_string().as_str(), begun.elapsed()), ("the write failed", PATIENCE));
    }
}
