//! Writing what is known, once a second, on a thread that nobody waits for.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::relay_core::RelayCore;

/// A commit is synced to the disk, which bears so many.
const EVERY: Duration = Duration::from_secs(1);
/// How many commits a relay makes as it ends.
const LAST: usize = 8;
/// How long they may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The thread, until it is [ended](Self::end).
pub(crate) struct Keeping {
    stop: mpsc::Sender<()>,
    done: oneshot::Receiver<()>,
}

impl Keeping {
    /// Begins to write what a relay knows, if it keeps that anywhere.
    pub(crate) fn of(core: &Arc<RelayCore>) -> Option<Self> {
        core.state()?;
        let ((stop, stopped), (tell, done)) = (mpsc::channel(), oneshot::channel());
        let core = core.clone();
        let run = move || {
            keep(&core, &stopped);
            let _ = tell.send(());
        };
        match thread::Builder::new().name("state".to_owned()).spawn(run) {
            Ok(_) => Some(Self { stop, done }),
            Err(error) => {
                tracing::error!("nothing is kept: {error}");
                None
            }
        }
    }

    /// Writes what is not written yet, if the disk takes it.
    pub(crate) async fn end(self) {
        drop(self.stop);
        if tokio::time::timeout(LAST_WORDS, self.done).await.is_err() {
            tracing::warn!("the last that is known could not be written in time");
        }
    }
}

fn keep(core: &RelayCore, stopped: &mpsc::Receiver<()>) {
    let mut failing = false;
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        save(core, &mut failing);
    }
    for _ in 0..LAST {
        if !save(core, &mut failing) {
            break;
        }
    }
}

/// Whether there is more. It is said when that begins to fail, and when it does no more.
fn save(core: &RelayCore, failing: &mut bool) -> bool {
    match core.save(Instant::now(), SystemTime::now()) {
        Ok(saved) => {
            if std::mem::take(failing) && saved.keys > 0 {
                tracing::info!("what is known is written again");
            }
            saved.more
        }
        Err(error) => {
            if !std::mem::replace(failing, true) {
                tracing::error!("what is known could not be written, which is tried every second: {error}");
            }
            false
        }
    }
}
