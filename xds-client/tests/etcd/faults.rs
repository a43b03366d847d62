//! Members that end, and stores that go on.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use xdstp_client::state::{Commit, Etcd, EtcdOptions, Op, Revision, Store, StoreError};

use crate::cluster::{Cluster, LONG, PREFIX, until_it_answers};
use crate::suite::{entries, put, seen};

/// What was acknowledged, by key. What is not is tried again, by another key.
fn write_until(store: &Etcd, acknowledged: &AtomicUsize, enough: usize) -> BTreeMap<String, Revision> {
    let mut done = BTreeMap::new();
    for number in 0.. {
        let key = format!("{number:06}");
        match store.commit(&[Op::put(key.clone(), "v")], &[]) {
            Ok(Commit::Done(revision)) => _ = done.insert(key, revision),
            Ok(Commit::Conflict) => panic!("nothing to compare"),
            Err(error) => assert!(matches!(error, StoreError::Away(_) | StoreError::Unsure(_)), "{error}"),
        }
        acknowledged.store(done.len(), Ordering::SeqCst);
        if done.len() >= enough {
            break;
        }
    }
    done
}

#[test]
fn a_leader_that_is_killed_takes_nothing_with_it_and_a_watch_misses_nothing() {
    let mut cluster = Cluster::start(3);
    let store = cluster.store(PREFIX);
    let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
    let acknowledged = AtomicUsize::new(0);
    let done = thread::scope(|scope| {
        let writing = scope.spawn(|| write_until(&store, &acknowledged, 400));
        for enough in [100, 200, 300] {
            while acknowledged.load(Ordering::SeqCst) < enough {
                thread::yield_now();
            }
            let leader = cluster.leader();
            cluster.kill(leader);
            while acknowledged.load(Ordering::SeqCst) < enough + 50 {
                thread::yield_now();
            }
            cluster.restart(leader);
        }
        writing.join().unwrap()
    });
    let listed: BTreeMap<_, _> = entries(&store, "").into_iter().map(|(key, _, revision)| (key, revision)).collect();
    for (key, revision) in &done {
        assert_eq!(listed.get(key), Some(revision), "an acknowledged put is lost: {key}");
    }
    let mut told = BTreeMap::new();
    let mut last = 0;
    while told.len() < listed.len() {
        let events = watch.next(LONG).unwrap();
        assert!(!events.is_empty(), "{} of {} are told", told.len(), listed.len());
        for event in events {
            assert!(event.revision > last, "out of order, or twice");
            last = event.revision;
            told.insert(event.op.key().to_owned(), event.revision);
        }
    }
    assert_eq!(told, listed);
}

#[test]
fn without_a_majority_calls_fail_in_time_and_then_it_goes_on() {
    let mut cluster = Cluster::start(3);
    let options = EtcdOptions::new(cluster.endpoints(), PREFIX).unwrap();
    let store = Etcd::open(options.with_deadline(Duration::from_secs(1))).unwrap();
    let revision = put(&store, "a", "1");
    let mut watch = store.watch("", revision).unwrap();
    cluster.kill(0);
    cluster.kill(1);
    for _ in 0..3 {
        let since = Instant::now();
        assert!(matches!(store.list(""), Err(StoreError::Away(_))));
        let written = store.commit(&[Op::put("b", "1")], &[]);
        assert!(matches!(written, Err(StoreError::Away(_) | StoreError::Unsure(_))), "{written:?}");
        assert!(matches!(store.watch("", revision), Err(StoreError::Away(_))));
        assert!(matches!(store.lease("c", "1", LONG), Err(StoreError::Away(_))));
        // As long as four calls have, and as long again, and more.
        assert!(since.elapsed() < Duration::from_secs(30));
    }
    // Who waits meanwhile is told nothing, least of all that anything went.
    assert_eq!(watch.next(Duration::ZERO).unwrap(), []);
    cluster.restart(0);
    cluster.restart(1);
    until_it_answers(&store);
    assert_eq!(entries(&store, "a").len(), 1);
    put(&store, "d", "1");
    let mut told = Vec::new();
    while !told.contains(&Op::put("d", "1")) {
        told.extend(seen(&mut watch, 1));
    }
}

#[test]
fn a_member_that_is_away_or_says_nothing_is_left_for_the_next() {
    let cluster = Cluster::start(1);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The system takes connections for it, and nobody speaks there.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let [good] = &*cluster.endpoints() else { panic!("one member") };
    let members = [format!("http://{gone}"), format!("http://{}", silent.local_addr().unwrap()), good.clone()];
    let store = Etcd::open(EtcdOptions::new(members, PREFIX).unwrap()).unwrap();
    let revision = put(&store, "a", "1");
    assert_eq!(entries(&store, "").len(), 1);
    let mut watch = store.watch("", revision).unwrap();
    put(&store, "b", "1");
    assert_eq!(seen(&mut watch, 1).len(), 1);
}

#[test]
fn a_member_that_hangs_is_left_by_calls_and_by_watches() {
    let cluster = Cluster::start(3);
    let store = cluster.store(PREFIX);
    let mut watch = store.watch("", put(&store, "a", "1")).unwrap();
    // It is the first that is tried: all connections are to it.
    cluster.stop(0);
    // Who led may have to be followed first.
    until_it_answers(&store);
    let mut number = 0;
    let key = loop {
        number += 1;
        let key = number.to_string();
        match store.commit(&[Op::put(key.clone(), "1")], &[]) {
            Ok(_) => break key,
            Err(error) => assert!(matches!(error, StoreError::Away(_) | StoreError::Unsure(_)), "{error}"),
        }
    };
    let mut told = Vec::new();
    while told.last() != Some(&Op::put(key.clone(), "1")) {
        told.extend(seen(&mut watch, 1));
    }
}

#[test]
fn where_nobody_is_calls_say_who_was_asked_and_that_nothing_was_done() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = EtcdOptions::new([format!("http://{gone}")], PREFIX).unwrap();
    let store = Etcd::open(options.with_deadline(Duration::from_millis(300))).unwrap();
    match store.commit(&[Op::put("a", "1")], &[]) {
        Err(StoreError::Away(why)) => assert!(why.contains(&gone.to_string()), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Each is larger than what is under way at a time on a connection, unless somebody reads it.
#[test]
fn watches_that_nobody_reads_stop_no_writes() {
    let cluster = Cluster::start(1);
    let store = cluster.store(PREFIX);
    let revision = store.list("").unwrap().revision;
    let unread: Vec<_> = (0..4).map(|_| store.watch("", revision).unwrap()).collect();
    for number in 0..64 {
        let _ = store.commit(&[Op::put(format!("{}", number % 4), vec![0; 1 << 20])], &[]).unwrap();
    }
    drop(unread);
    assert_eq!(store.list("").unwrap().entries.len(), 4);
}
