//! Writing what is known, once a second, on a thread that nobody waits for.

use std::io;
use std::pin::Pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::state::saver::Saved;
use crate::state::store::StoreError;

/// A commit is synced to the disk, which bears so many.
const EVERY: Duration = Duration::from_secs(1);
/// How many commits are made when all is to be written.
const MOST: usize = 8;
/// How long they may take as a program ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The thread, until it is [ended](Self::end) or dropped: then it writes what is not written yet.
pub struct Keeping {
    orders: mpsc::Sender<oneshot::Sender<()>>,
    ended: oneshot::Receiver<()>,
    thread: ThreadId,
}

impl Keeping {
    /// Begins to write. `save` writes what changed since the last time, as [`State::keep`](crate::state::State::keep) does.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(save: impl Fn(Instant, SystemTime) -> Result<Saved, StoreError> + Send + 'static) -> io::Result<Self> {
        let ((orders, received), (tell, ended)) = (mpsc::channel(), oneshot::channel());
        let run = move || {
            keep(&save, |time| received.recv_timeout(time));
            let _ = tell.send(());
        };
        let thread = thread::Builder::new().name("state".to_owned()).spawn(run)?.thread().id();
        Ok(Self { orders, ended, thread })
    }

    /// Writes all that is known now. Whether that was tried: it is not, when the thread has failed, or is the one that waits,
    /// as in a store of a program's own.
    pub async fn flush(&self) -> bool {
        if thread::current().id() == self.thread {
            return false;
        }
        let (tell, told) = oneshot::channel();
        self.orders.send(tell).is_ok() && told.await.is_ok()
    }

    /// The same where there is no runtime, or nothing if it takes longer than this: a thread has the time.
    pub(crate) async fn flush_within(&self, patience: Duration) -> Option<bool> {
        let ((flushed, waits), (tell, mut late)) = (mpsc::channel::<()>(), oneshot::channel());
        let wait = move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let _ = tell.send(());
            }
        };
        // Without it there would be no end to the wait.
        if thread::Builder::new().name("state-flush".to_owned()).spawn(wait).is_err() {
            return Some(false);
        }
        let mut flush = std::pin::pin!(self.flush());
        let is_flushed = std::future::poll_fn(|cx| match flush.as_mut().poll(cx) {
            Poll::Ready(is_flushed) => Poll::Ready(Some(is_flushed)),
            Poll::Pending => Pin::new(&mut late).poll(cx).map(|_| None),
        });
        let is_flushed = is_flushed.await;
        drop(flushed);
        is_flushed
    }

    /// Writes what is not written yet, if the disk takes it soon.
    pub async fn end(self) {
        drop(self.orders);
        if tokio::time::timeout(LAST_WORDS, self.ended).await.is_err() {
            tracing::warn!("the last that is known could not be written in time");
        }
    }
}

/// Saves once, and then each time that nobody orders it for so long: `ordered` waits for that.
fn keep(
    save: &impl Fn(Instant, SystemTime) -> Result<Saved, StoreError>,
    mut ordered: impl FnMut(Duration) -> Result<oneshot::Sender<()>, RecvTimeoutError>,
) {
    let mut failing = false;
    let mut save_all = |most| {
        for _ in 0..most {
            if !save_once(save, &mut failing) {
                break;
            }
        }
    };
    save_all(1);
    loop {
        match ordered(EVERY) {
            Err(RecvTimeoutError::Timeout) => save_all(1),
            Ok(tell) => {
                save_all(MOST);
                let _ = tell.send(());
            }
            Err(RecvTimeoutError::Disconnected) => return save_all(MOST),
        }
    }
}

/// Whether there is more. It is said when that begins to fail, and when it does no more.
fn save_once(save: &impl Fn(Instant, SystemTime) -> Result<Saved, StoreError>, failing: &mut bool) -> bool {
    match save(Instant::now(), SystemTime::now()) {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::state::{
        Commit, Compare, Identities, KeptChange, KeptValue, Listing, Memory, Op, Revision, State, Store, Watch,
    };

    /// A store that says when it was written to, by a clock in milliseconds.
    #[derive(Clone, Default)]
    struct Timed {
        inner: Memory,
        clock: Arc<AtomicU64>,
        commits: Arc<Mutex<Vec<u64>>>,
    }

    impl Store for Timed {
        fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
            self.inner.list(prefix)
        }

        fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
            self.inner.watch(prefix, after)
        }

        fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
            self.commits.lock().unwrap().push(self.clock.load(Ordering::Relaxed));
            self.inner.commit(ops, compares)
        }
    }

    /// In the time of the test something else is known each millisecond.
    #[test]
    fn what_changes_all_the_time_is_committed_once_a_second() {
        let (store, now, wall) = (Timed::default(), Instant::now(), SystemTime::now());
        let identities = Identities::new(vec![None], None, String::new());
        let state = State::open(store.clone(), identities, None, now, wall).unwrap();
        let values = state.keep_values(0, &["x"], "x", |_| {});
        let change = |at: u64| {
            let value = KeptValue::new(at.to_string(), "");
            values.change([("k".to_owned(), KeptChange::Put(value))]);
        };
        change(0);
        store.commits.lock().unwrap().clear();
        let nobody_orders = |time: Duration| {
            let until = store.clock.load(Ordering::Relaxed) + u64::try_from(time.as_millis()).unwrap();
            while store.clock.load(Ordering::Relaxed) < until.min(5000) {
                change(store.clock.fetch_add(1, Ordering::Relaxed) + 1);
            }
            Err(if until < 5000 { RecvTimeoutError::Timeout } else { RecvTimeoutError::Disconnected })
        };
        keep(&|_, _| state.keep(&[], now, wall), nobody_orders);
        assert_eq!(*store.commits.lock().unwrap(), [0, 1000, 2000, 3000, 4000, 5000]);
        let kept = store.list("xds-relay/v1/value/").unwrap().entries;
        assert!(kept.iter().any(|entry| entry.value.windows(4).any(|part| part == b"5000")), "{kept:?}");
    }

    #[test]
    fn what_is_written_may_ask_for_that_itself_and_end_it() {
        let (keeping, (tell, told)) = (Arc::<Mutex<Option<Keeping>>>::default(), mpsc::channel());
        let own = keeping.clone();
        let save = move |_, _| {
            if let Some(keeping) = own.lock().unwrap().take() {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                tell.send(runtime.block_on(keeping.flush())).unwrap();
                drop(keeping);
            }
            Ok(Saved::default())
        };
        let mut waits = keeping.lock().unwrap();
        *waits = Some(Keeping::start(save).unwrap());
        drop(waits);
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(false));
    }
}
