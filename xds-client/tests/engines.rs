//! One suite for all engines of what survives a restart: another one is run on it, too.

#![cfg(feature = "state")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use xdstp_client::state::{Commit, Compare, Memory, Op, Redb, Revision, Store, StoreError, Watch};

const LONG: Duration = Duration::from_secs(60);

fn entries(store: &dyn Store, prefix: &str) -> Vec<(String, String, Revision)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let listing = store.list(prefix).unwrap();
    listing.entries.into_iter().map(|entry| (entry.key, text(&entry.value), entry.revision)).collect()
}

fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    match store.commit(&[Op::put(key, value.to_owned())], &[]).unwrap() {
        Commit::Done(revision) => revision,
        Commit::Conflict => panic!("nothing to compare"),
    }
}

fn seen(watch: &mut Watch) -> Vec<Op> {
    watch.next(Duration::ZERO).unwrap().into_iter().map(|event| event.op).collect()
}

fn a_listing_has_what_begins_with_its_prefix_in_order_at_one_revision(store: &dyn Store) {
    assert_eq!((entries(store, ""), store.list("").unwrap().revision), (vec![], 0));
    for key in ["b/2", "a", "b/1", "b\0", "c", "b0", "ü"] {
        put(store, key, "v");
    }
    let keys = |prefix| entries(store, prefix).into_iter().map(|(key, ..)| key).collect::<Vec<_>>();
    assert_eq!(keys("b/"), ["b/1", "b/2"]);
    assert_eq!(keys(""), ["a", "b\0", "b/1", "b/2", "b0", "c", "ü"]);
    assert_eq!(keys("ü"), ["ü"]);
    assert_eq!(keys("d"), [""; 0]);
    assert_eq!(store.list("d").unwrap().revision, 7);
}

fn a_commit_does_all_in_order_at_one_revision(store: &dyn Store) {
    put(store, "a", "1");
    let ops = [Op::put("b", "1"), Op::delete("a"), Op::put("c", "1"), Op::put("c", "2"), Op::delete("none")];
    assert_eq!(store.commit(&ops, &[]).unwrap(), Commit::Done(2));
    assert_eq!(entries(store, ""), [("b".to_owned(), "1".to_owned(), 2), ("c".to_owned(), "2".to_owned(), 2)]);
}

fn a_commit_with_a_compare_that_does_not_hold_does_nothing(store: &dyn Store) {
    let first = put(store, "a", "1");
    let second = put(store, "b", "1");
    for (compare, holds) in [
        (Compare::unchanged("a", first), true),
        (Compare::unchanged("a", second), false),
        (Compare::absent("a"), false),
        (Compare::absent("c"), true),
        (Compare::unchanged("c", first), false),
    ] {
        let before = entries(store, "");
        let compares = [Compare::unchanged("b", second), compare.clone()];
        let done = store.commit(&[Op::put("d", "1")], &compares).unwrap();
        assert_eq!(matches!(done, Commit::Done(_)), holds, "{compare:?}");
        if !holds {
            assert_eq!(entries(store, ""), before);
        }
    }
}

fn a_watch_tells_what_is_done_after_a_revision(store: &dyn Store) {
    let revision = put(store, "b/1", "1");
    let mut watch = store.watch("b/", revision).unwrap();
    assert_eq!(seen(&mut watch), []);
    put(store, "a", "1");
    put(store, "b/2", "2");
    let _ = store.commit(&[Op::delete("b/1"), Op::put("c", "1"), Op::put("b/3", "3")], &[]).unwrap();
    assert_eq!(seen(&mut watch), [Op::put("b/2", "2"), Op::delete("b/1"), Op::put("b/3", "3")]);
    assert_eq!(seen(&mut watch), []);
    // Who comes later is told the same.
    assert_eq!(seen(&mut store.watch("b/", revision + 1).unwrap()).len(), 3);
    assert_eq!(seen(&mut store.watch("b/", revision + 2).unwrap()).len(), 2);
}

fn a_watch_wakes_who_waits(store: &Arc<dyn Store>) {
    let mut watch = store.watch("", 0).unwrap();
    let writer = store.clone();
    let writing = std::thread::spawn(move || put(&*writer, "a", "1"));
    assert_eq!(watch.next(LONG).unwrap().len(), 1);
    writing.join().unwrap();
}

fn a_watch_from_before_what_is_kept_says_so(store: &dyn Store) {
    let mut slow = store.watch("", 0).unwrap();
    let many: Vec<_> = (0..3000).map(|number| Op::put(format!("{number}"), "v")).collect();
    for _ in 0..2 {
        let _ = store.commit(&many, &[]).unwrap();
    }
    assert!(matches!(slow.next(Duration::ZERO), Err(StoreError::Compacted)));
    assert!(matches!(store.watch("", 0), Err(StoreError::Compacted)));
    let revision = store.list("").unwrap().revision;
    assert_eq!(seen(&mut store.watch("", revision).unwrap()), []);
    // Nor is much kept for who does not look.
    let _ = store.commit(&[Op::put("large", vec![0; 2 << 20])], &[]).unwrap();
    assert!(matches!(store.watch("", revision), Err(StoreError::Compacted)));
}

fn what_is_empty_is_there(store: &dyn Store) {
    let _ = store.commit(&[Op::put("", ""), Op::put("a", "")], &[]).unwrap();
    assert_eq!(entries(store, "").len(), 2);
    assert_eq!(store.commit(&[], &[Compare::absent("a")]).unwrap(), Commit::Conflict);
}

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name(&super::memory_store()); })*
        }
        mod redb {
            $(#[test] fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$name(&super::redb_store(directory.path()));
            })*
        }
    };
}

fn memory_store() -> Memory {
    Memory::default()
}

fn redb_store(directory: &std::path::Path) -> Redb {
    Redb::open(directory.join("state.redb")).unwrap()
}

suite! {
    a_listing_has_what_begins_with_its_prefix_in_order_at_one_revision,
    a_commit_does_all_in_order_at_one_revision,
    a_commit_with_a_compare_that_does_not_hold_does_nothing,
    a_watch_tells_what_is_done_after_a_revision,
    a_watch_from_before_what_is_kept_says_so,
    what_is_empty_is_there,
}

#[test]
fn who_waits_is_woken() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] = [Arc::new(memory_store()), Arc::new(redb_store(directory.path()))];
    stores.iter().for_each(a_watch_wakes_who_waits);
}
