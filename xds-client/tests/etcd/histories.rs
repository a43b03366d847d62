//! What was missed, and what never was.

use std::thread;

use xdstp_client::state::{Etcd, EtcdOptions, Op, Store, StoreError, Watch};

use crate::cluster::{Cluster, LONG, PREFIX};
use crate::proxy::Proxy;
use crate::suite::{done, entries, put, seen};

fn is_to_list_again(watch: &mut Watch) -> bool {
    matches!(watch.next(LONG), Err(StoreError::Compacted))
}

fn by(proxy: &Proxy) -> Etcd {
    Etcd::open(EtcdOptions::new([proxy.endpoint()], PREFIX).unwrap()).unwrap()
}

#[test]
fn what_is_done_while_the_connection_is_away_is_told_after_it() {
    let cluster = Cluster::start(1);
    let (proxy, direct) = (Proxy::to(cluster.port(0)), cluster.store(PREFIX));
    let store = by(&proxy);
    let mut watch = store.watch("", put(&direct, "a", "1")).unwrap();
    put(&direct, "b", "1");
    assert_eq!(seen(&mut watch, 1), [Op::put("b", "1")]);
    for round in 0..5 {
        proxy.cut();
        let ops: Vec<_> = (0..20).map(|number| Op::put(format!("{round}/{number:02}"), "v")).collect();
        for op in &ops {
            done(&direct, std::slice::from_ref(op), &[]);
        }
        proxy.mend();
        assert_eq!(seen(&mut watch, ops.len()), ops);
    }
}

#[test]
fn what_is_compacted_while_the_connection_is_away_is_to_be_listed_again() {
    let cluster = Cluster::start(1);
    let (proxy, direct) = (Proxy::to(cluster.port(0)), cluster.store(PREFIX));
    let store = by(&proxy);
    let first = put(&direct, "a", "1");
    let mut watch = store.watch("", first).unwrap();
    proxy.cut();
    put(&direct, "a", "2");
    let last = done(&direct, &[Op::delete("a")], &[]);
    cluster.compact(last);
    proxy.mend();
    assert!(is_to_list_again(&mut watch));
    assert!(is_to_list_again(&mut watch), "for ever");
    assert!(matches!(store.watch("", first), Err(StoreError::Compacted)));
    // From what is still there it goes on.
    let mut watch = store.watch("", last).unwrap();
    put(&store, "b", "1");
    assert_eq!(seen(&mut watch, 1), [Op::put("b", "1")]);
}

#[test]
fn where_an_earlier_state_was_put_back_all_is_to_be_listed_again() {
    let mut cluster = Cluster::start(1);
    let store = cluster.store(PREFIX);
    let first = put(&store, "a", "1");
    let snapshot = cluster.directory.path().join("snapshot");
    cluster.control(&["snapshot", "save", snapshot.to_str().unwrap()]);
    let last = (0..50).map(|_| put(&store, "b", "1")).max().unwrap();
    let mut watch = store.watch("", last).unwrap();
    let mut old = store.watch("", first).unwrap();
    assert_eq!(seen(&mut old, 50).len(), 50);
    cluster.restore(&snapshot);
    assert!(is_to_list_again(&mut watch) && is_to_list_again(&mut old));
    assert!(matches!(store.watch("", last), Err(StoreError::Compacted)));
    assert_eq!(entries(&store, "").len(), 1);
    let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
    put(&store, "c", "1");
    assert_eq!(seen(&mut watch, 1).len(), 1);
}

/// It is the same cluster by all that it says, and knows more than before.
#[test]
fn where_an_earlier_state_was_put_back_and_has_gone_on_since_all_is_to_be_listed_again() {
    let mut cluster = Cluster::start(1);
    let direct = cluster.store(PREFIX);
    let first = put(&direct, "a", "1");
    let snapshot = cluster.directory.path().join("snapshot");
    cluster.control(&["snapshot", "save", snapshot.to_str().unwrap()]);
    let proxy = Proxy::to(cluster.port(0));
    let away = by(&proxy);
    let mut watch = away.watch("", first).unwrap();
    put(&direct, "b", "1");
    assert_eq!(seen(&mut watch, 1), [Op::put("b", "1")]);
    proxy.cut();
    cluster.restore(&snapshot);
    for _ in 0..50 {
        put(&cluster.store(PREFIX), "c", "1");
    }
    proxy.mend();
    assert!(is_to_list_again(&mut watch));
}

/// It has come further than the one that was there, when somebody looks again.
#[test]
fn where_another_cluster_is_all_is_to_be_listed_again() {
    let mut cluster = Cluster::start(1);
    let store = cluster.store(PREFIX);
    let last = put(&store, "a", "1");
    let mut watch = store.watch("", last).unwrap();
    let proxy = Proxy::to(cluster.port(0));
    let away = by(&proxy);
    let mut late = away.watch("", last).unwrap();
    proxy.cut();
    cluster.become_another();
    assert!(is_to_list_again(&mut watch));
    let direct = cluster.store(PREFIX);
    let there = (0..50).map(|_| put(&direct, "b", "1")).max().unwrap();
    assert!(there > last);
    proxy.mend();
    assert!(is_to_list_again(&mut late));
    assert_eq!(entries(&away, "").len(), 1);
    assert!(matches!(away.watch("", last), Err(StoreError::Compacted)), "a revision of the other");
    assert_eq!(entries(&store, "").len(), 1);
}

#[test]
fn a_listing_is_of_one_revision_while_others_write_and_compact() {
    let cluster = Cluster::start(1);
    let store = cluster.store(PREFIX);
    let write = |generation: usize| {
        for part in 0..20 {
            let key = |number| format!("{:04}", part * 100 + number);
            let ops: Vec<_> = (0..100).map(|number| Op::put(key(number), generation.to_string())).collect();
            done(&store, &ops, &[]);
        }
    };
    write(0);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for generation in 1..20 {
                write(generation);
                cluster.compact(store.list("none").unwrap().revision);
            }
        });
        while !writing.is_finished() {
            // Each generation is written in order: at no revision is a later part of a later generation.
            let listing = entries(&store, "");
            let generations: Vec<usize> = listing.iter().map(|(_, value, _)| value.parse().unwrap()).collect();
            assert_eq!(generations.len(), 2000);
            assert!(generations.is_sorted_by(|one, next| one >= next), "of two revisions");
            assert!(generations[0] <= generations[1999] + 1);
        }
    });
}
