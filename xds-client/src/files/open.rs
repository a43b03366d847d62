//! The files that somebody watches, and who looks at them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use super::decode::Decode;
use super::look::Roots;
use super::reading::Reading;
use crate::federation::{DocumentError, Held, OpenDocument};

/// How many files are looked at: whoever writes locators may write many.
const MOST: usize = 4096;

pub(super) struct Open {
    roots: Roots,
    decode: Box<dyn Decode>,
    files: Mutex<Files>,
    /// A file was opened or closed.
    changed: Condvar,
    /// Somebody is looking: no lock, for what he calls may want to look.
    taken: AtomicBool,
}

#[derive(Default)]
struct Files {
    next: u64,
    /// In the order that they were opened in.
    all: BTreeMap<u64, Arc<Watched>>,
    /// A thread looks at them.
    looking: bool,
    /// One was not looked at yet, or there is none any more.
    news: bool,
}

struct Watched {
    path: PathBuf,
    document: OpenDocument,
    looked_at: AtomicBool,
    reading: Mutex<Reading>,
}

/// Which files are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// A file counts as settled by the time between two looks: others are left for theirs.
    New,
}

/// Somebody is at it, until this is dropped.
struct Taken<'a>(&'a AtomicBool);

/// A file that is watched until this is dropped.
pub(super) struct Opened {
    open: Weak<Open>,
    id: u64,
}

impl Open {
    pub(super) fn new(roots: Roots, decode: Box<dyn Decode>) -> Self {
        Self { roots, decode, files: Mutex::default(), changed: Condvar::new(), taken: AtomicBool::default() }
    }

    pub(super) fn roots(&self) -> &[PathBuf] {
        &self.roots.0
    }

    pub(super) fn add(self: &Arc<Self>, path: PathBuf, document: OpenDocument) -> Opened {
        let mut files = self.lock();
        let id = files.next;
        files.next += 1;
        let (looked_at, reading) = (AtomicBool::new(false), Mutex::default());
        files.all.insert(id, Arc::new(Watched { path, document, looked_at, reading }));
        files.news = true;
        drop(files);
        self.changed.notify_all();
        Opened { open: Arc::downgrade(self), id }
    }

    /// Looks at each file once, or at those only that were not looked at yet. While somebody else is at that, it is his to do.
    pub(super) fn look(&self, which: Which, now: Instant) {
        let Some(_taken) = Taken::of(&self.taken) else { return };
        let all: Vec<_> = {
            let mut files = self.lock();
            files.news = false;
            files.all.values().cloned().collect()
        };
        for (at, watched) in all.iter().enumerate() {
            let is_new = !watched.looked_at.swap(true, Ordering::Relaxed);
            if which == Which::New && !is_new {
                continue;
            }
            let outcome = if at < MOST { self.read(watched) } else { Some(Err(too_many())) };
            // Under no lock: those are woken who watch, and whoever was the last may close it.
            if let Some(outcome) = outcome {
                watched.document.tell(outcome, now);
            }
        }
    }

    fn read(&self, watched: &Watched) -> Option<Result<Vec<Held>, DocumentError>> {
        let seen = self.roots.look(&watched.path);
        // Not under its lock: what decodes is anybody's code. There is one who looks.
        let mut reading = std::mem::take(&mut *watched.reading());
        let outcome = reading.look(seen, (&watched.path, &*self.decode), SystemTime::now());
        *watched.reading() = reading;
        outcome
    }

    /// Has a thread look from now on, unless one does, until no file is open.
    pub(super) fn look_every(self: &Arc<Self>, time: Duration) {
        if std::mem::replace(&mut self.lock().looking, true) {
            return;
        }
        let open = self.clone();
        let looks = move || {
            let mut next = now();
            while open.waits(next.saturating_duration_since(now())) {
                let (which, now) = (if now() < next { Which::New } else { Which::All }, now());
                if which == Which::All {
                    next = now + time;
                }
                open.look(which, now);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("xds-files".into()).spawn(looks) {
            self.lock().looking = false;
            tracing::error!("nobody looks at files: {error}");
        }
    }

    /// Waits for so long, or until a file was opened. Whether there is any still.
    fn waits(&self, time: Duration) -> bool {
        let files = self.lock();
        let waited = self.changed.wait_timeout_while(files, time, |files| !files.news && !files.all.is_empty());
        let (mut files, _) = waited.unwrap_or_else(PoisonError::into_inner);
        files.looking = !files.all.is_empty();
        files.looking
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Taken<'a> {
    fn of(taken: &'a AtomicBool) -> Option<Self> {
        (!taken.swap(true, Ordering::Acquire)).then(|| Self(taken))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn too_many() -> DocumentError {
    DocumentError::Unreadable(format!("more than {MOST} files are watched"))
}

impl Drop for Opened {
    fn drop(&mut self) {
        let Some(open) = self.open.upgrade() else { return };
        let closed = open.lock().all.remove(&self.id);
        // Not under the lock: what is told of it may be anybody's.
        drop(closed);
        open.changed.notify_all();
    }
}
