//! What a client is told in a call.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::Response;
use http_body::{Body, Frame};

use super::doorbell::Doorbell;
use crate::connections::calls::Answer;

/// Answers a call, until its client takes it back.
pub(super) async fn answer(
    mut respond: SendResponse<Bytes>,
    response: impl Future<Output = Result<Response<Answer>, Infallible>>,
) {
    let response = {
        let mut response = pin!(response);
        poll_fn(|cx| match response.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(response.ok()),
            Poll::Pending => respond.poll_reset(cx).map(|_| None),
        })
        .await
    };
    let Some((head, body)) = response.map(Response::into_parts) else { return };
    let is_whole = body.is_end_stream();
    // An error, here and below: the call is over, and there is nobody to tell.
    let Ok(stream) = respond.send_response(Response::from_parts(head, ()), is_whole) else { return };
    if !is_whole {
        Writing { stream, body, said: None, has_room: false, doorbell: Doorbell::default() }.await;
    }
}

/// A body that is written as its client takes it. Where there is no room it is asked once all the same: its end takes none, and
/// what bounds a call is in its body.
struct Writing {
    stream: SendStream<Bytes>,
    body: Answer,
    /// What it said then.
    said: Option<Bytes>,
    /// There was when it was asked for, and nothing was written since.
    has_room: bool,
    doorbell: Doorbell,
}

impl Writing {
    /// Room for a byte is room for a chunk: the rest is copied out.
    fn has_room(&mut self) -> bool {
        if !self.has_room {
            self.doorbell.unheard(|| self.stream.reserve_capacity(1));
            self.has_room = self.stream.capacity() > 0;
        }
        self.has_room
    }

    /// What the body says next, if it may be asked.
    fn poll_said(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.said.take() {
            Some(data) if self.has_room => Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(data) => {
                self.said = Some(data);
                Poll::Pending
            }
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }

    fn write(&mut self, frame: Option<Result<Frame<Bytes>, axum::Error>>) -> ControlFlow<()> {
        let had_room = std::mem::take(&mut self.has_room);
        let (written, ends) = match frame {
            None => (self.stream.send_data(Bytes::new(), true), true),
            Some(Err(error)) => {
                tracing::debug!("an answer breaks: {error}");
                self.stream.send_reset(Reason::INTERNAL_ERROR);
                return ControlFlow::Break(());
            }
            Some(Ok(frame)) => match frame.into_data().map_err(Frame::into_trailers) {
                Ok(data) => {
                    let ends = self.body.is_end_stream();
                    match data.is_empty() {
                        // It says nothing, and nothing keeps a body from saying it for ever.
                        true if !ends => return ControlFlow::Continue(()),
                        false if !had_room => {
                            self.said = Some(data);
                            return ControlFlow::Continue(());
                        }
                        _ => (self.stream.send_data(data, ends), ends),
                    }
                }
                Err(Ok(trailers)) => (self.stream.send_trailers(trailers), true),
                // There are no others.
                Err(Err(_)) => return ControlFlow::Continue(()),
            },
        };
        if written.is_err() || ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Future for Writing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.doorbell.wakes(cx.waker());
        loop {
            let has_room = this.has_room();
            if let Poll::Ready(frame) = this.poll_said(cx) {
                if this.write(frame).is_break() {
                    return Poll::Ready(());
                }
                continue;
            }
            if this.stream.poll_reset(&mut this.doorbell.context()).is_ready() {
                return Poll::Ready(());
            }
            // What became room before the doorbell was there has not rung it.
            if has_room || this.stream.capacity() == 0 {
                return Poll::Pending;
            }
        }
    }
}
