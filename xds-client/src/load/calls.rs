//! How many calls there were since the last report, and how many are not over.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct Calls {
    issued: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    in_progress: AtomicU64,
}

/// What there is to report of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) issued: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) in_progress: u64,
}

impl Calls {
    pub(super) fn started(&self) {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        self.issued.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn finished(&self, succeeded: bool) {
        // One that was never started is none that is over.
        let _ = self.in_progress.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        let of_outcome = if succeeded { &self.succeeded } else { &self.failed };
        of_outcome.fetch_add(1, Ordering::Relaxed);
    }

    /// They count from nothing then, but for what is not over.
    pub(super) fn take(&self) -> Taken {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Taken {
            issued: take(&self.issued),
            succeeded: take(&self.succeeded),
            failed: take(&self.failed),
            in_progress: self.in_progress.load(Ordering::Relaxed),
        }
    }

    /// What was taken is to be reported with what came since. What is not over is known here, or nobody has it any more.
    pub(super) fn put_back(&self, Taken { issued, succeeded, failed, .. }: Taken) {
        for (count, more) in [(&self.issued, issued), (&self.succeeded, succeeded), (&self.failed, failed)] {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(super) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// Whether there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        [&self.issued, &self.succeeded, &self.failed, &self.in_progress]
            .iter()
            .all(|count| count.load(Ordering::Relaxed) == 0)
    }
}
