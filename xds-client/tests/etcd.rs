//! The engine that is etcd, with real ones: `etcd` and `etcdctl` are to be there, as `.ci/run etcd` has them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "etcd/cluster.rs"]
mod cluster;
#[path = "etcd/faults.rs"]
mod faults;
#[path = "etcd/figures.rs"]
mod figures;
#[path = "etcd/histories.rs"]
mod histories;
#[path = "etcd/leases.rs"]
mod leases;
#[path = "etcd/proxy.rs"]
mod proxy;
#[path = "etcd/secure.rs"]
mod secure;
#[path = "engines/suite.rs"]
mod suite;

use std::sync::Arc;

use xdstp_client::state::Store;

use self::cluster::Cluster;

/// All that holds of every engine, each in keys of its own.
fn the_suite_holds(cluster: &Cluster) {
    let stores = |name: &str| cluster.store(&format!("suite/{name}/"));
    macro_rules! suite {
        ($($name:ident),* $(,)?) => { $(suite::$name(&stores(stringify!($name)));)* };
    }
    suite! {
        a_listing_has_what_begins_with_its_prefix_in_order_at_one_revision,
        a_long_listing_is_whole,
        a_commit_does_all_in_order_at_one_revision,
        a_commit_with_a_compare_that_does_not_hold_does_nothing,
        a_watch_tells_what_is_done_after_a_revision,
        who_is_too_slow_is_told_to_list_again,
        what_is_empty_is_there,
        what_one_key_has_is_read_without_what_begins_with_it,
        what_is_within_its_limits_is_one_commit,
    }
    let store: Arc<dyn Store> = Arc::new(stores("wakes"));
    suite::a_watch_wakes_who_waits(&store);
}

#[test]
fn the_suite_holds_on_one_node() {
    the_suite_holds(&Cluster::start(1));
}

#[test]
fn the_suite_holds_on_three_nodes() {
    the_suite_holds(&Cluster::start(3));
}
