//! What is counted of origins that are keys of etcd.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{Counter, Metrics, counters, gauges, registered, signed};

#[derive(Debug)]
pub(super) struct Etcd {
    up: IntGaugeVec,
    changes: IntCounterVec,
    refused: IntGaugeVec,
    held: IntGaugeVec,
}

impl Etcd {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name, help| registered(registry, gauges(name, help, &["origin"]));
        Self {
            up: gauge("etcd_origin_up", "Whether etcd answered when it was asked last."),
            changes: counters(
                registry,
                "etcd_origin_changes_total",
                "Times that what an origin has in etcd changed.",
                &["origin"],
            ),
            refused: gauge("etcd_origin_refused_keys", "Keys whose value is refused now."),
            held: gauge(
                "etcd_origin_held_removals",
                "Keys that are gone from etcd, and served until that is seen again.",
            ),
        }
    }
}

/// What is counted of one such origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EtcdMetrics {
    /// What it has changed.
    pub changes: Counter,
    up: IntGauge,
    refused: IntGauge,
    held: IntGauge,
}

impl EtcdMetrics {
    /// How it is now: whether it answers, how many keys have a value that is refused, and how many are gone and served.
    pub fn set(&self, is_up: bool, refused: u64, held: usize) {
        self.up.set(i64::from(is_up));
        self.refused.set(signed(refused));
        self.held.set(signed(held as u64));
    }
}

impl Metrics {
    /// The numbers of an origin that is keys of etcd.
    #[must_use]
    pub fn etcd(&self, origin: &str) -> EtcdMetrics {
        self.upstream_refused.with_label_values(&[origin]);
        let gauge = |gauges: &IntGaugeVec| gauges.with_label_values(&[origin]);
        EtcdMetrics {
            changes: Counter(self.etcd.changes.with_label_values(&[origin])),
            up: gauge(&self.etcd.up),
            refused: gauge(&self.etcd.refused),
            held: gauge(&self.etcd.held),
        }
    }
}
