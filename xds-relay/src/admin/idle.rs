//! Admin connections that nothing is asked on: a browser, or who asks very slowly, must not keep one forever.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

use super::preface::Preface;
use crate::admin::Inspect;

/// Takes connections, each of which is over when nothing was answered on it for so long. One of HTTP/2 is over when it says
/// so: its pings are answered for ever, and one connection could hold many pages that it does not read.
pub(crate) struct Idle {
    listener: TcpListener,
    longest: Duration,
    relay: Arc<dyn Inspect>,
}

pub(crate) struct Connection<I = TcpStream> {
    io: I,
    longest: Duration,
    timer: Pin<Box<Sleep>>,
    relay: Arc<dyn Inspect>,
    preface: Preface,
    over: bool,
}

impl Idle {
    pub(crate) fn new(listener: TcpListener, longest: Duration, relay: Arc<dyn Inspect>) -> Self {
        Self { listener, longest, relay }
    }
}

impl Listener for Idle {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (io, from) = Listener::accept(&mut self.listener).await;
        (Connection::new(io, self.longest, self.relay.clone()), from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl<I> Connection<I> {
    fn new(io: I, longest: Duration, relay: Arc<dyn Inspect>) -> Self {
        Self { io, longest, timer: Box::pin(sleep(longest)), relay, preface: Preface::default(), over: false }
    }

    fn answered(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.longest);
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.over && self.timer.as_mut().poll(cx).is_ready() {
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
