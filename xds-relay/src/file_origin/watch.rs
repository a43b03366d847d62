//! Noticing that files changed.
//!
//! What is watched is the *directory*: an editor renames a new file over the old one, and Kubernetes swaps the link
//! `..data` that all files of a volume lead through, so a watch on a file would end with its first change. Some file
//! systems (network mounts) report nothing, so the directory is also looked at from time to time. Either way the files
//! are read again, and only other *content* is a change.

mod guard;
mod signal;
mod unfinished;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use self::guard::{Guard, Later};
use self::signal::{Signal, Woken};
use self::unfinished::{Counts, changed, is_half_written};
use super::descriptors::Descriptors;
use super::error::FileError;
use super::glance::Glance;
use super::load::{Directory, Loaded};
use super::resource::FileResource;
use super::served::Served;

/// A running watch of a directory of resources; dropping it ends it.
///
/// A thread of its own reads the files and calls back. Once it is dropped the callback does not begin any more: dropping
/// waits for a callback that is running, unless it is the callback itself that drops, and for what is read of a disk, each for a second at
/// most.
///
/// # Examples
/// ```
/// use std::sync::mpsc;
/// use xds_relay::file_origin::{Descriptors, Watch, load};
///
/// let directory = tempfile::tempdir()?;
/// let descriptors = Descriptors::built_in()?;
/// let mut resources = load(directory.path(), &descriptors)?;
///
/// let (sender, changes) = mpsc::channel();
/// let watch = Watch::start(directory.path(), descriptors, resources.clone(), move |outcome| {
///     let _ = sender.send(outcome);
/// })?;
///
/// let cluster = r#"{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "backend"}"#;
/// std::fs::write(directory.path().join("clusters.json"), format!(r#"{{"resources": [{cluster}]}}"#))?;
/// while resources.is_empty() {
///     match changes.recv()? {
///         Ok(changed) => resources = changed,
///         Err(error) => eprintln!("{error}; going on with what was good"),
///     }
/// }
/// assert_eq!(resources[0].name, "backend");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches `directory`, which need not exist yet.
    ///
    /// `loaded` is what the caller has from it. `on_change` gets what [`load`](super::load()) gives, every time that it is something
    /// else than the time before. After an error the caller keeps what it has; the next outcome is reported even if it
    /// is just that again, so that the error can be forgotten.
    ///
    /// # Errors
    /// The thread cannot be started. A platform without file notification is no error: changes are then noticed within
    /// two seconds.
    pub fn start(
        directory: impl Into<PathBuf>,
        descriptors: Descriptors,
        loaded: Vec<FileResource>,
        on_change: impl FnMut(Result<Vec<FileResource>, FileError>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let directory = Directory::new(directory.into(), descriptors, Served::default());
        Self::start_with(directory, Some(Ok(loaded)), None, at_once(on_change), TIMING)
    }

    /// Watches the directory of an origin: see [`start`](Self::start). It may be bad as this begins, or without files, which does not count. What removes much is told later, and
    /// so is that there is no file as this begins: that it is held is told before.
    pub(crate) fn of(
        directory: Directory,
        loaded: Option<Result<Vec<FileResource>, FileError>>,
        on_change: impl FnMut(Reading) + Send + 'static,
    ) -> std::io::Result<Self> {
        let guard = Guard::new(loaded.as_ref().and_then(|loaded| loaded.as_deref().ok()));
        Self::start_with(directory, loaded, Some(guard), on_change, TIMING)
    }

    fn start_with(
        directory: Directory,
        loaded: Option<Result<Vec<FileResource>, FileError>>,
        guard: Option<Guard>,
        on_change: impl FnMut(Reading) + Send + 'static,
        timing: Timing,
    ) -> std::io::Result<Self> {
        let signal = Arc::new(Signal::default());
        let watcher = DirectoryWatcher {
            directory,
            on_change,
            timing,
            signal: Arc::clone(&signal),
            notifications: None,
            seen: None,
            guard,
            held: None,
            reported: loaded,
            counts: Counts::new(),
        };
        let ending = Ending(Arc::clone(&signal));
        let run = move || {
            let _ending = ending;
            watcher.run();
        };
        let thread = std::thread::Builder::new().name("file-origin".into()).spawn(run)?;
        Ok(Self { signal, thread: Some(thread) })
    }
}

