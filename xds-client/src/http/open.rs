//! The documents that somebody watches, and who asks for them.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::look::Watched;
use crate::upstream::now;

/// How many documents are asked for: whoever writes locators may write many.
const MOST: usize = 4096;
/// How many of them at a time.
const AT_A_TIME: usize = 16;

pub(super) struct Open {
    /// Those that are asked for by hand, in the order that they were opened in.
    by_hand: Mutex<ByHand>,
    room: Semaphore,
    turns: Semaphore,
}

#[derive(Default)]
struct ByHand {
    next: u64,
    all: BTreeMap<u64, Arc<Watched>>,
}

/// A document that is asked for by hand until this is dropped.
struct Opened {
    open: Weak<Open>,
    id: u64,
}

/// A document that is asked for by a task until this is dropped.
struct Driven(Option<AbortHandle>);

impl Default for Open {
    fn default() -> Self {
        Self { by_hand: Mutex::default(), room: Semaphore::new(MOST), turns: Semaphore::new(AT_A_TIME) }
    }
}

impl Open {
    /// Asks for those that are asked for by hand and due, one after the other.
    pub(super) async fn look(&self, now: Instant) {
        let all: Vec<_> = self.lock().all.values().cloned().collect();
        for (at, watched) in all.iter().enumerate() {
            match at < MOST {
                true if watched.is_due(now) => watched.ask(|| now).await,
                true => {}
                false => watched.fail(&too_many(), now),
            }
        }
    }

    pub(super) fn add(self: &Arc<Self>, watched: Watched) -> impl Any + Send + Sync + use<> {
        let mut by_hand = self.lock();
        let id = by_hand.next;
        by_hand.next += 1;
        by_hand.all.insert(id, Arc::new(watched));
        Opened { open: Arc::downgrade(self), id }
    }

    /// Has a task ask for it whenever it is due.
    pub(super) fn drive(self: &Arc<Self>, watched: Watched, runtime: Option<Handle>) -> impl Any + Send + Sync + use<> {
        let Some(runtime) = runtime else {
            watched.fail("there is no tokio runtime to ask for it", now());
            return Driven(None);
        };
        Driven(Some(runtime.spawn(drive(watched, self.clone())).abort_handle()))
    }

    fn lock(&self) -> MutexGuard<'_, ByHand> {
        self.by_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn drive(watched: Watched, open: Arc<Open>) {
    let room = match open.room.try_acquire() {
        Ok(room) => Ok(room),
        Err(_) => {
            watched.fail(&too_many(), now());
            open.room.acquire().await
        }
    };
    // Neither of the two is ever closed.
    let Ok(_room) = room else { return };
    while watched.is_wanted() {
        if let Some(due) = watched.due() {
            tokio::time::sleep_until(due.into()).await;
        }
        let Ok(_turn) = open.turns.acquire().await else { return };
        watched.ask(now).await;
    }
}

fn too_many() -> String {
    format!("more than {MOST} documents are watched")
}

impl Drop for Opened {
    fn drop(&mut self) {
        let Some(open) = self.open.upgrade() else { return };
        let closed = open.lock().all.remove(&self.id);
        // Not under the lock: what is told of it may be anybody's.
        drop(closed);
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
