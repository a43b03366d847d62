//! How fast it is here: said, and not held against anybody.

use std::time::Instant;

use xdstp_client::state::{Op, Store};

use crate::cluster::{Cluster, PREFIX};
use crate::suite::{done, put, seen};

const KEYS: usize = 100_000;

#[test]
fn what_is_put_is_told_and_what_is_large_is_listed() {
    let cluster = Cluster::start(1);
    let store = cluster.store(PREFIX);
    let mut watch = store.watch("one", put(&store, "one", "0")).unwrap();
    let mut times: Vec<_> = (0..500)
        .map(|_| {
            let since = Instant::now();
            put(&store, "one", "1");
            assert_eq!(seen(&mut watch, 1).len(), 1);
            since.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("put → told: p50 {:?}, p99 {:?}", times[250], times[495]);

    let since = Instant::now();
    for part in 0..KEYS / 100 {
        let op = |number| Op::put(format!("many/{:06}", part * 100 + number), vec![b'v'; 1024]);
        done(&store, &(0..100).map(op).collect::<Vec<_>>(), &[]);
    }
    println!("{KEYS} × 1 KiB put in {:?}", since.elapsed());
    let since = Instant::now();
    assert_eq!(store.list("many/").unwrap().entries.len(), KEYS);
    println!("{KEYS} × 1 KiB listed in {:?}", since.elapsed());
}
