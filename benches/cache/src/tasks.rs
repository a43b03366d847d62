//! Subscribers: tasks on one thread that sleep until they are woken.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use atomic_waker::AtomicWaker;
use tokio::runtime::{Builder, Runtime};

pub struct Tasks {
    runtime: Runtime,
    /// How often a task saw what it was woken for.
    seen: Arc<AtomicUsize>,
    expected: usize,
}

/// Wakes one task: what the streams of the gRPC server have.
#[derive(Clone, Default)]
pub struct Signal(Arc<(AtomicWaker, AtomicBool)>);

impl Signal {
    pub fn wake(&self) {
        self.0.1.store(true, Ordering::Release);
        self.0.0.wake();
    }
}

impl Default for Tasks {
    fn default() -> Self {
        let runtime = Builder::new_current_thread().build().unwrap();
        Self { runtime, seen: Arc::default(), expected: 0 }
    }
}

impl Tasks {
    /// A task that calls `look` whenever its signal wakes it.
    pub fn spawn(&mut self, mut look: impl FnMut() + Send + 'static) -> Signal {
        let signal = Signal::default();
        let (sleeping, seen) = (signal.clone(), self.seen());
        self.runtime.spawn(poll_fn(move |cx| {
            let (waker, due) = &*sleeping.0;
            // Before looking, or a wake between looking and registering is lost.
            waker.register(cx.waker());
            if due.swap(false, Ordering::AcqRel) {
                look();
                seen.fetch_add(1, Ordering::Relaxed);
            }
            Poll::<()>::Pending
        }));
        self.run_until(0);
        signal
    }

    /// A task that counts for itself what it saw.
    pub fn spawn_future(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
        self.run_until(0);
    }

    /// What such a task counts with.
    pub fn seen(&self) -> Arc<AtomicUsize> {
        self.seen.clone()
    }

    /// Runs the tasks until they have seen `more` than before.
    pub fn run_until(&mut self, more: usize) {
        self.expected += more;
        self.runtime.block_on(async {
            // Once around, so that new tasks go to sleep.
            tokio::task::yield_now().await;
            while self.seen.load(Ordering::Relaxed) < self.expected {
                tokio::task::yield_now().await;
            }
        });
    }
}
