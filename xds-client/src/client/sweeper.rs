//! Streams that nobody watches anything of are closed after a while.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::federation::Federation;

/// Who does that, until this is dropped.
pub(super) struct Sweeper {
    left: Arc<Notify>,
    task: AbortHandle,
}

impl Sweeper {
    /// None outside of a runtime.
    pub(super) fn start(federation: &Arc<Federation>, idle: Duration) -> Option<Self> {
        let left = Arc::new(Notify::new());
        let sweeping = sweep(Arc::downgrade(federation), left.clone(), idle);
        let task = Handle::try_current().ok()?.spawn(sweeping).abort_handle();
        Some(Self { left, task })
    }

    /// Something may be left that nobody watches.
    pub(super) fn left(&self) {
        self.left.notify_one();
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn sweep(federation: Weak<Federation>, left: Arc<Notify>, idle: Duration) {
    loop {
        left.notified().await;
        let mut swept = false;
        while !swept {
            sleep(idle).await;
            let Some(federation) = federation.upgrade() else { return };
            federation.sweep(Instant::now().into_std());
            swept = federation.is_swept();
        }
    }
}
