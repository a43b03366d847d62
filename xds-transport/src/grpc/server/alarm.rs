//! A timer that is looked at far more often than it rings.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// Wakes a task at a time. To look at it again, from the same task, costs next to nothing.
///
/// ```
/// use std::future::poll_fn;
/// use std::time::Duration;
/// use tokio::time::Instant;
/// use xds_transport::grpc::server::Alarm;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
/// # runtime.block_on(async {
/// let mut alarm = Alarm::at(Instant::now() + Duration::from_secs(5));
/// alarm.set(Instant::now() + Duration::from_secs(3));
/// poll_fn(|cx| alarm.poll(cx)).await;
/// # });
/// ```
#[derive(Debug)]
pub struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// Who is woken, once somebody waits.
    waker: Option<Waker>,
}

impl Alarm {
    /// One that rings at this time.
    pub fn at(time: Instant) -> Self {
        Self { sleep: Box::pin(sleep_until(time)), waker: None }
    }

    /// It rings at this time, and no other.
    pub fn set(&mut self, time: Instant) {
        if self.sleep.deadline() != time {
            self.sleep.as_mut().reset(time);
            self.waker = None;
        }
    }

    /// Ready once its time has come; otherwise the task is woken then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.sleep.is_elapsed() && self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        // A task that had its share of work would not be registered.
        let polled = Pin::new(&mut unconstrained(self.sleep.as_mut())).poll(cx);
        self.waker = polled.is_pending().then(|| cx.waker().clone());
        polled
    }
}
