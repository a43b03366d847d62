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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[derive(Default)]
    struct Rung(AtomicUsize);

    impl Wake for Rung {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Who was woken and looks at something else first has it rung again.
    #[tokio::test(start_paused = true)]
    async fn it_rings_again_at_another_time_though_nobody_looked_when_it_rang() {
        let rung = Arc::new(Rung::default());
        let waker = Waker::from(rung.clone());
        let (mut cx, second) = (Context::from_waker(&waker), Duration::from_secs(1));
        let mut alarm = Alarm::at(Instant::now() + second);
        assert!(alarm.poll(&mut cx).is_pending());
        for times in 1..4 {
            advance(second).await;
            assert_eq!(rung.0.load(Ordering::Relaxed), times);
            alarm.set(Instant::now() + second);
            assert!(alarm.poll(&mut cx).is_pending());
        }
        advance(second).await;
        assert!(alarm.poll(&mut cx).is_ready());
    }
}
