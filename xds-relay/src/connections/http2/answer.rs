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
        Writing { stream, body, said: None, doorbell: Doorbell::default() }.await;
    }
}

/// So much room is kept at most for who waits for it, in bytes: others on his connection wait, too.
const ASKED: usize = 16 * 1024;

/// A body that is written as its client takes it. It is asked for one chunk though there is no room yet: its end takes none, and
/// what bounds a call is in its body. And nobody has room kept for him before he has something to say: that would be missing from
/// the window of the connection, of which some clients give none before all of it was used.
struct Writing {
    stream: SendStream<Bytes>,
    body: Answer,
    /// What has no room yet, and whether it is the last.
    said: Option<(Bytes, bool)>,
    doorbell: Doorbell,
}

impl Writing {
    /// Whether the call goes on, and there is nothing to write before the doorbell rings.
    fn write_what_there_is(&mut self, cx: &mut Context<'_>) -> ControlFlow<()> {
        loop {
            if self.said.is_none() {
                let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                    return ControlFlow::Continue(());
                };
                self.take(frame)?;
            }
            if self.said.is_some() && !self.has_room() {
                return ControlFlow::Continue(());
            }
            if let Some((data, is_last)) = self.said.take() {
                let written = self.stream.send_data(data, is_last);
                if written.is_err() || is_last {
                    return ControlFlow::Break(());
                }
            }
        }
    }

    /// What takes no room is written at once.
    fn take(&mut self, frame: Option<Result<Frame<Bytes>, axum::Error>>) -> ControlFlow<()> {
        // An error here, too: it is over, and there is nobody to tell.
        let _ = match frame {
            None => self.stream.send_data(Bytes::new(), true),
            Some(Err(error)) => {
                tracing::debug!("an answer breaks: {error}");
                self.stream.send_reset(Reason::INTERNAL_ERROR);
                Ok(())
            }
            Some(Ok(frame)) => match frame.into_data().map_err(Frame::into_trailers) {
                Ok(data) => {
                    let is_last = self.body.is_end_stream();
                    if !data.is_empty() {
                        self.said = Some((data, is_last));
                        return ControlFlow::Continue(());
                    }
                    if !is_last {
                        return ControlFlow::Continue(());
                    }
                    self.stream.send_data(data, true)
                }
                Err(Ok(trailers)) => self.stream.send_trailers(trailers),
                // There are no others.
                Err(Err(_)) => return ControlFlow::Continue(()),
            },
        };
        ControlFlow::Break(())
    }

    /// Room for a byte is room for a chunk: the rest is copied out. It is asked for at once, or `h2` would look for it once more.
    fn has_room(&mut self) -> bool {
        let asked = self.said.as_ref().map_or(0, |(data, _)| data.len().min(ASKED));
        self.doorbell.unheard(|| self.stream.reserve_capacity(asked));
        self.stream.capacity() > 0
    }
}

impl Future for Writing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.doorbell.wakes(cx.waker());
        loop {
            if this.write_what_there_is(cx).is_break() {
                return Poll::Ready(());
            }
            if this.stream.poll_reset(&mut this.doorbell.context()).is_ready() {
                return Poll::Ready(());
            }
            // What became room before the doorbell was there has not rung it.
            if this.said.is_none() || this.stream.capacity() == 0 {
                return Poll::Pending;
            }
        }
    }
}
