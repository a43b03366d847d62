//! The connections of clients, from the first byte to the last: HTTP on each, and how long it may take to begin and be without a
//! call.

mod begun;
mod calls;
mod http2;
mod portion;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::{BoxError, Router};
use http::Extensions;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::TcpConnectInfo;
use xds_transport::grpc::server::ClientCertificate;
use xds_transport::grpc::tls::HandshakeError;

use self::begun::Begun;
use self::calls::{Calls, OfOne};
pub(crate) use self::calls::{Limited, OpenCalls};
use self::http2::Liveness;
use crate::config::Limits;
use crate::seats::{Place, Seat};
use crate::socket::Io;
use crate::tls;

/// How long the headers of a request of HTTP/1 may be, in bytes: as long as those of HTTP/2.
const HTTP1_HEADERS: usize = 16 << 10;

/// Bytes from and to a client.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Says of the client what calls are to know.
    fn tell(&self, into: &mut Extensions);
}

impl Connection for Io {
    fn tell(&self, into: &mut Extensions) {
        Self::tell(self, into);
    }
}

/// What connections are served with.
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) limits: Limits,
    pub(crate) limited: Limited,
    pub(crate) open: OpenCalls,
    /// In clear text without it.
    pub(crate) tls: Option<Arc<tls::Downstream>>,
}

