use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use super::signal::Raised;
use super::*;

use crate::file_origin::environment::Environment;
use crate::file_origin::load;

fn all_of(directory: &Path, descriptors: Descriptors) -> Directory {
    Directory::new(directory.to_owned(), descriptors, Served::default())
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
    let timing = Timing {
        quiet: Duration::from_millis(20),
        rounds: 10,
        poll,
        pause: Duration::from_millis(20),
        now: Instant::now,
    };
    let (sender, receiver) = channel();
    let on_change = move |outcome| sender.send(outcome).unwrap();
    let watch =
        Watch::start_with(all_of(directory, descriptors), Some(Ok(loaded)), None, at_once(on_change), timing).unwrap();
    (watch, receiver)
}

/// Watches a directory and those below it by notifications alone.
fn watch_all(directory: &Path) -> (Watch, Receiver<Outcome>) {
    let timing = Timing {
        quiet: Duration::from_millis(20),
        rounds: 10,
        poll: NEVER,
        pause: Duration::from_millis(20),
        now: Instant::now,
    };
    let (sender, receiver) = channel();
    let on_change = move |outcome| sender.send(outcome).unwrap();
    let all = Directory { with_directories: true, ..all_of(directory, Descriptors::built_in().unwrap()) };
    let loaded = all.read().map(|loaded| loaded.resources).unwrap_or_default();
    (Watch::start_with(all, Some(Ok(loaded)), None, at_once(on_change), timing).unwrap(), receiver)
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

/// A watcher whose thread is the test, without notifications.
fn watcher(directory: &Path, pause: Duration) -> (DirectoryWatcher<impl FnMut(Reading)>, Receiver<Outcome>) {
    let (sender, receiver) = channel();
    let watcher = DirectoryWatcher {
        directory: all_of(directory, Descriptors::built_in().unwrap()),
        on_change: at_once(move |outcome| sender.send(outcome).unwrap()),
        // Without rounds one takes what has happened, and waits for no more.
        timing: Timing { quiet: NEVER, rounds: 0, poll: NEVER, pause, now: Instant::now },
        signal: Arc::default(),
        notifications: None,
        seen: None,
        guard: None,
        held: None,
        reported: Some(Ok(Vec::new())),
        counts: Counts::new(),
    };
    (watcher, receiver)
}

#[test]
fn a_writer_that_pauses_in_the_middle_of_a_file_or_before_it_writes_it_anew_is_waited_for() {
    let (whole, part) = (text(&["a", "b", "c"]), text(&["a"]));
    for interrupted in [Some(&part), None] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        let write = |text: Option<&String>| match text {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        };
        write(Some(&whole));
        let (mut watcher, receiver) = watcher(directory.path(), NEVER);
        let signal = Arc::clone(&watcher.signal);
        assert!(watcher.reload());

        write(interrupted);
        signal.raise(|raised| raised.stop = true);
        assert!(!watcher.reload(), "it was waiting when it was stopped");
        signal.raise(|raised| *raised = Raised { changed: true, ..Raised::default() });
        assert!(watcher.reload());
        assert!(!signal.raised.lock().unwrap().changed, "it waited for the writer to go on");
        let told: Vec<_> = receiver.try_iter().map(|outcome| outcome.unwrap().len()).collect();
        assert_eq!(told, [3, interrupted.map_or(0, |_| 1)], "what is there at the second look counts");
    }
}

#[test]
fn only_other_content_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    std::fs::write(&file, text(&["a"])).unwrap();
    let (mut watcher, receiver) = watcher(directory.path(), Duration::ZERO);
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

#[test]
fn directories_that_come_go_and_are_renamed_are_noticed_and_so_are_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("one")).unwrap();
    std::fs::write(path("one/a.yaml"), text(&["a"])).unwrap();
    let (_watch, receiver) = watch_all(directory.path());

    std::fs::write(path("one/a.yaml"), text(&["a", "b"])).unwrap();
    until(&receiver, has(&["a", "b"]));
    std::fs::create_dir_all(path("two/deep")).unwrap();
    std::fs::write(path("two/deep/c.yaml"), text(&["c"])).unwrap();
    until(&receiver, has(&["a", "b", "c"]));
    std::fs::write(path("two/deep/c.yaml"), text(&["d"])).unwrap();
    until(&receiver, has(&["a", "b", "d"]));
    std::fs::rename(path("two"), path("three")).unwrap();
    std::fs::write(path("three/deep/e.yaml"), text(&["e"])).unwrap();
    until(&receiver, has(&["a", "b", "d", "e"]));
    std::fs::write(path("three/deep/e.yaml"), text(&["f"])).unwrap();
    until(&receiver, has(&["a", "b", "d", "f"]));
    std::fs::remove_dir_all(path("three")).unwrap();
    until(&receiver, has(&["a", "b"]));
    // One in the place of another of its name.
    std::fs::remove_dir_all(path("one")).unwrap();
    std::fs::create_dir(path("one")).unwrap();
    until(&receiver, has(&[]));
    std::fs::write(path("one/a.yaml"), text(&["g"])).unwrap();
    until(&receiver, has(&["g"]));
}

#[cfg(unix)]
#[test]
fn a_directory_of_a_kubernetes_volume_is_swapped() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for (revision, name) in [("..1", "a"), ("..2", "b")] {
        std::fs::create_dir_all(path(revision).join("sub")).unwrap();
        std::fs::write(path(revision).join("sub/a.yaml"), text(&[name])).unwrap();
    }
    symlink("..1", path("..data")).unwrap();
    symlink("..data/sub", path("sub")).unwrap();
    let (_watch, receiver) = watch_all(directory.path());

    symlink("..2", path("..data_tmp")).unwrap();
    std::fs::rename(path("..data_tmp"), path("..data")).unwrap();
    until(&receiver, has(&["b"]));
    std::fs::write(path("..2/sub/a.yaml"), text(&["c"])).unwrap();
    until(&receiver, has(&["c"]));
}

