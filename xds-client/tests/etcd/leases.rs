//! One writes at a time, and who was one before does not.

use std::time::Duration;

use xdstp_client::state::{Commit, Compare, Etcd, EtcdOptions, Op, Store, StoreError};

use crate::cluster::{Cluster, PREFIX};
use crate::proxy::Proxy;
use crate::suite::{LONG, done, entries, put, seen};

const KEY: &str = "pub/scope";

#[test]
fn a_key_is_had_by_one_until_he_gives_it_back() {
    let cluster = Cluster::start(1);
    let (one, other) = (cluster.store(PREFIX), cluster.store(PREFIX));
    let lease = one.lease(KEY, "one", LONG).unwrap().unwrap();
    assert!(lease.is_held());
    assert!(other.lease(KEY, "other", LONG).unwrap().is_none());
    let mut watch = other.watch(KEY, other.list(KEY).unwrap().revision).unwrap();
    let late = lease.store();
    done(&late, &[Op::put("ctl", "one")], &[Compare::absent("ctl")]);
    assert_eq!(late.commit(&[Op::put("ctl", "one")], &[Compare::absent("ctl")]).unwrap(), Commit::Conflict);
    lease.release().unwrap();
    assert_eq!(seen(&mut watch, 1), [Op::delete(KEY)]);
    assert!(matches!(late.commit(&[Op::put("ctl", "late")], &[]), Err(StoreError::Fenced)));
    let lease = other.lease(KEY, "other", LONG).unwrap().unwrap();
    assert!(matches!(late.commit(&[Op::put("ctl", "late")], &[]), Err(StoreError::Fenced)));
    done(&lease.store(), &[Op::put("ctl", "other")], &[]);
    assert_eq!(entries(&one, "ctl")[0].1, "other");
}

#[test]
fn a_key_is_given_back_by_who_ends() {
    let cluster = Cluster::start(1);
    let (one, other) = (cluster.store(PREFIX), cluster.store(PREFIX));
    let lease = one.lease(KEY, "one", LONG).unwrap().unwrap();
    let mut watch = other.watch(KEY, other.list(KEY).unwrap().revision).unwrap();
    drop(lease);
    assert_eq!(seen(&mut watch, 1), [Op::delete(KEY)]);
}

#[test]
fn a_key_that_is_put_anew_by_its_lease_goes_with_it() {
    let cluster = Cluster::start(1);
    let store = cluster.store(PREFIX);
    let lease = store.lease("relay/1", "here", LONG).unwrap().unwrap();
    let mut watch = store.watch("relay/", store.list("").unwrap().revision).unwrap();
    for status in ["1", "2"] {
        put(&lease.store(), "relay/1", status);
    }
    lease.release().unwrap();
    assert_eq!(seen(&mut watch, 3), [Op::put("relay/1", "1"), Op::put("relay/1", "2"), Op::delete("relay/1")]);
}

#[test]
fn who_falls_silent_loses_the_key_and_can_write_nothing_when_he_is_back() {
    let cluster = Cluster::start(1);
    let proxy = Proxy::to(cluster.port(0));
    let one = Etcd::open(EtcdOptions::new([proxy.endpoint()], PREFIX).unwrap()).unwrap();
    let other = cluster.store(PREFIX);
    let lease = one.lease(KEY, "one", Duration::from_secs(2)).unwrap().unwrap();
    let mut watch = other.watch(KEY, other.list(KEY).unwrap().revision).unwrap();
    // While it is kept it is had, longer than it lasts.
    assert_eq!(watch.next(Duration::from_secs(5)).unwrap(), []);
    assert!(lease.is_held());
    proxy.cut();
    assert_eq!(seen(&mut watch, 1), [Op::delete(KEY)]);
    let taken = other.lease(KEY, "other", LONG).unwrap().unwrap();
    assert!(!lease.is_held());
    proxy.mend();
    assert!(matches!(lease.store().commit(&[Op::put("ctl", "late")], &[]), Err(StoreError::Fenced)));
    assert!(taken.is_held() && entries(&other, "ctl").is_empty());
    lease.release().unwrap();
    assert!(taken.is_held() && entries(&other, KEY).len() == 1);
}

#[test]
fn a_lease_outlives_the_leader() {
    let mut cluster = Cluster::start(3);
    let store = cluster.store(PREFIX);
    let lease = store.lease(KEY, "one", Duration::from_secs(4)).unwrap().unwrap();
    let mut watch = store.watch(KEY, store.list(KEY).unwrap().revision).unwrap();
    cluster.kill(cluster.leader());
    assert_eq!(watch.next(Duration::from_secs(10)).unwrap(), []);
    done(&lease.store(), &[Op::put("ctl", "one")], &[]);
}
