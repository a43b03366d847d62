//! A connection that is secured.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::grpc::server::ClientCertificate;
use crate::grpc::tls::server::client::TlsClient;

/// A connection by TLS, for tonic's server. What it says of its client is a [`TlsClient`].
pub struct Secured<I> {
    io: Box<TlsStream<I>>,
    client: TlsClient,
}

impl<I> Secured<I> {
    /// Once the handshake is done: who it is with, but for what was proved in it.
    pub(super) fn new(io: TlsStream<I>, client: TlsClient) -> Self {
        let chain = io.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = ClientCertificate::new(chain.iter().map(|certificate| certificate.to_vec()));
        Self { client: client.showing(shown), io: Box::new(io) }
    }

    /// Who is at the other end.
    pub fn client(&self) -> &TlsClient {
        &self.client
    }
}

impl<I> Connected for Secured<I> {
    type ConnectInfo = TlsClient;

    fn connect_info(&self) -> TlsClient {
        self.client.clone()
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_read(cx, into)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl<I> std::fmt::Debug for Secured<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secured").field("client", &self.client).finish_non_exhaustive()
    }
}
