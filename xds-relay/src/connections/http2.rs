//! HTTP/2 on one connection, on `h2` alone: a task for the connection, and one for each of its calls. What every update
//! costs a client is mostly this, so that nothing is woken or asked twice.

mod answer;
mod doorbell;
mod liveness;
mod requests;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use super::begun::Begun;
use super::calls::Answer;
use crate::config::Limits;
use answer::answer;
use doorbell::Doorbell;
pub(super) use liveness::Liveness;
pub(super) use requests::Requests;

/// How much of the requests of a stream may be under way, in bytes.
const STREAM_WINDOW: u32 = 128 << 10;
/// How many streams of a connection may be stuck, with all that fits into their windows, before the others are: load reports
/// are read when their origin reads them.
const UNREAD_STREAMS: u32 = 100;
/// How much of short frames may wait to be read, as `h2` counts them: it keeps the room that they had as long as the connection.
const SHORT_FRAMES: usize = 2 << 20;
/// How much of what a stream is told is copied out before its client takes it, in bytes, but for the chunk that exceeds it.
pub(super) const UNSENT: usize = 16 << 10;
/// How long the headers of a request may be, in bytes, as HTTP/2 counts them.
const MAX_HEADERS: u32 = 16 << 10;

pub(super) fn settings(limits: &Limits) -> Builder {
    let mut settings = Builder::new();
    settings
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW * UNREAD_STREAMS)
        .data_frame_budget(SHORT_FRAMES)
        .max_concurrent_streams(limits.streams_per_connection)
        .max_header_list_size(MAX_HEADERS)
        .max_send_buffer_size(UNSENT);
    settings
}

/// Serves calls until the client ends the connection or does not answer, or `idle` resolves; once `stop` does, those that are
/// open, and no more.
///
/// # Errors
/// The connection breaks, or the client breaks the protocol.
pub(super) async fn serve<I, S>(
    http2: &mut Connection<Box<Begun<I>>, Bytes>,
    mut calls: S,
    mut liveness: Liveness,
    mut stop: Pin<&mut impl Future<Output = ()>>,
    mut idle: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), h2::Error>
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Requests>, Response = Response<Answer>, Error = Infallible>,
    S::Future: Send + 'static,
{
    let (mut stopped, mut doorbell) = (false, Doorbell::default());
    loop {
        let call = poll_fn(|cx| {
            doorbell.wakes(cx.waker());
            // These seldom have something to say, and the connection is looked at for every frame.
            if doorbell.has_rung() {
                let cx = &mut doorbell.context();
                if !stopped && stop.as_mut().poll(cx).is_ready() {
                    stopped = true;
                    http2.graceful_shutdown();
                }
                if liveness.poll_dead(http2, cx).is_ready() {
                    // To say more would be in vain.
                    return Poll::Ready(None);
                }
                if idle.as_mut().poll(cx).is_ready() {
                    // A call that is under way just now was not looked at, and its client may make it elsewhere if it
                    // knows. Nobody waits for who does not read.
                    http2.abrupt_shutdown(Reason::NO_ERROR);
                    let _ = http2.poll_closed(cx);
                    return Poll::Ready(None);
                }
            }
            if liveness.is_flooded() {
                tracing::debug!("a client changes its settings all the time");
                http2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                let _ = http2.poll_closed(cx);
                return Poll::Ready(None);
            }
            http2.poll_accept(cx)
        });
        let Some(call) = call.await else { return Ok(()) };
        let (request, respond) = call?;
        // A router is always ready.
        tokio::spawn(answer(respond, calls.call(request.map(Requests))));
    }
}
