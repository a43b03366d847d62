//! TLS on admin connections: each is secured while it is first read from, so that none waits for another.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use xds_transport::grpc::tls::{Accepting, HandshakeError};

use super::peer::{Peer, Shown};
use crate::tls;

/// Takes connections that are to be secured, if there is anything to do so with.
pub(crate) struct Secured<L> {
    listener: L,
    tls: Option<Arc<tls::Downstream>>,
}

/// A connection.
pub(crate) enum Secure<I> {
    Clear(I),
    Beginning(Box<Accepting<I>>, Shown),
    Begun(Box<TlsStream<I>>),
    Failed,
}

impl<L> Secured<L> {
    pub(crate) fn new(listener: L, tls: Option<Arc<tls::Downstream>>) -> Self {
        Self { listener, tls }
    }
}

impl<L: Listener<Io: Peer>> Listener for Secured<L> {
    type Io = Secure<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, L::Addr) {
        let (io, from) = self.listener.accept().await;
        let io = match &self.tls {
            None => Secure::Clear(io),
            Some(tls) => {
                let shown = io.peer().place();
                Secure::Beginning(Box::new(tls.accept(io)), shown)
            }
        };
        (io, from)
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Secure<I> {
    /// Secures it first, and does this then.
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        clear: impl FnOnce(Pin<&mut I>, &mut Context<'_>) -> Poll<io::Result<T>>,
        secure: impl FnOnce(Pin<&mut TlsStream<I>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Self::Beginning(beginning, shown) = self {
            *self = match ready!(Pin::new(&mut **beginning).poll(cx)) {
                Ok(begun) => {
                    shown.certificate(begun.get_ref().1.peer_certificates().unwrap_or_default());
                    Self::Begun(Box::new(begun))
                }
                Err(error) => {
                    let reason = HandshakeError::from(error);
                    let peer = shown.peer();
                    let of = if peer.is_empty() { String::new() } else { format!(" of {peer}") };
                    tracing::warn!("an admin connection{of} is not secured: {reason}");
                    *self = Self::Failed;
                    return Poll::Ready(Err(io::Error::other(reason)));
                }
            };
        }
        match self {
            Self::Clear(io) => clear(Pin::new(io), cx),
            Self::Begun(io) => secure(Pin::new(&mut **io), cx),
            Self::Beginning(..) | Self::Failed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl<I: Peer> Peer for Secure<I> {
    fn peer(&self) -> Shown {
        match self {
            Self::Clear(io) => io.peer(),
            Self::Beginning(_, shown) => shown.clone(),
            // Whoever asks does before anything is read.
            Self::Begun(_) | Self::Failed => Shown::default(),
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secure<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // One of the two is called.
        let into = std::cell::RefCell::new(into);
        self.poll(
            cx,
            |io, cx| io.poll_read(cx, &mut into.borrow_mut()),
            |io, cx| io.poll_read(cx, &mut into.borrow_mut()),
        )
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secure<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(cx, |io, cx| io.poll_write(cx, bytes), |io, cx| io.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, AsyncWrite::poll_flush, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &*self {
            // Nobody is there to be told.
            Self::Beginning(..) | Self::Failed => Poll::Ready(Ok(())),
            _ => self.poll(cx, AsyncWrite::poll_shutdown, AsyncWrite::poll_shutdown),
        }
    }
}
