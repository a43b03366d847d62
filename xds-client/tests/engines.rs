//! One suite for all engines of what survives a restart: another one is run on it, too. Etcd's is run on it in `etcd.rs`.

#![cfg(feature = "state")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "engines/suite.rs"]
mod suite;

use std::sync::Arc;
use std::time::Duration;

use xdstp_client::state::{Commit, Memory, Op, Redb, Store, StoreError};

use self::suite::{next, put};

fn each_commit_is_a_revision(store: &dyn Store) {
    assert_eq!(store.list("").unwrap().revision, 0);
    let revisions = ["a", "b", "a"].map(|key| put(store, key, "1"));
    assert_eq!(revisions, [1, 2, 3]);
    assert_eq!(store.commit(&[], &[]).unwrap(), Commit::Done(4));
}

fn what_is_done_is_told_at_once(store: &dyn Store) {
    let mut watch = store.watch("", 0).unwrap();
    put(store, "a", "1");
    assert_eq!(watch.next(Duration::ZERO).unwrap().len(), 1);
    assert_eq!(watch.next(Duration::ZERO).unwrap().len(), 0);
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
    let mut watch = store.watch("", revision).unwrap();
    put(store, "a", "1");
    assert_eq!(next(&mut watch, 1).len(), 1);
    // Nor is much kept for who does not look.
    let _ = store.commit(&[Op::put("large", vec![0; 2 << 20])], &[]).unwrap();
    assert!(matches!(store.watch("", revision), Err(StoreError::Compacted)));
}

macro_rules! suite {
    ($($from:ident::$name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$from::$name(&super::memory_store()); })*
        }
        mod redb {
            $(#[test] fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$from::$name(&super::redb_store(directory.path()));
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

/// What holds of engines that are asked and answer within this process.
mod here {
    pub(super) use super::{
        a_watch_from_before_what_is_kept_says_so, each_commit_is_a_revision, what_is_done_is_told_at_once,
    };
}

suite! {
    suite::a_listing_has_what_begins_with_its_prefix_in_order_at_one_revision,
    suite::a_long_listing_is_whole,
    suite::what_one_key_has_is_read_without_what_begins_with_it,
    suite::a_commit_does_all_in_order_at_one_revision,
    suite::a_commit_with_a_compare_that_does_not_hold_does_nothing,
    suite::a_watch_tells_what_is_done_after_a_revision,
    suite::who_is_too_slow_is_told_to_list_again,
    suite::what_is_empty_is_there,
    suite::what_is_within_its_limits_is_one_commit,
    here::each_commit_is_a_revision,
    here::what_is_done_is_told_at_once,
    here::a_watch_from_before_what_is_kept_says_so,
}

#[test]
fn who_waits_is_woken() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] = [Arc::new(memory_store()), Arc::new(redb_store(directory.path()))];
    stores.iter().for_each(suite::a_watch_wakes_who_waits);
}
