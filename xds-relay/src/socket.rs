//! Where connections are taken: ports, and unix sockets, whose files are looked after.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Extensions;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tonic::transport::server::Connected as _;

#[cfg(unix)]
use self::file::SocketFile;
use crate::config::Address;
use crate::error::Error;
use crate::relay_core::Identity;

#[cfg(unix)]
mod file;

/// How many connections may wait to be accepted, if the system allows so many: a fleet comes at once, and who finds no place tries
/// again a second later or is refused.
const WAITING: u32 = 4096;

/// Where connections are taken.
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, SocketFile),
}

/// A connection.
pub(crate) enum Io {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Listener {
    /// Takes an address.
    ///
    /// # Errors
    /// Somebody has it, or the system says no.
    pub(crate) fn bind(address: &Address) -> io::Result<Self> {
        Self::bind_as(address, false)
    }

    /// The same, where a socket in a file is for this user alone.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub(crate) fn bind_private(address: &Address) -> io::Result<Self> {
        Self::bind_as(address, true)
    }

    fn bind_as(address: &Address, is_private: bool) -> io::Result<Self> {
        let address = match address {
            Address::Tcp(address) => address,
            #[cfg(unix)]
            Address::Unix(address) => {
                let (listener, file) = SocketFile::bind(address, is_private)?;
                return Ok(Self::Unix(listener, file));
            }
            #[cfg(not(unix))]
            Address::Unix(_) => return Err(io::Error::from(io::ErrorKind::Unsupported)),
        };
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Those of a relay that has ended may be there still.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(*address)?;
        Ok(Self::Tcp(socket.listen(WAITING)?))
    }

    /// The same of what a field of the configuration names.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), with the field.
    pub(crate) fn listen(address: &Address, field: &'static str) -> Result<Self, Error> {
        Self::bind(address).map_err(|source| Error::Listen { address: address.clone(), field, source })
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            #[cfg(unix)]
            Self::Unix(_, file) => Ok(Address::Unix(file.address().clone())),
        }
    }

    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Io>> {
        match self {
            Self::Tcp(listener) => listener.poll_accept(cx).map_ok(|(io, _)| Io::Tcp(io)),
            #[cfg(unix)]
            Self::Unix(listener, _) => listener.poll_accept(cx).map_ok(|(io, _)| Io::Unix(io)),
        }
    }
}

impl Io {
    /// Has small messages not wait for others; that it fails is no reason to do without the connection.
    pub(crate) fn hurry(&self) {
        if let Self::Tcp(io) = self {
            let _ = io.set_nodelay(true);
        }
    }

    /// Where it comes from, of IPv6 the part that is one client's: nowhere, if from this machine.
    pub(crate) fn client(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(io) => match Identity::of_address(io.peer_addr().ok()?.ip()) {
                client if client.is_this_machine() => None,
                Identity::Address(address) => Some(address),
                _ => None,
            },
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }

    /// Says of its client what calls are to know.
    pub(crate) fn tell(&self, into: &mut Extensions) {
        match self {
            Self::Tcp(io) => _ = into.insert(io.connect_info()),
            #[cfg(unix)]
            Self::Unix(io) => _ = into.insert(io.connect_info()),
        }
    }
}

/// The same of whatever it is.
macro_rules! either {
    ($io:expr, $of:ident => $does:expr) => {
        match $io {
            Io::Tcp($of) => $does,
            #[cfg(unix)]
            Io::Unix($of) => $does,
        }
    };
}

impl AsyncRead for Io {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, io => Pin::new(io).poll_read(cx, into))
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(&mut *self, io => Pin::new(io).poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, io => Pin::new(io).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(&mut *self, io => Pin::new(io).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        either!(self, io => io.is_write_vectored())
    }
}

impl axum::serve::Listener for Listener {
    type Io = Io;
    type Addr = Option<Address>;

    async fn accept(&mut self) -> (Io, Option<Address>) {
        // It waits where there is a shortage, and for connections that were over before.
        let io = match self {
            Self::Tcp(listener) => Io::Tcp(axum::serve::Listener::accept(listener).await.0),
            #[cfg(unix)]
            Self::Unix(listener, _) => Io::Unix(axum::serve::Listener::accept(listener).await.0),
        };
        (io, None)
    }

    fn local_addr(&self) -> io::Result<Option<Address>> {
        self.address().map(Some)
    }
}
