//! What is counted of one locality.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use xds_transport::wire::Locality;
use xds_transport::wire::load_report::{
    EndpointLoadMetricStats, UnnamedEndpointLoadMetricStats, UpstreamLocalityStats,
};

/// How many metrics are kept of a locality: their names are those of whoever answers.
const MOST_METRICS: usize = 100;

/// A locality by its region, zone and sub-zone.
pub(super) type Place = (String, String, String);

/// How many requests there were since the last report, and how many are not over.
#[derive(Debug, Default)]
pub(super) struct Requests {
    issued: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    in_progress: AtomicU64,
    metrics: Mutex<BTreeMap<String, Metric>>,
}

#[derive(Debug, Default)]
struct Metric {
    requests: u64,
    total: f64,
}

pub(super) fn place(locality: &Locality) -> Place {
    (locality.region.clone(), locality.zone.clone(), locality.sub_zone.clone())
}

impl Requests {
    pub(super) fn started(&self) {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        self.issued.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn finished(&self, succeeded: bool, metrics: &[(&str, f64)]) {
        // One that was never started is none that is over.
        let _ = self.in_progress.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        let of_outcome = if succeeded { &self.succeeded } else { &self.failed };
        of_outcome.fetch_add(1, Ordering::Relaxed);
        if metrics.is_empty() {
            return;
        }
        let mut known = self.metrics.lock();
        // What is no number would make the whole sum none.
        for (name, value) in metrics.iter().filter(|(_, value)| value.is_finite()) {
            if !known.contains_key(*name) && known.len() >= MOST_METRICS {
                continue;
            }
            let metric = known.entry((*name).to_owned()).or_default();
            metric.requests += 1;
            metric.total += value;
        }
    }

    /// What there is to report, which counts from nothing then, but for what is not over.
    pub(super) fn take(&self, (region, zone, sub_zone): &Place) -> UpstreamLocalityStats {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let locality = Locality { region: region.clone(), zone: zone.clone(), sub_zone: sub_zone.clone() };
        let mut stats = UpstreamLocalityStats {
            locality: Some(locality),
            total_issued_requests: take(&self.issued),
            total_successful_requests: take(&self.succeeded),
            total_error_requests: take(&self.failed),
            total_requests_in_progress: self.in_progress.load(Ordering::Relaxed),
            ..UpstreamLocalityStats::default()
        };
        for (metric_name, Metric { requests, total }) in std::mem::take(&mut *self.metrics.lock()) {
            let unnamed = UnnamedEndpointLoadMetricStats {
                num_requests_finished_with_metric: requests,
                total_metric_value: total,
            };
            // gRFC A85.
            match metric_name.as_str() {
                "cpu_utilization" => stats.cpu_utilization = Some(unnamed),
                "mem_utilization" => stats.mem_utilization = Some(unnamed),
                "application_utilization" => stats.application_utilization = Some(unnamed),
                _ => stats.load_metric_stats.push(EndpointLoadMetricStats {
                    metric_name,
                    num_requests_finished_with_metric: requests,
                    total_metric_value: total,
                }),
            }
        }
        stats
    }

    /// Whether there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        [&self.issued, &self.succeeded, &self.failed, &self.in_progress]
            .iter()
            .all(|count| count.load(Ordering::Relaxed) == 0)
    }
}
