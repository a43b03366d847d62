//! A waker of which its task knows whether it was rung, and to which it can be deaf.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// A task is woken for many things: what waits with this is looked at when it has something to say.
pub(super) struct Doorbell {
    bell: Arc<Bell>,
    /// The bell, as others have it.
    waker: Waker,
}

struct Bell {
    task: Waker,
    rung: AtomicBool,
    unheard: AtomicBool,
}

impl Doorbell {
    /// Rings for this task from now on, and has rung if it did for another.
    pub(super) fn wakes(&mut self, task: &Waker) {
        if !self.bell.task.will_wake(task) {
            *self = Self::of(task.clone());
        }
    }

    /// Whether it has rung since the last look. What waits is to be looked at then.
    pub(super) fn has_rung(&self) -> bool {
        self.bell.rung.swap(false, Ordering::AcqRel)
    }

    /// Does something that may ring, and does not hear it. Who asks `h2` for room is told at once and rung for as well: for each
    /// update a task would run a second time, and find nothing. What somebody else rings for meanwhile is not heard either: look
    /// for that once the bell is again where it is rung.
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
        let bell = Arc::new(Bell { task, rung: AtomicBool::new(true), unheard: AtomicBool::new(false) });
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
            self.rung.store(true, Ordering::Release);
            self.task.wake_by_ref();
        }
    }
}
