//! That much is gone, which is held before it counts.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::keyed_origin::HELD;

type Held = DirectoryWatcher<Box<dyn FnMut(Reading) + Send>>;

/// Of an origin whose files are good.
fn watcher(directory: &Path) -> (Held, Receiver<Reading>) {
    let (sender, receiver) = channel();
    let directory = all_of(directory, Descriptors::built_in().unwrap());
    let loaded = Some(directory.resources()).filter(|_| !directory.has_no_files());
    let watcher = DirectoryWatcher {
        directory,
        on_change: Box::new(move |reading| sender.send(reading).unwrap()) as Box<dyn FnMut(Reading) + Send>,
        timing: Timing { quiet: Duration::ZERO, rounds: 0, poll: NEVER, pause: Duration::ZERO, now: Instant::now },
        signal: Arc::default(),
        notifications: None,
        seen: None,
        guard: Some(Guard::new(loaded.as_ref().and_then(|loaded| loaded.as_deref().ok()))),
        held: None,
        reported: loaded,
        counts: Counts::new(),
    };
    (watcher, receiver)
}

/// So many clusters.
fn clusters(number: usize) -> String {
    let names: Vec<_> = (0..number).map(|number| format!("c{number:02}")).collect();
    text(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Of how many resources it is told that they are there, or gone and held, or that something is wrong.
fn told(receiver: &Receiver<Reading>) -> Vec<Result<usize, Option<usize>>> {
    let reading = |reading| match reading {
        Reading::Done(Ok(resources)) => Ok(Vec::len(&resources)),
        Reading::Done(Err(_)) => Err(None),
        Reading::Held { gone } => Err(Some(gone)),
    };
    receiver.try_iter().map(reading).collect()
}

fn later() -> Instant {
    Instant::now() + HELD
}

#[test]
fn a_part_of_a_list_that_is_being_copied_takes_nothing_away() {
    let directory = tempfile::tempdir().unwrap();
    let write = |text: String| std::fs::write(directory.path().join("a.yaml"), text).unwrap();
    write(clusters(50));
    let (mut watcher, receiver) = watcher(directory.path());
    let mut reload = |text: String| {
        write(text);
        assert!(watcher.reload());
        told(&receiver)
    };
    assert_eq!(reload(clusters(50)), []);
    assert_eq!(reload(clusters(30)), [Err(Some(20))]);
    assert_eq!(reload(clusters(30) + "# more\n"), [], "it is said once");
    assert_eq!(reload(clusters(31)), [Err(Some(19))]);
    assert_eq!(reload(clusters(50)), [Ok(50)], "nothing is wrong any more");
    assert_eq!(reload(clusters(40)), [Ok(40)], "a fifth is not much");
    assert_eq!(reload(clusters(20)), [Err(Some(20))]);
    assert_eq!(reload("resources: 5".to_owned()), [Err(None)]);
    assert_eq!(reload(clusters(20)), [Err(Some(20))], "of what is wrong nobody hears any more");
    watcher.timing.now = later;
    assert!(watcher.reload());
    assert_eq!(told(&receiver), [Ok(20)], "it was meant");
}

#[test]
fn few_that_others_take_the_place_of_are_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let write = |names: &[&str]| std::fs::write(directory.path().join("a.yaml"), text(names)).unwrap();
    write(&["a", "b"]);
    let (mut watcher, receiver) = watcher(directory.path());
    write(&["c"]);
    assert!(watcher.reload());
    assert_eq!(told(&receiver), [Ok(1)]);
    write(&["d", "e"]);
    assert!(watcher.reload());
    std::fs::write(directory.path().join("a.yaml"), "resources: []").unwrap();
    assert!(watcher.reload());
    assert_eq!(told(&receiver), [Ok(2), Err(Some(2))], "nothing is in their place");
}

#[test]
fn a_volume_that_is_not_mounted_any_more_is_no_volume_without_files() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    std::fs::write(&file, clusters(3)).unwrap();
    let (mut watcher, receiver) = watcher(directory.path());
    std::fs::remove_file(&file).unwrap();
    assert!(watcher.reload());
    assert_eq!(told(&receiver), [Err(Some(3))]);
    std::fs::write(&file, clusters(3)).unwrap();
    assert!(watcher.reload());
    assert_eq!(told(&receiver), [Ok(3)]);
}

#[test]
fn what_begins_before_its_volume_is_there_has_nothing_to_tell_before_long() {
    let directory = tempfile::tempdir().unwrap();
    let (mut waits, receiver) = watcher(directory.path());
    assert!(waits.reload());
    assert_eq!(told(&receiver), [Err(Some(0))]);
    waits.timing.now = later;
    assert!(waits.reload());
    assert_eq!(told(&receiver), [Ok(0)], "there is nothing");

    let (mut comes, receiver) = watcher(directory.path());
    assert!(comes.reload());
    std::fs::write(directory.path().join("a.yaml"), clusters(1)).unwrap();
    assert!(comes.reload());
    assert_eq!(told(&receiver), [Err(Some(0)), Ok(1)]);

    // Who has a file that says that there is nothing, has its volume.
    std::fs::remove_file(directory.path().join("a.yaml")).unwrap();
    let (mut says, receiver) = watcher(directory.path());
    std::fs::write(directory.path().join("a.yaml"), "resources: []").unwrap();
    assert!(says.reload());
    assert_eq!(told(&receiver), [Ok(0)]);
}

/// Nothing happens to the files by then.
#[test]
fn what_is_held_counts_by_itself_once_it_was_so_for_long() {
    static IS_LATER: AtomicBool = AtomicBool::new(false);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    std::fs::write(&file, clusters(30)).unwrap();
    let (mut watcher, receiver) = watcher(directory.path());
    watcher.timing.poll = Duration::from_millis(1);
    watcher.timing.now = || if IS_LATER.load(Ordering::SeqCst) { later() } else { Instant::now() };
    std::fs::write(&file, clusters(15)).unwrap();
    let signal = Arc::clone(&watcher.signal);
    let running = std::thread::spawn(|| watcher.run());
    let next = || receiver.recv_timeout(Duration::from_secs(60));
    assert_eq!(next(), Ok(Reading::Held { gone: 15 }));
    IS_LATER.store(true, Ordering::SeqCst);
    let next = next();
    signal.raise(|raised| raised.stop = true);
    running.join().unwrap();
    assert!(matches!(&next, Ok(Reading::Done(Ok(left))) if left.len() == 15), "{next:?}");
}