#[test]
fn a_writer_that_takes_a_directory_away_before_it_writes_it_anew_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let sub = directory.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    std::fs::write(sub.join("a.yaml"), text(&["a", "b"])).unwrap();
    let (mut watcher, receiver) = watcher(directory.path(), NEVER);
    watcher.directory.with_directories = true;
    let signal = Arc::clone(&watcher.signal);
    let stop = || signal.raise(|raised| *raised = Raised { stop: true, ..Raised::default() });
    assert!(watcher.reload());
    let takes: [&dyn Fn(); 2] =
        [&|| std::fs::remove_file(sub.join("a.yaml")).unwrap(), &|| std::fs::remove_dir(&sub).unwrap()];
    for take in takes {
        take();
        stop();
        assert!(!watcher.reload(), "it was waiting when it was stopped");
    }
    assert_eq!(receiver.try_iter().map(|outcome| outcome.unwrap().len()).collect::<Vec<_>>(), [2], "nothing is gone");
}

#[test]
fn a_burst_does_not_use_up_the_time_that_a_writer_has() {
    let directory = tempfile::tempdir().unwrap();
    let (mut watcher, _receiver) = watcher(directory.path(), NEVER);
    watcher.timing.rounds = 10;
    let signal = Arc::clone(&watcher.signal);
    let burst = std::thread::spawn(move || {
        for _ in 0..100 {
            signal.raise(|raised| raised.changed = true);
            while signal.raised.lock().unwrap().changed {
                std::thread::yield_now();
            }
        }
        signal.raise(|raised| raised.stop = true);
    });
    assert!(!watcher.settled(NEVER), "it waited until it was stopped");
    burst.join().unwrap();
}

#[test]
fn a_directory_that_comes_while_one_waits_is_watched() {
    let directory = tempfile::tempdir().unwrap();
    let (mut watcher, _receiver) = watcher(directory.path(), NEVER);
    watcher.directory.with_directories = true;
    let signal = Arc::clone(&watcher.signal);
    let new = directory.path().join("new");
    std::fs::create_dir(&new).unwrap();
    signal.raise(|raised| raised.changed = true);
    assert!(watcher.settled(NEVER));
    std::fs::write(new.join("a.yaml"), text(&["a"])).unwrap();
    assert!(matches!(signal.wait(Duration::from_secs(60)), Woken::Changed), "it is watched");
}

/// What is read with this does so as each file is, before what is in it counts.
fn as_it_is_read(look: impl Fn(&str) + Send + Sync + 'static) -> Option<Environment> {
    Some(Environment::new(move |name| {
        look(name);
        Ok(name.to_lowercase())
    }))
}

#[cfg(unix)]
#[test]
fn what_moves_from_file_to_file_while_they_are_read_is_there_all_the_time() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let a = "\"${A}\"";
    for (revision, first, second) in [(".v1", &[a][..], &["b", "c"][..]), (".v2", &[a, "b"], &["c"])] {
        std::fs::create_dir(path(revision)).unwrap();
        std::fs::write(path(revision).join("a.yaml"), text(first)).unwrap();
        std::fs::write(path(revision).join("b.yaml"), text(second)).unwrap();
    }
    let swapped = |quiet| {
        let (next, now) = (path("next"), path("now"));
        let _ = std::fs::remove_file(&now);
        symlink(".v1", &now).unwrap();
        symlink(".v2", &next).unwrap();
        let (mut watcher, receiver) = watcher(directory.path(), Duration::ZERO);
        (watcher.directory.path, watcher.timing.quiet) = (now.clone(), quiet);
        // Once, while the first file is read.
        watcher.directory.environment = as_it_is_read(move |_: &str| _ = std::fs::rename(&next, &now));
        (watcher, receiver)
    };
    let names = |all: Vec<FileResource>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
    let (mut watcher, receiver) = swapped(Duration::ZERO);
    assert!(watcher.reload());
    let told: Vec<_> = receiver.try_iter().map(|outcome| names(outcome.unwrap())).collect();
    assert_eq!(told, [["a", "b", "c"]], "`b` went from the second file to the first");
    // Who starts does not wait for it to rest.
    let (watcher, _) = swapped(NEVER);
    assert_eq!(names(watcher.directory.resources().unwrap()), ["a", "b", "c"]);
}

/// As a network mount does that is gone.
#[test]
fn a_disk_that_does_not_answer_holds_nobody_up_who_ends_and_tells_nothing_later() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.yaml"), text(&["\"${A}\""])).unwrap();
    let (reading, is_read) = channel();
    let (answer, answered) = channel::<()>();
    let answered = std::sync::Mutex::new(answered);
    let environment = as_it_is_read(move |_| {
        let _ = reading.send(());
        let _ = answered.lock().unwrap().recv();
    });
    let directory = Directory { environment, ..all_of(directory.path(), Descriptors::built_in().unwrap()) };
    let (sender, receiver) = channel();
    let on_change = move |outcome| sender.send(outcome).unwrap();
    let watch = Watch::start_with(directory, Some(Ok(Vec::new())), None, at_once(on_change), TIMING).unwrap();
    is_read.recv().unwrap();
    let (over, is_over) = channel();
    std::thread::spawn(move || {
        drop(watch);
        over.send(()).unwrap();
    });
    let ended = is_over.recv_timeout(Duration::from_secs(60));
    drop(answer);
    assert_eq!(ended, Ok(()));
    assert_eq!(receiver.recv_timeout(NEVER), Err(RecvTimeoutError::Disconnected), "nothing was told");
}

mod held;
