//! HTTP on the connections of clients, from the first byte to the last.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use bytes::Bytes;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;
use tower_service::Service;

use crate::config::Limits;

/// As gRPC's own do. Clients may ping as often as they like (rule 137).
const KEEPALIVE: Duration = Duration::from_secs(300);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of the requests of a stream may be under way, in bytes: hyper's default.
const STREAM_WINDOW: u32 = 1 << 20;
/// How many streams of a connection may be stuck, with all that fits into their windows, before the others are: load reports
/// are read when their origin reads them.
const UNREAD_STREAMS: u32 = 100;
/// How much of what a stream is told is copied out before its client takes it, in bytes, but for the chunk that exceeds it.
const UNSENT: usize = 16 << 10;

/// Serves what comes until `stop` resolves, and then until every connection is over. A call knows its connection: what that
/// says of itself is among the extensions of the request.
pub(crate) async fn serve<I>(
    limits: &Limits,
    router: Router,
    incoming: impl Stream<Item = io::Result<I>>,
    stop: impl Future<Output = ()>,
) where
    I: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let http = http(limits);
    let open = GracefulShutdown::new();
    {
        // Dropped before the connections end: who comes later is refused, and does not wait.
        let (mut incoming, mut stop) = (std::pin::pin!(incoming), std::pin::pin!(stop));
        loop {
            let io = tokio::select! {
                () = &mut stop => break,
                io = incoming.next() => io,
            };
            let io = match io {
                Some(Ok(io)) => io,
                Some(Err(error)) => {
                    tracing::debug!("a connection is not accepted: {error}");
                    continue;
                }
                None => break,
            };
            let calls = OfOne { router: router.clone(), connection: io.connect_info() };
            let connection = http.serve_connection(TokioIo::new(io), TowerToHyperService::new(calls)).into_owned();
            // A task that moves what it awaits has room for it twice.
            let connection = Box::pin(open.watch(connection));
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!("a connection failed: {error}");
                }
            });
        }
    }
    open.shutdown().await;
}

fn http(limits: &Limits) -> Builder<TokioExecutor> {
    // HTTP/1 for an answer that says what is wrong: gRPC needs HTTP/2, REST polling does not.
    let mut http = Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new());
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW * UNREAD_STREAMS)
        .max_concurrent_streams(limits.streams_per_connection)
        .max_send_buf_size(UNSENT);
    http
}

/// The calls of one connection.
#[derive(Clone)]
struct OfOne<C> {
    router: Router,
    connection: C,
}

impl<C, B> Service<Request<B>> for OfOne<C>
where
    C: Clone + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<B>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.connection.clone());
        self.router.call(request)
    }
}

#[cfg(test)]
mod tests;