/// What is told of an origin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// This is so from now on.
    Done(Result<Vec<FileResource>, FileError>),
    /// So many resources are gone, or there is no file as it begins: that is not so yet.
    Held { gone: usize },
}

/// Tells what nobody holds.
fn at_once(mut on_change: impl FnMut(Result<Vec<FileResource>, FileError>)) -> impl FnMut(Reading) {
    move |reading| {
        if let Reading::Done(outcome) = reading {
            on_change(outcome);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signal.raise(|raised| raised.stop = true);
        let others = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id());
        let Some(thread) = others else { return };
        if self.signal.ends_within(LAST_READ) {
            // A panic of the callback has been reported by its own thread.
            let _ = thread.join();
        } else {
            tracing::warn!("files are still being read, of a disk that does not answer: nobody waits for that");
        }
    }
}

/// How long who drops a watch waits for what is read at that moment: a network mount may never answer.
const LAST_READ: Duration = Duration::from_secs(1);

/// Says that the thread is over, however that came.
struct Ending(Arc<Signal>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.raise(|raised| raised.ended = true);
    }
}

#[derive(Debug, Clone, Copy)]
struct Timing {
    /// A change counts once nothing further has happened for so long: files are often written in several steps.
    quiet: Duration,
    /// How many times `quiet` one waits for it at most, so that a directory that never rests is read nevertheless.
    rounds: u32,
    /// How often to look without having been notified.
    poll: Duration,
    /// How long a writer may pause in the middle of a file, or between removing it and writing it anew.
    pause: Duration,
    /// What time it is.
    now: fn() -> Instant,
}

const TIMING: Timing = Timing {
    quiet: Duration::from_millis(100),
    rounds: 10,
    poll: Duration::from_secs(2),
    pause: Duration::from_secs(1),
    now: Instant::now,
};

struct DirectoryWatcher<F> {
    directory: Directory,
    on_change: F,
    timing: Timing,
    signal: Arc<Signal>,
    notifications: Option<RecommendedWatcher>,
    seen: Glance,
    /// Nobody has it for whom what is read counts at once.
    guard: Option<Guard>,
    held: Option<Later>,
    /// What was told last, unless that something was held was told since.
    reported: Option<Result<Vec<FileResource>, FileError>>,
    /// When all were good.
    counts: Counts,
}

