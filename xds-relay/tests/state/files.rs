//! The file of an engine, and what may be wrong with it.

use std::fs;
use std::path::Path;

use xds_relay::state::{Commit, Op, Redb, Store, StoreError};

fn filled(path: &Path, commits: usize) -> Redb {
    let store = Redb::open(path).unwrap();
    for number in 0..commits {
        let ops: Vec<_> = (0..20).map(|key| Op::put(format!("{key}"), format!("{number}"))).collect();
        assert_eq!(store.commit(&ops, &[]).unwrap(), Commit::Done(number as u64 + 1));
    }
    store
}

#[test]
fn what_was_committed_is_there_after_a_restart_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    let store = filled(&path, 3);
    // As a process that is killed leaves it: open, as it is.
    let copy = directory.path().join("copy.redb");
    fs::copy(&path, &copy).unwrap();
    drop(store);
    for path in [&path, &copy] {
        let listing = Redb::open(path).unwrap().list("").unwrap();
        assert_eq!((listing.entries.len(), listing.revision), (20, 3));
        assert!(listing.entries.iter().all(|entry| entry.value == "2"));
    }
}

#[test]
fn only_one_has_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    let store = Redb::open(&path).unwrap();
    assert!(matches!(Redb::open(&path), Err(StoreError::Locked)));
    drop(store);
    Redb::open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn only_its_user_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    Redb::open(&path).unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Redb::open(&path).unwrap();
    assert_eq!(mode(), 0o600);
}

/// Whatever a file holds, it is an error or a store that works; never a panic or a wait.
#[test]
fn a_damaged_file_is_said_to_be_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    drop(filled(&path, 2));
    let good = fs::read(&path).unwrap();
    let mut refused = 0;
    let mut damaged = vec![good[..good.len() / 2].to_vec(), good[..100].to_vec(), b"not a database".to_vec()];
    for at in (0..good.len()).step_by(good.len() / 24) {
        let mut other = good.clone();
        other[at..].iter_mut().take(64).for_each(|byte| *byte ^= 0x5a);
        damaged.push(other);
    }
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for content in &damaged {
        fs::write(&path, content).unwrap();
        match Redb::open(&path).and_then(|store| store.list("").map(drop)) {
            Ok(()) => {}
            Err(StoreError::Corrupt(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    std::panic::set_hook(quiet);
    assert!(refused >= 3, "{refused}");
}

#[test]
fn a_directory_is_no_file() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Redb::open(directory.path()), Err(StoreError::Io(_))));
}

/// As a process that is killed leaves it: nothing was closed, and the engine may go back.
#[test]
fn what_is_older_than_it_was_is_said_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    let store = filled(&path, 3);
    let third = fs::read(&path).unwrap();
    for _ in 0..2 {
        let _ = store.commit(&[Op::put("0", "later")], &[]).unwrap();
    }
    let (last, reached) = (fs::read(&path).unwrap(), fs::read(directory.path().join("state.revision")).unwrap());
    drop(store);
    let mut back = 0;
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    // The header of the file, of which a bit is enough, and what is behind it.
    for at in (0..320).step_by(7).chain((320..last.len()).step_by(last.len() / 12)) {
        let mut bad = last.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad).unwrap();
        fs::write(directory.path().join("state.revision"), &reached).unwrap();
        let opened = Redb::open(&path).and_then(|store| Ok((store.list("")?.revision, store.went_back())));
        match opened {
            Ok((revision, said)) => {
                assert_eq!(said, (revision < 5).then_some((revision, 5)), "{at}");
                back += usize::from(said.is_some());
            }
            Err(StoreError::Corrupt(_) | StoreError::Format(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    std::panic::set_hook(quiet);
    assert!(back > 0, "the engine goes back");
    // An older file in its place, and what is done to it then.
    fs::write(&path, third).unwrap();
    fs::write(directory.path().join("state.revision"), reached).unwrap();
    let store = Redb::open(&path).unwrap();
    assert_eq!(store.went_back(), Some((3, 5)));
    let _ = store.commit(&[Op::put("0", "again")], &[]).unwrap();
    drop(store);
    assert_eq!(Redb::open(&path).unwrap().went_back(), None, "said once");
    fs::remove_file(&path).unwrap();
    assert_eq!(Redb::open(&path).unwrap().went_back(), None, "there is none to be older");
}

#[cfg(unix)]
#[test]
fn a_file_that_was_removed_takes_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept/state.redb");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let store = filled(&path, 1);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    for _ in 0..2 {
        assert!(matches!(store.commit(&[Op::put("a", "1")], &[]), Err(StoreError::Gone)));
    }
    fs::create_dir(path.parent().unwrap()).unwrap();
    let other = filled(&path, 1);
    assert!(matches!(store.commit(&[Op::put("a", "1")], &[]), Err(StoreError::Gone)));
    assert!(other.commit(&[Op::put("a", "1")], &[]).is_ok());
}
