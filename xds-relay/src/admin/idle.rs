//! Admin connections that nothing is asked on: a browser, or who asks very slowly, must not keep one forever.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::peer::Shown;
use super::preface::Preface;
use crate::admin::inspect::Inspect;

/// How many there may be, which is enough for probes, a scraper and some browsers: they take descriptors that origins and
/// files need, too. Of more, the oldest is over.
const MOST: usize = 16;

/// Who is at the other end, as far as it shows before anything is read.
pub(crate) type PeerOf<L> = fn(&<L as Listener>::Io, &<L as Listener>::Addr) -> Shown;

/// Takes connections, each of which is over when nothing was answered on it for so long. One of HTTP/2 is over when it says
/// so: its pings are answered for ever, and one connection could hold many pages that it does not read.
pub(crate) struct Idle<L: Listener> {
    listener: L,
    longest: Duration,
    relay: Arc<dyn Inspect>,
    peer: PeerOf<L>,
    /// Those there are, the oldest first: one whose sender is dropped is over.
    open: VecDeque<oneshot::Sender<()>>,
}

pub(crate) struct Connection<I> {
    io: I,
    shown: Shown,
    longest: Duration,
    timer: Pin<Box<Sleep>>,
    makes_room: oneshot::Receiver<()>,
    relay: Arc<dyn Inspect>,
    preface: Preface,
    over: bool,
}

impl<L: Listener> Idle<L> {
    pub(crate) fn new(listener: L, longest: Duration, relay: Arc<dyn Inspect>, peer: PeerOf<L>) -> Self {
        Self { listener, longest, relay, peer, open: VecDeque::new() }
    }
}

impl<L: Listener> Listener for Idle<L> {
    type Io = Connection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, L::Addr) {
        let (io, from) = self.listener.accept().await;
        self.open.retain(|open| !open.is_closed());
        if self.open.len() >= MOST {
            self.open.pop_front();
        }
        let (open, makes_room) = oneshot::channel();
        self.open.push_back(open);
        let shown = (self.peer)(&io, &from);
        (Connection::new(io, shown, self.longest, makes_room, self.relay.clone()), from)
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

impl<I> Connection<I> {
    fn new(io: I, shown: Shown, longest: Duration, makes_room: oneshot::Receiver<()>, relay: Arc<dyn Inspect>) -> Self {
        let (timer, preface) = (Box::pin(sleep(longest)), Preface::default());
        Self { io, shown, longest, timer, makes_room, relay, preface, over: false }
    }

    fn has_no_time(&mut self, cx: &mut Context<'_>) -> bool {
        self.timer.as_mut().poll(cx).is_ready() || Pin::new(&mut self.makes_room).poll(cx).is_ready()
    }

    fn answered(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.longest);
    }
}

impl<L: Listener> Connected<IncomingStream<'_, Idle<L>>> for Shown {
    fn connect_info(stream: IncomingStream<'_, Idle<L>>) -> Self {
        stream.io().shown.clone()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.over && self.has_no_time(cx) {
            self.over = true;
            self.relay.metrics().downstream_refused("admin_idle");
        }
        let before = into.filled().len();
        if !self.over {
            ready!(Pin::new(&mut self.io).poll_read(cx, into))?;
        }
        if self.preface.completes(into.filled().get(before..).unwrap_or_default()) {
            into.set_filled(before);
            self.over = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.answered();
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
        self.answered();
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
