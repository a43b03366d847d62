//! A waker that its own task can be deaf to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// Who asks `h2` for room is woken when there is some, though he is told at once: for each update a task would run a second
/// time, and find nothing.
pub(super) struct Doorbell {
    bell: Arc<Bell>,
    /// The bell, as others have it.
    waker: Waker,
}

struct Bell {
    task: Waker,
    unheard: AtomicBool,
}

impl Doorbell {
    /// Rings for this task from now on.
    pub(super) fn wakes(&mut self, task: &Waker) {
        if !self.bell.task.will_wake(task) {
            *self = Self::of(task.clone());
        }
    }

    /// Does something that may ring, and does not hear it. What anybody else rings for is not heard either: look for that
    /// afterwards, once the bell is where it is rung.
    pub(super) fn unheard(&self, act: impl FnOnce()) {
        // Where the bell is put and rung there is a lock, and it orders these.
        self.bell.unheard.store(true, Ordering::Relaxed);
        act();
        self.bell.unheard.store(false, Ordering::Relaxed);
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    fn of(task: Waker) -> Self {
        let bell = Arc::new(Bell { task, unheard: AtomicBool::new(false) });
        Self { waker: Waker::from(bell.clone()), bell }
    }
}

impl Default for Doorbell {
    /// Rings for nobody.
    fn default() -> Self {
        Self::of(Waker::noop().clone())
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.unheard.load(Ordering::Relaxed) {
            self.task.wake_by_ref();
        }
    }
}
