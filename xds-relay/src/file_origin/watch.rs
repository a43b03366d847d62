//! Noticing that files changed.
//!
//! What is watched is the *directory*: an editor renames a new file over the old one, and Kubernetes swaps the link
//! `..data` that all files of a volume lead through, so a watch on a file would end with its first change. Some file
//! systems (network mounts) report nothing, so the directory is also looked at from time to time. Either way the files
//! are read again, and only other *content* is a change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::load::{Directory, Loaded, files};
use super::served::Served;
use super::{Descriptors, FileError, FileResource};

/// A running watch of a directory of resources; dropping it ends it.
///
/// A thread of its own reads the files and calls back. Once it is dropped the callback does not run any more: dropping
/// waits for a callback that is running, unless it is the callback itself that drops.
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
        Self::start_with(
            Directory { path: directory.into(), descriptors, served: Served::default() },
            loaded,
            on_change,
            TIMING,
        )
    }

    /// Watches the directory of an origin: see [`start`](Self::start).
    pub(crate) fn of(
        directory: Directory,
        loaded: Vec<FileResource>,
        on_change: impl FnMut(Result<Vec<FileResource>, FileError>) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with(directory, loaded, on_change, TIMING)
    }

    fn start_with(
        directory: Directory,
        loaded: Vec<FileResource>,
        on_change: impl FnMut(Result<Vec<FileResource>, FileError>) + Send + 'static,
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
            reported: Ok(loaded),
            counts: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("file-origin".into()).spawn(|| watcher.run())?;
        Ok(Self { signal, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signal.raise(|raised| raised.stop = true);
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic of the callback has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Timing {
    /// A change counts once nothing further has happened for so long: files are often written in several steps.
    quiet: Duration,
    /// How often `quiet` may start again, so that a directory that never rests is read nevertheless.
    rounds: u32,
    /// How often to look without having been notified.
    poll: Duration,
    /// How long a writer may pause in the middle of a file.
    pause: Duration,
}

const TIMING: Timing = Timing {
    quiet: Duration::from_millis(100),
    rounds: 10,
    poll: Duration::from_secs(2),
    pause: Duration::from_secs(1),
};

/// What wakes the thread. Notifications are not queued: one or many mean the same.
#[derive(Debug, Default)]
struct Signal {
    raised: Mutex<Raised>,
    condition: Condvar,
}

#[derive(Debug, Default)]
struct Raised {
    changed: bool,
    stop: bool,
}

enum Woken {
    Changed,
    TimedOut,
    Stop,
}

impl Signal {
    fn raise(&self, set: impl FnOnce(&mut Raised)) {
        set(&mut self.raised.lock().unwrap_or_else(PoisonError::into_inner));
        self.condition.notify_all();
    }

    fn wait(&self, timeout: Duration) -> Woken {
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
}

/// What can be seen of the files without reading them: sizes and times; `None` where the directory is missing.
type Glance = Option<Seen>;

/// The length of each file, and when it was written, where that is known.
type Seen = BTreeMap<PathBuf, Option<(u64, Option<SystemTime>)>>;

struct DirectoryWatcher<F> {
    directory: Directory,
    on_change: F,
    timing: Timing,
    signal: Arc<Signal>,
    notifications: Option<RecommendedWatcher>,
    seen: Glance,
    reported: Result<Vec<FileResource>, FileError>,
    /// How many resources each file held when all were good.
    counts: BTreeMap<PathBuf, usize>,
}

impl<F: FnMut(Result<Vec<FileResource>, FileError>)> DirectoryWatcher<F> {
    fn run(mut self) {
        self.subscribe();
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
                Woken::TimedOut => {
                    if glance(&self.directory.path) != self.seen {
                        // Nobody told: there are no notifications here, or they are for a directory that has since
                        // been replaced by another of this name.
                        self.subscribe();
                        if !self.reload() {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Waits until nothing happens for so long; false if it is time to stop.
    fn settled(&self, quiet: Duration) -> bool {
        for _ in 0..self.timing.rounds {
            match self.signal.wait(quiet) {
                Woken::Changed => {}
                Woken::TimedOut => return true,
                Woken::Stop => return false,
            }
        }
        true
    }

    fn subscribe(&mut self) {
        let signal = Arc::clone(&self.signal);
        let on_event = move |event: notify::Result<notify::Event>| {
            if !event.is_ok_and(|event| is_reading(event.kind)) {
                signal.raise(|raised| raised.changed = true);
            }
        };
        self.notifications = notify::recommended_watcher(on_event)
            .and_then(|mut watcher| {
                watcher.watch(&self.directory.path, RecursiveMode::NonRecursive)?;
                Ok(watcher)
            })
            .ok();
    }

    /// Reads the files; false if it is time to stop.
    fn reload(&mut self) -> bool {
        let mut read = self.read();
        if let Ok(loaded) = &read
            && is_half_written(self.seen.as_ref(), &self.counts, &loaded.counts, self.timing.pause, SystemTime::now())
        {
            if !self.settled(self.timing.pause) {
                return false;
            }
            read = self.read();
        }
        let outcome = read.map(|Loaded { resources, counts }| {
            self.counts = counts;
            resources
        });
        if outcome != self.reported {
            self.reported.clone_from(&outcome);
            (self.on_change)(outcome);
        }
        true
    }

    fn read(&mut self) -> Result<Loaded, FileError> {
        // Before reading: what changes while the files are read is seen as different next time.
        self.seen = glance(&self.directory.path);
        self.directory.read()
    }
}

/// Whether a file looks like one whose writer has paused: it was written less than `pause` ago, and has lost more than
/// half of what it held. A part of a list is a list, so that it reads well.
fn is_half_written(
    seen: Option<&Seen>,
    before: &BTreeMap<PathBuf, usize>,
    counts: &BTreeMap<PathBuf, usize>,
    pause: Duration,
    now: SystemTime,
) -> bool {
    let written_lately = |file: &PathBuf| {
        let written = seen.and_then(|seen| seen.get(file)).and_then(|look| look.as_ref()?.1);
        // A time to come is that of another clock: it says nothing against it.
        written.is_some_and(|written| now.duration_since(written).unwrap_or_default() < pause)
    };
    let mut lost = counts.iter().filter(|(file, count)| before.get(*file).is_some_and(|before| *count * 2 < *before));
    lost.any(|(file, _)| written_lately(file))
}

/// Reading the files is reported too, and must not be a reason to read them again.
fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn glance(directory: &Path) -> Glance {
    let look = |file: PathBuf| {
        let metadata = std::fs::metadata(&file).ok();
        (file, metadata.map(|metadata| (metadata.len(), metadata.modified().ok())))
    };
    Some(files(directory).ok()?.into_iter().map(look).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

    use super::*;

    use crate::file_origin::load;

    fn all_of(directory: &Path, descriptors: Descriptors) -> Directory {
        Directory { path: directory.to_owned(), descriptors, served: Served::default() }
    }

    type Outcome = Result<Vec<FileResource>, FileError>;

    const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

    fn text(names: &[&str]) -> String {
        let cluster = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster";
        names.iter().fold("resources:\n".to_owned(), |text, name| format!("{text}- {{{cluster}, name: {name}}}\n"))
    }

    /// Watches an existing directory by notifications alone, or any by looking often.
    fn watch(directory: &Path, poll: Duration) -> (Watch, Receiver<Outcome>) {
        let descriptors = Descriptors::built_in().unwrap();
        let loaded = load(directory, &descriptors).unwrap_or_default();
        let timing = Timing { quiet: Duration::from_millis(20), rounds: 10, poll, pause: Duration::from_millis(20) };
        let (sender, receiver) = channel();
        let on_change = move |outcome| sender.send(outcome).unwrap();
        let watch = Watch::start_with(all_of(directory, descriptors), loaded, on_change, timing).unwrap();
        (watch, receiver)
    }

    /// Waits for an outcome that is `wanted`: several steps of one change may be seen apart.
    fn until<T>(receiver: &Receiver<Outcome>, wanted: impl Fn(Outcome) -> Option<T>) -> T {
        loop {
            let outcome = receiver.recv_timeout(Duration::from_secs(60)).expect("the change is noticed");
            if let Some(found) = wanted(outcome) {
                return found;
            }
        }
    }

    fn has(wanted: &[&str]) -> impl Fn(Outcome) -> Option<()> {
        move |outcome| {
            let names: Vec<String> = outcome.ok()?.into_iter().map(|resource| resource.name).collect();
            (names == wanted).then_some(())
        }
    }

    #[test]
    fn files_that_are_edited_added_and_removed_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        std::fs::write(file("a.yaml"), text(&["a"])).unwrap();
        let (_watch, receiver) = watch(directory.path(), NEVER);

        std::fs::write(file("a.yaml"), text(&["a", "b"])).unwrap();
        until(&receiver, has(&["a", "b"]));
        std::fs::write(file("c.yaml"), text(&["c"])).unwrap();
        until(&receiver, has(&["a", "b", "c"]));
        std::fs::remove_file(file("c.yaml")).unwrap();
        until(&receiver, has(&["a", "b"]));

        // As editors do: a new file takes the place of the old one.
        std::fs::write(file(".a.yaml.swp"), text(&["d"])).unwrap();
        std::fs::rename(file(".a.yaml.swp"), file("a.yaml")).unwrap();
        until(&receiver, has(&["d"]));
    }

    #[test]
    fn a_bad_file_is_reported_and_so_is_the_return_of_the_good_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        std::fs::write(&file, text(&["a"])).unwrap();
        let (_watch, receiver) = watch(directory.path(), NEVER);

        std::fs::write(&file, "resources:\n- 5\n").unwrap();
        let error = until(&receiver, |outcome| outcome.err().filter(|error| error.line == Some(2)));
        assert_eq!(error.path, "resources[0]");
        std::fs::write(&file, text(&["a"])).unwrap();
        until(&receiver, has(&["a"]));
    }

    #[cfg(unix)]
    #[test]
    fn a_kubernetes_volume_is_swapped() {
        use std::os::unix::fs::symlink;

        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (revision, name) in [("..1", "a"), ("..2", "b")] {
            std::fs::create_dir(path(revision)).unwrap();
            std::fs::write(path(revision).join("a.yaml"), text(&[name])).unwrap();
        }
        symlink("..1", path("..data")).unwrap();
        symlink("..data/a.yaml", path("a.yaml")).unwrap();
        let (_watch, receiver) = watch(directory.path(), NEVER);

        symlink("..2", path("..data_tmp")).unwrap();
        std::fs::rename(path("..data_tmp"), path("..data")).unwrap();
        until(&receiver, has(&["b"]));
    }

    #[test]
    fn a_directory_may_be_missing_for_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("resources");
        let create = |name| {
            let new = parent.path().join("new");
            std::fs::create_dir(&new).unwrap();
            std::fs::write(new.join("a.yaml"), text(&[name])).unwrap();
            std::fs::rename(new, &directory).unwrap();
        };
        let (watch, receiver) = watch(&directory, Duration::from_millis(10));

        assert_eq!(until(&receiver, Result::err).file, directory);
        create("a");
        until(&receiver, has(&["a"]));
        std::fs::remove_dir_all(&directory).unwrap();
        until(&receiver, Result::err);
        create("b");
        until(&receiver, has(&["b"]));

        drop(watch);
        assert_eq!(receiver.recv_timeout(NEVER), Err(RecvTimeoutError::Disconnected), "the callback is gone");
    }

    #[test]
    fn reading_the_files_is_no_reason_to_read_them_again() {
        assert!(is_reading(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(is_reading(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(!is_reading(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(!is_reading(EventKind::Any));
    }

    #[test]
    fn a_file_that_lost_most_of_what_it_held_a_moment_ago_is_looked_at_again() {
        let (now, second) = (SystemTime::now(), Duration::from_secs(1));
        let held = |held: &[(&str, usize)]| -> BTreeMap<PathBuf, usize> {
            held.iter().map(|(file, count)| (PathBuf::from(file), *count)).collect()
        };
        let decide = |before: &[(&str, usize)], counts: &[(&str, usize)], written: SystemTime| {
            let seen = counts.iter().map(|(file, _)| (PathBuf::from(file), Some((1, Some(written))))).collect();
            is_half_written(Some(&seen), &held(before), &held(counts), second, now)
        };
        let just_now = now - Duration::from_millis(999);
        assert!(decide(&[("a", 301), ("b", 1000)], &[("a", 150), ("b", 1000)], just_now), "each file for itself");
        assert!(decide(&[("a", 1)], &[("a", 0)], now), "an empty list");
        assert!(decide(&[("a", 3)], &[("a", 1)], now + second), "another clock");
        assert!(!decide(&[("a", 3)], &[("a", 1)], now - second), "quiet for a second");
        assert!(!decide(&[("a", 2)], &[("a", 1)], now), "half is left");
        assert!(!decide(&[("a", 2)], &[("a", 3)], now));
        assert!(!decide(&[], &[("a", 3)], now), "a new file");
        assert!(!decide(&[("a", 3)], &[], now), "a file that is gone has no writer");
    }

    #[test]
    fn a_writer_that_pauses_in_the_middle_of_a_file_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        std::fs::write(&file, text(&["a", "b", "c"])).unwrap();
        let (sender, receiver) = channel();
        let mut watcher = DirectoryWatcher {
            directory: all_of(directory.path(), Descriptors::built_in().unwrap()),
            on_change: |outcome| sender.send(outcome).unwrap(),
            timing: Timing { quiet: NEVER, rounds: 1, poll: NEVER, pause: NEVER },
            signal: Arc::default(),
            notifications: None,
            seen: None,
            reported: Ok(Vec::new()),
            counts: BTreeMap::new(),
        };
        assert!(watcher.reload());
        std::fs::write(&file, text(&["a"])).unwrap();
        let signal = Arc::clone(&watcher.signal);
        signal.raise(|raised| raised.stop = true);
        assert!(!watcher.reload(), "it was waiting when it was stopped");
        signal.raise(|raised| *raised = Raised { changed: true, stop: false });
        std::fs::write(&file, text(&["a"])).unwrap();
        assert!(watcher.reload());
        assert!(!signal.raised.lock().unwrap().changed, "it waited for the writer to go on");
        let told: Vec<_> = receiver.try_iter().map(|outcome| outcome.unwrap().len()).collect();
        assert_eq!(told, [3, 1], "what is there at the second look counts");
    }

    #[test]
    fn only_other_content_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        std::fs::write(&file, text(&["a"])).unwrap();
        let (sender, receiver) = channel();
        let mut watcher = DirectoryWatcher {
            directory: all_of(directory.path(), Descriptors::built_in().unwrap()),
            on_change: |outcome| sender.send(outcome).unwrap(),
            timing: Timing { quiet: NEVER, rounds: 0, poll: NEVER, pause: Duration::ZERO },
            signal: Arc::default(),
            notifications: None,
            seen: None,
            reported: Ok(Vec::new()),
            counts: BTreeMap::new(),
        };
        let mut reload = || {
            assert!(watcher.reload());
            receiver.try_iter().count()
        };

        assert_eq!(reload(), 1, "the first reading");
        std::fs::write(&file, text(&["a"]) + "# a comment\n").unwrap();
        assert_eq!(reload(), 0);
        std::fs::rename(&file, directory.path().join("b.yaml")).unwrap();
        assert_eq!(reload(), 0);
        std::fs::write(directory.path().join("b.yaml"), "resources: 1").unwrap();
        assert_eq!((reload(), reload()), (1, 0), "an error is said once");
    }
}
