//! Etcd that is away, or says what it should not.

use xdstp_client::state::Store as _;

use crate::cluster::Cluster;
use crate::proxy::Proxy;
use crate::relays::{CLUSTER, Running, Watching};

fn put(cluster: &Cluster, name: &str, timeout: u32) {
    let text = format!("{{'@type': type.googleapis.com/{CLUSTER}, connect_timeout: {timeout}s}}");
    cluster.control(&["put", &format!("mesh/res/{CLUSTER}/{name}"), &text]);
}

#[test]
fn a_relay_that_starts_while_etcd_is_away_is_not_ready_and_says_nothing_until_it_knows() {
    let mut cluster = Cluster::start(1);
    put(&cluster, "web", 1);
    cluster.kill(0);
    let relay = Running::start(&cluster.endpoints());
    let mut watch = Watching::of(&relay, "web");
    let page = relay.until("/readyz", |status, _| status == 503);
    assert!(page.contains("its content has not come yet"), "{page}");
    relay.until("/api/v1/status", |_, page| page.contains("etcd is away, and nothing is known"));
    assert!(watch.is_quiet(), "that it does not exist, for instance");
    cluster.restart(0);
    assert_eq!(watch.next(), "web 1s");
    assert_eq!(relay.page("/readyz").0, 200);
}

#[test]
fn while_etcd_is_away_nothing_is_removed_and_what_was_missed_comes() {
    let mut cluster = Cluster::start(1);
    put(&cluster, "web", 1);
    let relay = Running::start(&cluster.endpoints());
    let mut watch = Watching::of(&relay, "web");
    assert_eq!(watch.next(), "web 1s");
    cluster.kill(0);
    relay.until("/api/v1/status", |_, page| page.contains("etcd is away, and all stays as it is"));
    assert_eq!(relay.page("/readyz").0, 200);
    assert!(relay.page("/metrics").1.contains("xds_relay_etcd_origin_up{origin=\"kv\"} 0"));
    let mut late = Watching::of(&relay, "web");
    assert_eq!(late.next(), "web 1s");
    cluster.restart(0);
    cluster.wait();
    put(&cluster, "web", 2);
    assert_eq!(watch.next(), "web 2s");
    relay.until("/metrics", |_, page| page.contains("xds_relay_etcd_origin_up{origin=\"kv\"} 1"));
    assert!(watch.is_quiet());
}

#[test]
fn a_value_that_is_not_good_is_shown_and_counted_and_the_last_good_one_stays() {
    let cluster = Cluster::start(1);
    put(&cluster, "web", 1);
    let relay = Running::start(&cluster.endpoints());
    let mut watch = Watching::of(&relay, "web");
    assert_eq!(watch.next(), "web 1s");
    cluster.control(&["put", &format!("mesh/res/{CLUSTER}/web"), "{'@type': nothing}"]);
    let refused = relay.until("/api/v1/status", |_, page| page.contains("a value is refused"));
    assert!(refused.contains(&format!("mesh/res/{CLUSTER}/web")), "{refused}");
    let metrics = relay.page("/metrics").1;
    assert!(metrics.contains("xds_relay_etcd_origin_refused_keys{origin=\"kv\"} 1"), "{metrics}");
    assert!(metrics.contains("xds_relay_upstream_refused_total{origin=\"kv\"} 1"), "{metrics}");
    put(&cluster, "web", 2);
    assert_eq!(watch.next(), "web 2s");
    relay.until("/api/v1/status", |_, page| !page.contains("refused:"));
}

#[test]
fn what_was_compacted_while_one_relay_was_cut_off_is_listed_again_and_both_agree() {
    let cluster = Cluster::start(1);
    for name in ["web", "old"] {
        put(&cluster, name, 1);
    }
    let proxy = Proxy::to(cluster.port(0));
    let relays = [Running::start(&cluster.endpoints()), Running::start(&[proxy.endpoint()])];
    let mut watches = relays.each_ref().map(|relay| ["web", "old"].map(|name| Watching::of(relay, name)));
    for [web, old] in &mut watches {
        assert_eq!((web.next(), old.next()), ("web 1s".to_owned(), "old 1s".to_owned()));
    }
    proxy.cut();
    put(&cluster, "web", 2);
    cluster.control(&["del", &format!("mesh/res/{CLUSTER}/old")]);
    put(&cluster, "web", 3);
    cluster.compact(cluster.store("mesh/").list("").unwrap().revision);
    let [[web, old], [cut_web, cut_old]] = &mut watches;
    while web.next() != "web 3s" {}
    assert!(old.next().contains("does not exist"));
    assert!(cut_web.is_quiet() && cut_old.is_quiet());
    proxy.mend();
    assert_eq!(cut_web.next(), "web 3s", "what was in between is not known any more");
    assert!(cut_old.next().contains("does not exist"));
}

#[test]
fn another_cluster_at_the_same_address_is_listed_anew() {
    let mut cluster = Cluster::start(1);
    put(&cluster, "web", 1);
    let relay = Running::start(&cluster.endpoints());
    let mut watch = Watching::of(&relay, "web");
    assert_eq!(watch.next(), "web 1s");
    // It is another cluster, of which nothing is known.
    cluster.become_another();
    put(&cluster, "web", 2);
    loop {
        let next = watch.next();
        if next == "web 2s" {
            break;
        }
        assert!(next.contains("does not exist"), "{next}");
    }
}

#[test]
fn all_that_goes_in_one_transaction_stays_for_a_while() {
    let cluster = Cluster::start(1);
    for number in 0..20 {
        put(&cluster, &format!("c{number}"), 1);
    }
    let relay = Running::start(&cluster.endpoints());
    let mut watch = Watching::of(&relay, "c7");
    assert_eq!(watch.next(), "c7 1s");
    cluster.control(&["del", "--prefix", "mesh/"]);
    let held = |page: &str| page.contains("xds_relay_etcd_origin_held_removals{origin=\"kv\"} 20");
    relay.until("/metrics", |_, page| held(page));
    assert!(watch.is_quiet());
    // Put back, it is as if nothing had been.
    for number in 0..20 {
        put(&cluster, &format!("c{number}"), if number == 7 { 2 } else { 1 });
    }
    assert_eq!(watch.next(), "c7 2s");
    assert!(relay.page("/metrics").1.contains("xds_relay_etcd_origin_held_removals{origin=\"kv\"} 0"));
}
