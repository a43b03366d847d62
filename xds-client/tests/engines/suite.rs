//! What holds of every engine. Each of these has a store, or a part of one, to itself; others may commit to the rest of it.

use std::sync::Arc;
use std::time::Duration;

use xdstp_client::state::{Commit, Compare, Event, Op, Revision, Store, StoreError, Watch};

pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn entries(store: &dyn Store, prefix: &str) -> Vec<(String, String, Revision)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let listing = store.list(prefix).unwrap();
    listing.entries.into_iter().map(|entry| (entry.key, text(&entry.value), entry.revision)).collect()
}

pub(crate) fn done(store: &dyn Store, ops: &[Op], compares: &[Compare]) -> Revision {
    match store.commit(ops, compares).unwrap() {
        Commit::Done(revision) => revision,
        Commit::Conflict => panic!("{compares:?}: something else is there"),
    }
}

pub(crate) fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    done(store, &[Op::put(key, value.to_owned())], &[])
}

/// The next changes, as many as these: an engine may be told of them one after another.
pub(crate) fn next(watch: &mut Watch, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        let more = watch.next(LONG).unwrap();
        assert!(!more.is_empty(), "nothing comes after {events:?}");
        events.extend(more);
    }
    events
}

pub(crate) fn seen(watch: &mut Watch, count: usize) -> Vec<Op> {
    next(watch, count).into_iter().map(|event| event.op).collect()
}

pub(crate) fn a_listing_has_what_begins_with_its_prefix_in_order_at_one_revision(store: &dyn Store) {
    assert_eq!(entries(store, ""), []);
    let before = store.list("").unwrap().revision;
    let revisions: Vec<_> = ["b/2", "a", "b/1", "b\0", "c", "b0", "ü"].map(|key| put(store, key, "v")).to_vec();
    assert!(before < revisions[0] && revisions.is_sorted());
    let keys = |prefix| entries(store, prefix).into_iter().map(|(key, ..)| key).collect::<Vec<_>>();
    assert_eq!(keys("b/"), ["b/1", "b/2"]);
    assert_eq!(keys(""), ["a", "b\0", "b/1", "b/2", "b0", "c", "ü"]);
    assert_eq!(keys("ü"), ["ü"]);
    assert_eq!(keys("d"), [""; 0]);
    assert!(store.list("d").unwrap().revision >= revisions[6]);
    assert_eq!(entries(store, "b/")[0].2, revisions[2]);
}

pub(crate) fn what_one_key_has_is_read_without_what_begins_with_it(store: &dyn Store) {
    for key in ["read/a", "read/ab"] {
        put(store, key, key);
    }
    let read = |key: &str| store.read(key).unwrap().map(|entry| (entry.key, entry.value));
    assert_eq!(read("read/a"), Some(("read/a".to_owned(), "read/a".into())));
    assert_eq!((read("read/"), read("read/abc")), (None, None));
}

pub(crate) fn a_long_listing_is_whole(store: &dyn Store) {
    let keys: Vec<_> = (0..2500).map(|number| format!("{number:04}")).collect();
    for keys in keys.chunks(100) {
        let ops: Vec<_> = keys.iter().map(|key| Op::put(key.clone(), key.clone())).collect();
        done(store, &ops, &[]);
    }
    let listed: Vec<_> = entries(store, "").into_iter().map(|(key, value, _)| (key == value, key)).collect();
    assert!(listed.iter().all(|(is_same, _)| *is_same));
    assert_eq!(listed.into_iter().map(|(_, key)| key).collect::<Vec<_>>(), keys);
}

pub(crate) fn a_commit_does_all_in_order_at_one_revision(store: &dyn Store) {
    let first = put(store, "a", "1");
    let ops = [Op::put("b", "1"), Op::delete("a"), Op::put("c", "1"), Op::put("c", "2"), Op::delete("none")];
    let second = done(store, &ops, &[]);
    assert!(second > first);
    let expected = [("b", "1"), ("c", "2")].map(|(key, value)| (key.to_owned(), value.to_owned(), second));
    assert_eq!(entries(store, ""), expected);
}

