//! How long updates took, by type: histograms of what streams have counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use xds_transport::server::Latencies;

use super::{DownstreamMetrics, Metrics};

/// By the label of the type.
#[derive(Debug, Default)]
pub(super) struct ByType(Mutex<BTreeMap<String, Arc<Mutex<OfType>>>>);

/// What is known of one type.
#[derive(Debug, Default)]
pub(super) struct OfType {
    sent: Latencies,
    accepted: Latencies,
}

impl ByType {
    /// That of a label, which is there from now on.
    pub(super) fn of(&self, label: &str) -> Arc<Mutex<OfType>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(label.to_owned()).or_default().clone()
    }
}

impl DownstreamMetrics {
    /// Counts what was sent so long after it came, and was accepted so long after that.
    pub(crate) fn took(&self, sent_after: &Latencies, accepted_after: &Latencies) {
        let mut of = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        of.sent.add(sent_after);
        of.accepted.add(accepted_after);
    }
}

impl Metrics {
    pub(super) fn gather_latencies(&self) -> [MetricFamily; 2] {
        let by_type = self.latencies.0.lock().unwrap_or_else(PoisonError::into_inner);
        let family = |name: &str, help: &str, of: fn(&OfType) -> &Latencies| {
            let mut family = MetricFamily::default();
            family.set_name(format!("xds_relay_{name}"));
            family.set_help(help.to_owned());
            family.set_field_type(MetricType::HISTOGRAM);
            let of_label = |(label, latencies): (&String, &Arc<Mutex<OfType>>)| {
                metric(label, of(&latencies.lock().unwrap_or_else(PoisonError::into_inner)))
            };
            family.set_metric(by_type.iter().map(of_label).collect());
            family
        };
        [
            family(
                "downstream_sent_after_seconds",
                "From when an origin's response came until what is new in it began to be sent, for each subscription.",
                |of| &of.sent,
            ),
            family(
                "downstream_acked_after_seconds",
                "From when a response began to be sent to a subscriber until that accepted it.",
                |of| &of.accepted,
            ),
        ]
    }
}

fn metric(label: &str, latencies: &Latencies) -> Metric {
    let mut pair = LabelPair::default();
    pair.set_name("type".to_owned());
    pair.set_value(label.to_owned());
    let bucket = |(bound, so_far)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(so_far);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(latencies.buckets().map(bucket).collect());
    histogram.set_sample_count(latencies.count());
    histogram.set_sample_sum(latencies.sum().as_secs_f64());
    let mut metric = Metric::from_label(vec![pair]);
    metric.set_histogram(histogram);
    metric
}
