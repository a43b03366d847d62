//! What the thread that watches waits for.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What wakes the thread. Notifications are not queued: one or many mean the same.
#[derive(Debug, Default)]
pub(super) struct Signal {
    pub(super) raised: Mutex<Raised>,
    condition: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Raised {
    pub(super) changed: bool,
    pub(super) stop: bool,
    /// The thread is over.
    pub(super) ended: bool,
}

pub(super) enum Woken {
    Changed,
    TimedOut,
    Stop,
}

impl Signal {
    pub(super) fn raise(&self, set: impl FnOnce(&mut Raised)) {
        set(&mut self.raised.lock().unwrap_or_else(PoisonError::into_inner));
        self.condition.notify_all();
    }

    pub(super) fn wait(&self, timeout: Duration) -> Woken {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut raised, _) = self
            .condition
            .wait_timeout_while(raised, timeout, |raised| !raised.changed && !raised.stop)
            .unwrap_or_else(PoisonError::into_inner);
        if raised.stop {
            Woken::Stop
        } else if std::mem::take(&mut raised.changed) {
            Woken::Changed
        } else {
            Woken::TimedOut
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).stop
    }

    /// Waits for the thread to be over; false if it is not in time.
    pub(super) fn ends_within(&self, timeout: Duration) -> bool {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(raised, timeout, |raised| !raised.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}
