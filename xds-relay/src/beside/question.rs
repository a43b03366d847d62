//! What a client asks in a call beside discovery, which it may not put off for ever.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use super::Counted;

/// Counts the call that a question is of.
pub(super) type Counting = Box<dyn FnOnce() -> Result<Counted, Status> + Send>;

/// How long it may take, and what becomes of it then.
pub(super) struct Patience {
    within: Duration,
    over: Box<dyn Fn() -> Status + Send>,
}

/// The body of a request.
pub(super) struct Question {
    body: Body,
    patience: Option<Patience>,
    /// From when it has to be waited for.
    waiting: Option<Pin<Box<Sleep>>>,
    is_whole: bool,
    count: Option<Counting>,
    counted: Option<Counted>,
}

impl Patience {
    pub(super) fn new(within: Duration, over: impl Fn() -> Status + Send + 'static) -> Self {
        Self { within, over: Box::new(over) }
    }
}

impl Question {
    /// One that begins in time.
    pub(super) fn begun(body: Body, patience: Patience) -> Self {
        Self { body, patience: Some(patience), waiting: None, is_whole: false, count: None, counted: None }
    }

    /// One that is over in time, and counts while it is waited for: mostly it came with its call.
    pub(super) fn whole(body: Body, patience: Patience, count: Counting) -> Self {
        Self { is_whole: true, count: Some(count), ..Self::begun(body, patience) }
    }

    fn has_come(&mut self) {
        (self.patience, self.waiting, self.count, self.counted) = (None, None, None, None);
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        if let Some(count) = self.count.take() {
            match count() {
                Ok(counted) => self.counted = Some(counted),
                Err(status) => return Poll::Ready(status),
            }
        }
        let Some(patience) = &self.patience else { return Poll::Pending };
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience.within)));
        waiting.as_mut().poll(cx).map(|()| (patience.over)())
    }
}

impl http_body::Body for Question {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            let late = this.poll_late(cx);
            return late.map(|status| {
                this.has_come();
                Some(Err(status.into()))
            });
        };
        let is_some = matches!(&frame, Some(Ok(frame)) if frame.data_ref().is_some_and(|data| !data.is_empty()));
        if !this.is_whole && is_some || frame.is_none() || this.body.is_end_stream() {
            this.has_come();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