pub(crate) fn a_commit_with_a_compare_that_does_not_hold_does_nothing(store: &dyn Store) {
    let first = put(store, "a", "1");
    let second = put(store, "b", "1");
    for (compare, holds) in [
        (Compare::unchanged("a", first), true),
        (Compare::unchanged("a", second), false),
        (Compare::unchanged("a", Revision::MAX), false),
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

pub(crate) fn a_watch_tells_what_is_done_after_a_revision(store: &dyn Store) {
    let first = put(store, "b/1", "1");
    let mut watch = store.watch("b/", first).unwrap();
    assert_eq!(watch.next(Duration::ZERO).unwrap(), []);
    put(store, "a", "1");
    let second = put(store, "b/2", "2");
    let third = done(store, &[Op::delete("b/1"), Op::put("c", "1"), Op::put("b/3", "3")], &[]);
    let events = next(&mut watch, 3);
    assert_eq!(events.iter().map(|event| event.revision).collect::<Vec<_>>(), [second, third, third]);
    let ops: Vec<_> = events.into_iter().map(|event| event.op).collect();
    assert_eq!(ops, [Op::put("b/2", "2"), Op::delete("b/1"), Op::put("b/3", "3")]);
    // Who comes later is told the same, of each revision all.
    assert_eq!(seen(&mut store.watch("b/", first).unwrap(), 3), ops);
    assert_eq!(seen(&mut store.watch("b/", second).unwrap(), 2), ops[1..]);
    // There was nothing else.
    put(store, "b/4", "4");
    assert_eq!(seen(&mut watch, 1), [Op::put("b/4", "4")]);
}

pub(crate) fn a_watch_wakes_who_waits(store: &Arc<dyn Store>) {
    let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
    let writer = store.clone();
    let writing = std::thread::spawn(move || put(&*writer, "a", "1"));
    assert_eq!(watch.next(LONG).unwrap().len(), 1);
    writing.join().unwrap();
}

/// Nobody says when he has been slow enough: after so much he has.
pub(crate) fn who_is_too_slow_is_told_to_list_again(store: &dyn Store) {
    let mut slow = store.watch("", store.list("").unwrap().revision).unwrap();
    let many: Vec<_> = (0..100).map(|number| Op::put(format!("{number}"), "v")).collect();
    for _ in 0..10 {
        for _ in 0..300 {
            done(store, &many, &[]);
        }
        match slow.next(Duration::ZERO) {
            Ok(_) => {}
            Err(error) => return assert!(matches!(error, StoreError::Compacted), "{error}"),
        }
    }
    panic!("all is kept for who is slow");
}

pub(crate) fn what_is_empty_is_there(store: &dyn Store) {
    let _ = store.commit(&[Op::put("", ""), Op::put("a", "")], &[]).unwrap();
    assert_eq!(entries(store, "").len(), 2);
    assert_eq!(store.commit(&[], &[Compare::absent("a")]).unwrap(), Commit::Conflict);
    let revision = store.list("").unwrap().entries[0].revision;
    assert!(matches!(store.commit(&[], &[Compare::unchanged("a", revision)]).unwrap(), Commit::Done(_)));
}

pub(crate) fn what_is_within_its_limits_is_one_commit(store: &dyn Store) {
    let limits = store.limits();
    let (ops, compares, bytes) = (limits.ops.min(1000), limits.compares.min(1000), limits.bytes.min(4 << 20));
    let key = |number: usize| format!("{number:03}");
    let mut many: Vec<_> = (0..ops).map(|number| Op::put(key(number), "")).collect();
    let compares: Vec<_> = (0..compares).map(|number| Compare::absent(key(number))).collect();
    let rest = bytes - key(0).len() * (ops + compares.len());
    many[0] = Op::put(key(0), vec![0; rest]);
    done(store, &many, &compares);
    assert_eq!(store.list("").unwrap().entries.len(), ops);
    if bytes == limits.bytes {
        many[0] = Op::put(key(0), vec![0; bytes]);
        assert!(matches!(store.commit(&many, &[]), Err(StoreError::TooLarge { .. })));
        many.push(Op::delete("x"));
        many[0] = Op::delete(key(0));
        assert!(matches!(store.commit(&many, &[]), Err(StoreError::TooLarge { .. })));
    }
}
