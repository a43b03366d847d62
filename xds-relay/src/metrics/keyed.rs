//! What is counted of origins that are values under keys.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{Counter, Metrics, counters, gauges, registered, signed};

/// Of the origins of which somebody has the keys.
#[derive(Debug)]
pub(super) struct Keyed {
    up: IntGaugeVec,
    changes: IntCounterVec,
    refused: IntGaugeVec,
    held: IntGaugeVec,
}

impl Keyed {
    pub(super) fn etcd(registry: &Registry) -> Self {
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

    pub(super) fn kubernetes(registry: &Registry) -> Self {
        let gauge = |name, help| registered(registry, gauges(name, help, &["origin"]));
        Self {
            up: gauge("kubernetes_origin_up", "Whether the API server answered when it was asked last."),
            changes: counters(
                registry,
                "kubernetes_origin_changes_total",
                "Times that what an origin has in Kubernetes changed.",
                &["origin"],
            ),
            refused: gauge(
                "kubernetes_origin_refused_values",
                "Values of objects that are refused now, or have a resource that another one has.",
            ),
            held: gauge(
                "kubernetes_origin_held_removals",
                "Resources that are gone from Kubernetes, and served until that is seen again.",
            ),
        }
    }

    fn of(&self, origin: &str) -> KeyedMetrics {
        let gauge = |gauges: &IntGaugeVec| gauges.with_label_values(&[origin]);
        KeyedMetrics {
            changes: Counter(self.changes.with_label_values(&[origin])),
            up: gauge(&self.up),
            refused: gauge(&self.refused),
            held: gauge(&self.held),
        }
    }
}

/// What is counted of one such origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyedMetrics {
    /// What it has changed.
    pub changes: Counter,
    up: IntGauge,
    refused: IntGauge,
    held: IntGauge,
}

impl KeyedMetrics {
    /// How it is now: whether who has its keys answers, how many values are refused, and how much is gone and served.
    pub fn set(&self, is_up: bool, refused: u64, held: usize) {
        self.up.set(i64::from(is_up));
        self.refused.set(signed(refused));
        self.held.set(signed(held as u64));
    }
}

impl Metrics {
    /// The numbers of an origin that is keys of etcd.
    #[must_use]
    pub fn etcd(&self, origin: &str) -> KeyedMetrics {
        self.upstream_refused.with_label_values(&[origin]);
        self.etcd.of(origin)
    }

    /// The numbers of an origin that is objects of Kubernetes.
    #[must_use]
    pub fn kubernetes(&self, origin: &str) -> KeyedMetrics {
        self.upstream_refused.with_label_values(&[origin]);
        self.kubernetes.of(origin)
    }
}