impl<F: FnMut(Reading)> DirectoryWatcher<F> {
    fn run(mut self) {
        self.subscribe(&BTreeSet::new());
        if !self.reload() {
            return;
        }
        loop {
            match self.signal.wait(self.timing.poll) {
                Woken::Stop => return,
                Woken::Changed => {
                    if !(self.settled(self.timing.quiet) && self.reload()) {
                        return;
                    }
                }
                Woken::TimedOut if self.held.is_some_and(|later| (self.timing.now)() >= later.until) => {
                    if !self.reload() {
                        return;
                    }
                }
                Woken::TimedOut => {
                    if self.directory.glance() != self.seen {
                        // Nobody told: there are no notifications here, or they are for a directory that has since
                        // been replaced by another of this name.
                        self.subscribe(&BTreeSet::new());
                        if !self.reload() {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Waits until nothing happens for so long, or for as many times that as there are rounds; false if it is time to stop.
    fn settled(&mut self, quiet: Duration) -> bool {
        let deadline = Instant::now() + quiet * self.timing.rounds;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.signal.wait(quiet.min(left)) {
                // It may have been a directory that came, and what happens in that counts, too.
                Woken::Changed => self.follow(),
                Woken::TimedOut => return true,
                Woken::Stop => return false,
            }
            if left.is_zero() {
                return true;
            }
        }
    }

    fn subscribe(&mut self, below: &BTreeSet<PathBuf>) {
        let signal = Arc::clone(&self.signal);
        let on_event = move |event: notify::Result<notify::Event>| {
            if !event.is_ok_and(|event| is_reading(event.kind)) {
                signal.raise(|raised| raised.changed = true);
            }
        };
        self.notifications = notify::recommended_watcher(on_event)
            .and_then(|mut watcher| {
                watcher.watch(&self.directory.path, RecursiveMode::NonRecursive)?;
                // One that cannot be watched, or is gone by now, is looked at from time to time.
                for below in below.iter().filter(|below| **below != self.directory.path) {
                    let _ = watcher.watch(below, RecursiveMode::NonRecursive);
                }
                Ok(watcher)
            })
            .ok();
    }

    /// Watches all directories that there are, so that nothing that happens after this is missed: those that came meanwhile,
    /// too, and those in the place of others of their names.
    fn follow(&mut self) {
        if !self.directory.with_directories {
            return;
        }
        let directories = |directory: &Directory| directory.list().map(|listing| listing.directories);
        let mut found = directories(&self.directory);
        for _ in 0..=self.timing.rounds {
            let Ok(below) = &found else { return };
            self.subscribe(below);
            let again = directories(&self.directory);
            if again.is_ok() && again == found {
                return;
            }
            found = again;
        }
    }

    /// Reads the files; false if it is time to stop.
    fn reload(&mut self) -> bool {
        let Some(read) = self.read() else { return false };
        let outcome = read.map(|Loaded { resources, counts, .. }| {
            self.counts = counts;
            resources
        });
        // Nobody waits for it any more who found that it does not come back from a disk.
        if self.signal.is_stopped() {
            return false;
        }
        self.tell(outcome);
        true
    }

    fn tell(&mut self, outcome: Result<Vec<FileResource>, FileError>) {
        let guarded = self.guard.as_mut().zip(outcome.as_ref().ok());
        let later =
            guarded.and_then(|(guard, resources)| guard.hold((resources, self.counts.len()), (self.timing.now)()));
        let before = std::mem::replace(&mut self.held, later);
        if let Some(Later { gone, .. }) = later {
            self.reported = None;
            if before.is_none_or(|before| before.gone != gone) {
                (self.on_change)(Reading::Held { gone });
            }
        } else if self.reported.as_ref() != Some(&outcome) {
            self.reported = Some(outcome.clone());
            (self.on_change)(Reading::Done(outcome));
        }
    }

    /// What the files have, all at one moment, once who writes them is done; none if it is time to stop.
    fn read(&mut self) -> Option<Result<Loaded, FileError>> {
        let deadline = Instant::now() + self.timing.pause * self.timing.rounds;
        let (mut has_waited, mut before) = (false, None);
        loop {
            self.follow();
            let (seen, read, rests) = self.directory.read_while_it_rests();
            self.seen = seen;
            let is_done = || !read.as_ref().is_ok_and(|loaded| self.is_half_written(&loaded.counts));
            // Nobody goes on with it: it is meant to be so, however new a clock says that it is.
            let is_meant = before.as_ref() == Some(&self.seen);
            if (rests && (is_meant || is_done())) || (has_waited && Instant::now() >= deadline) {
                return Some(read);
            }
            before = rests.then(|| self.seen.clone());
            let quiet = if rests { self.timing.pause } else { self.timing.quiet };
            if !self.settled(quiet) {
                return None;
            }
            has_waited = true;
        }
    }

    fn is_half_written(&self, counts: &Counts) -> bool {
        let changed = |file: &Path| changed(file, &self.directory.path);
        is_half_written(self.seen.as_ref(), &changed, &self.counts, counts, self.timing.pause, SystemTime::now())
    }
}

/// Reading the files is reported too, and must not be a reason to read them again.
fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

#[cfg(test)]
mod tests;