impl Serving {
    /// Serves what comes until `stop` resolves, and then until every connection is over. Each has its seat as long as that, or until it
    /// is to give it away, and a call knows what the connection says of itself: it is among the extensions of the request.
    pub(crate) async fn serve<I: Connection>(
        self,
        incoming: impl Stream<Item = io::Result<(I, Seat)>>,
        stop: impl Future<Output = ()>,
    ) {
        let serving = Arc::new(self);
        let (stopped, stopping) = watch::channel(false);
        {
            // Dropped before the connections end: who comes later is refused, and does not wait.
            let (mut incoming, mut stop) = (pin!(incoming), pin!(stop));
            loop {
                let io = tokio::select! {
                    () = &mut stop => break,
                    io = incoming.next() => io,
                };
                let (io, seat) = match io {
                    Some(Ok(connection)) => connection,
                    Some(Err(error)) => {
                        tracing::debug!("a connection is not accepted: {error}");
                        continue;
                    }
                    None => break,
                };
                let (serving, stopping) = (serving.clone(), stopping.clone());
                // A task that moves what it awaits has room for it twice.
                let place = seat.place();
                let connection = Box::pin(serving.connection(io, place, stopping));
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!("a connection failed: {error}");
                    }
                    drop(seat);
                });
            }
        }
        drop(stopping);
        let _ = stopped.send(true);
        // Each connection has a receiver until it is over.
        stopped.closed().await;
    }

    async fn connection<I: Connection>(
        self: Arc<Self>,
        io: I,
        place: Place,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), BoxError> {
        let until = Instant::now() + self.limits.preface;
        let mut client = Extensions::new();
        io.tell(&mut client);
        let Some(tls) = &self.tls else { return self.speak(io, client, (until, place), stopping).await };
        // What is spoken to in clear text has no room for any of it.
        let securing = Box::pin(self.secure(tls, io, &client, until, stopping.clone()));
        let secured = tokio::select! {
            secured = securing => secured,
            () = poll_fn(|cx| place.poll_leave(cx)) => return Ok(()),
        };
        let Some(io) = secured else { return Ok(()) };
        let shown = io.get_ref().1.peer_certificates().and_then(own);
        shown.and_then(|shown| client.insert(shown));
        Box::pin(self.speak(io, client, (until, place), stopping)).await
    }

    /// What is secure from now on, unless it does not come to that.
    async fn secure<I: Connection>(
        &self,
        tls: &tls::Downstream,
        io: I,
        client: &Extensions,
        until: Instant,
        mut stopping: watch::Receiver<bool>,
    ) -> Option<Box<TlsStream<I>>> {
        let secured = tokio::select! {
            secured = timeout_at(until, tls.accept(io)) => secured,
            _ = stopping.wait_for(|stop| *stop) => return None,
        };
        match secured {
            Ok(Ok(io)) => return Some(Box::new(io)),
            Ok(Err(error)) => {
                let peer = client.get().and_then(TcpConnectInfo::remote_addr);
                let client = peer.map_or_else(|| "a client".to_owned(), |peer| peer.to_string());
                tracing::warn!("no TLS with {client}: {}", HandshakeError::from(error));
            }
            Err(_) => (self.limited)("preface"),
        }
        None
    }

    /// What was said first, unless it is not said in time, or nothing is to be said any more.
    async fn begin<I: AsyncRead + Unpin>(
        &self,
        io: I,
        until: Instant,
        place: &Place,
        mut stopping: watch::Receiver<bool>,
    ) -> io::Result<Option<Box<Begun<I>>>> {
        tokio::select! {
            begun = timeout_at(until, Begun::read(io)) => begun.unwrap_or_else(|_| {
                (self.limited)("preface");
                Ok(None)
            }),
            _ = stopping.wait_for(|stop| *stop) => Ok(None),
            () = poll_fn(|cx| place.poll_leave(cx)) => Ok(None),
        }
    }

    /// HTTP on a connection that is as secure as it is to be; it is to begin in time.
    async fn speak<I>(
        &self,
        io: I,
        client: Extensions,
        (until, place): (Instant, Place),
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), BoxError>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let calls =
            Calls::new(self.limits.streams_per_connection, self.limited.clone(), self.open.clone(), place.clone());
        let of_one = OfOne::new(self.router.clone(), client, calls.clone());
        // It is over soon, and so is its room.
        let begun = Box::pin(self.begin(io, until, &place, stopping.clone()));
        let Some(io) = begun.await? else { return Ok(()) };
        if self.tls.is_none() && io.is_tls() {
            tracing::warn!(
                "a client speaks TLS, and is not understood: without `tls` clients are spoken to in clear text"
            );
        }
        let mut stop = pin!(async { drop(stopping.wait_for(|stop| *stop).await) });
        let mut idle = pin!(async {
            tokio::select! {
                () = calls.none_for(self.limits.first_request) => (self.limited)("first_request"),
                () = poll_fn(|cx| place.poll_leave(cx)) => {}
            }
        });
        // Each has room of its own, and the other's is not kept.
        if io.is_http2() {
            let liveness = Liveness::new(io.heard());
            let handshake = Box::pin(http2::settings(&self.limits).handshake(io));
            let mut http2 = tokio::select! {
                // All that it reads was read: only who takes not even the first frame has it wait.
                biased;
                http2 = handshake => Box::new(http2?),
                () = &mut stop => return Ok(()),
                () = &mut idle => return Ok(()),
            };
            Ok(Box::pin(http2::serve(&mut http2, of_one, liveness, stop, idle)).await?)
        } else {
            let served = Box::pin(serve_http1(io, of_one, self.limits.preface, stop, idle)).await;
            if served.as_ref().is_err_and(|error| is_late(&**error)) {
                (self.limited)("preface");
            }
            served
        }
    }
}

/// The certificate that is a client's own: those that vouch for it may be many, and TLS keeps all of them already.
fn own(chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
    ClientCertificate::new(chain.first().map(|own| own.to_vec()))
}

/// Whether the headers of a request were not whole in time.
fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(hyper::Error::is_timeout)
}

/// HTTP/1 for an answer that says what is wrong: gRPC needs HTTP/2, REST polling does not.
async fn serve_http1<I>(
    io: Box<Begun<I>>,
    calls: OfOne,
    patience: Duration,
    stop: Pin<&mut impl Future<Output = ()>>,
    mut idle: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), BoxError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http1 = auto::Builder::new(TokioExecutor::new()).http1_only();
    http1.http1().timer(TokioTimer::new()).max_buf_size(HTTP1_HEADERS).header_read_timeout(patience);
    let mut serving = pin!(http1.serve_connection(TokioIo::new(io), TowerToHyperService::new(calls)));
    tokio::select! {
        served = &mut serving => return served,
        () = &mut idle => return Ok(()),
        () = stop => {}
    }
    serving.as_mut().graceful_shutdown();
    tokio::select! {
        served = serving => served,
        () = idle => Ok(()),
    }
}

#[cfg(test)]
mod tests;
