//! What is said of the configuration and the metrics is so: by README.md, and by what is made for operators.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of these tests")]

mod deployed;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use xds_relay::{
    Config,
    metrics::{CertificateTimes, DriftGauges, Gauges, Metrics, ReleaseGauges},
};
use xds_transport::Protocol;
use xdstp_client::federation::Observer as _;

const README: &str = include_str!("../README.md");

#[test]
fn the_configuration_with_the_defaults_is_the_shortest_one() {
    let written = README.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let shortest = "origins: [{ name: control-plane, server: 127.0.0.1:18010 }]\n";
    assert_eq!(Config::parse("README.md", written).unwrap(), Config::parse("shortest", shortest).unwrap());
}

/// Each configuration that the chapter on scale shows, from one process to a tree.
#[test]
fn what_is_shown_of_a_tree_is_a_configuration() {
    let Ok(book) = std::fs::read_to_string("../docs/scale.md") else { return };
    let shown: Vec<_> = book.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(shown.len(), 4);
    // Where relays run these are there.
    let directory = tempfile::tempdir().unwrap();
    let here = |place: &str| directory.path().join(place).to_str().unwrap().to_owned();
    std::fs::create_dir(here("mesh")).unwrap();
    for text in shown {
        let text =
            text.replace("/var/lib/xds-relay/state", &here("state")).replace("/etc/xds-relay-mesh", &here("mesh"));
        let config = Config::parse("relay.yaml", &text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(config.share_by.map(|fields| fields.len()), Some(1));
    }
}

/// All that a relay may tell.
fn everything() -> String {
    let metrics = Metrics::new([]);
    metrics.declare_origin("a");
    metrics.declare_server("a", "b:1");
    metrics.declare_limit("streams");
    metrics.declare_state();
    metrics.declare_load_reports("a");
    metrics.declare_denials();
    metrics.declare_traces();
    metrics.declare_drift("a");
    let rules =
        "{ origins: [{ name: a, server: 'a:1' }], clients: [{ match: { any: true }, limits: { streams: 1 } }] }";
    metrics.declare_client_limits(&Config::parse("relay.yaml", rules).unwrap().clients.unwrap());
    let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    let _handles = (metrics.downstream(type_url), metrics.upstream("a", type_url), metrics.reloads("a"));
    metrics.etcd("a").set(true, 0, 0);
    metrics.kubernetes("a").set(true, 0, 0);
    metrics.followed("a").set(true, 0, 0);
    let _halts = metrics.release_halts("a");
    let _timings = metrics.timings(type_url);
    metrics.spoke("a", Instant::now());
    let _open = metrics.stream_opened(Protocol::Delta);
    let now = Gauges {
        in_use: BTreeMap::from([(("a".to_owned(), "b:1".to_owned()), 1)]),
        resources: BTreeMap::from([(type_url.to_owned(), 1)]),
        stale: BTreeMap::from([("a".to_owned(), 1)]),
        state: Some(true),
        releases: BTreeMap::from([("a".to_owned(), ReleaseGauges { denied: Some(0), ..ReleaseGauges::default() })]),
        damaged: Some(1),
        drift: Some(DriftGauges {
            resources: BTreeMap::from([("a".to_owned(), 1)]),
            age_seconds: BTreeMap::from([("a".to_owned(), 1)]),
            ..DriftGauges::default()
        }),
        limits: BTreeMap::from([("streams", (1, 2))]),
        certificates: BTreeMap::from([("tls.certificate".to_owned(), CertificateTimes::default())]),
        ..Gauges::default()
    };
    metrics.render(&now)
}

#[test]
fn the_table_of_metrics_is_complete() {
    let text = everything();
    let rendered: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let listed = README.lines().filter_map(|line| line.strip_prefix("| `xds_relay_")?.split('`').next());
    let listed: BTreeSet<_> = listed.map(|name| format!("xds_relay_{name}")).collect();
    assert_eq!(listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), rendered);
}
