//! What is counted of drift, where it is looked for.

use std::collections::BTreeMap;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, Registry};

use super::{Metrics, counters, gauges, signed};

#[derive(Debug)]
pub(super) struct Drift {
    checks: IntCounterVec,
}

impl Drift {
    pub(super) fn new(registry: &Registry) -> Self {
        let help = "Scopes that were compared with what their origin has, by what came of it.";
        Self { checks: counters(registry, "drift_checks_total", help, &["origin", "result"]) }
    }
}

/// What was seen of drift when it was looked for last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftGauges {
    /// Origin → resources that are not served as it has them.
    pub resources: BTreeMap<String, u64>,
    /// Origin → for how long none of its scopes was looked at, in seconds.
    pub age_seconds: BTreeMap<String, u64>,
    /// Clients that were not sent what is served, though nothing waits for their answer.
    pub behind: u64,
    /// Clients that rejected what they were sent last.
    pub rejected: u64,
}

impl Metrics {
    /// Makes visible what is counted of an origin.
    pub fn declare_drift(&self, origin: &str) {
        RESULTS.iter().for_each(|result| _ = self.drift.checks.with_label_values(&[origin, result]));
    }

    /// A scope of an origin was compared.
    pub(crate) fn drift_checked(&self, origin: &str, result: &str) {
        self.drift.checks.with_label_values(&[origin, result]).inc();
    }
}

/// What may come of it.
const RESULTS: [&str; 3] = ["same", "differs", "unknown"];

pub(super) fn gather(now: Option<&DriftGauges>) -> Vec<MetricFamily> {
    let Some(now) = now else { return Vec::new() };
    let resources = gauges("drift_resources", "Resources that are not served as their origin has them.", &["origin"]);
    let age = gauges("drift_age_seconds", "For how long no scope of an origin was compared with it.", &["origin"]);
    for (of, by_origin) in [(&resources, &now.resources), (&age, &now.age_seconds)] {
        by_origin.iter().for_each(|(origin, count)| of.with_label_values(&[origin]).set(signed(*count)));
    }
    let clients = gauges("drift_clients", "Clients that do not have what is served, and why.", &["why"]);
    clients.with_label_values(&["behind"]).set(signed(now.behind));
    clients.with_label_values(&["rejected"]).set(signed(now.rejected));
    [resources, age, clients].iter().flat_map(Collector::collect).collect()
}
