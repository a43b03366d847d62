//! HTTP on the connections of clients, from the first byte to the last.

mod begun;
mod http2;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use bytes::Bytes;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;
use tower_service::Service;

use self::begun::Begun;
use crate::config::Limits;

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
    let settings = http2::settings(limits);
    let (stopped, stopping) = watch::channel(false);
    {
        // Dropped before the connections end: who comes later is refused, and does not wait.
        let (mut incoming, mut stop) = (pin!(incoming), pin!(stop));
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
            // A task that moves what it awaits has room for it twice.
            let connection = Box::pin(serve_one(settings.clone(), io, calls, stopping.clone()));
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!("a connection failed: {error}");
                }
            });
        }
    }
    drop(stopping);
    let _ = stopped.send(true);
    // Each connection has a receiver until it is over.
    stopped.closed().await;
}

async fn serve_one<I, C>(
    settings: h2::server::Builder,
    io: I,
    calls: OfOne<C>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), axum::BoxError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    C: Clone + Send + Sync + 'static,
{
    let begun = tokio::select! {
        begun = Begun::read(io) => begun?,
        _ = stopping.wait_for(|stop| *stop) => None,
    };
    let stop = async { drop(stopping.wait_for(|stop| *stop).await) };
    match begun {
        Some(io) if io.is_http2() => Ok(http2::serve(settings, io, calls, stop).await?),
        Some(io) => serve_http1(io, calls, stop).await,
        None => Ok(()),
    }
}

/// HTTP/1 for an answer that says what is wrong: gRPC needs HTTP/2, REST polling does not.
async fn serve_http1<I, C>(io: Begun<I>, calls: OfOne<C>, stop: impl Future<Output = ()>) -> Result<(), axum::BoxError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    C: Clone + Send + Sync + 'static,
{
    let mut http1 = auto::Builder::new(TokioExecutor::new()).http1_only();
    http1.http1().timer(TokioTimer::new());
    let mut serving = pin!(http1.serve_connection(TokioIo::new(io), TowerToHyperService::new(calls)));
    tokio::select! {
        served = &mut serving => return served,
        () = stop => {}
    }
    serving.as_mut().graceful_shutdown();
    serving.await
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
