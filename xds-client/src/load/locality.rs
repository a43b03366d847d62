//! What is counted of one locality, and of its endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use xds_transport::wire::Locality;
use xds_transport::wire::load_report::{UnnamedEndpointLoadMetricStats, UpstreamLocalityStats};

use super::bounds::{Bounds, MOST_ENDPOINT_METRICS, MOST_METRICS, Room, What};
use super::calls::{Calls, Taken};
use super::endpoints::{Endpoint, Endpoints, address_of};
use super::sums::{Sums, named, parts};

/// A locality by its region, zone and sub-zone.
pub(super) type Place = (String, String, String);

/// How many requests there were since the last report, and how many are not over.
#[derive(Debug)]
pub(super) struct Requests {
    bounds: Arc<Bounds>,
    /// Those of clusters that are not counted are in no report.
    is_counted: bool,
    calls: Calls,
    metrics: Mutex<Metrics>,
    endpoints: Endpoints,
    _room: Option<Room>,
}

#[derive(Debug, Default)]
struct Metrics {
    own: Sums<String>,
    of_endpoints: Sums<(SocketAddr, String)>,
}

pub(super) fn place(Locality { region, zone, sub_zone }: &Locality) -> Place {
    (region.clone(), zone.clone(), sub_zone.clone())
}

impl Requests {
    pub(super) fn new(bounds: Arc<Bounds>, room: Option<Room>) -> Self {
        Self {
            bounds,
            is_counted: true,
            calls: Calls::default(),
            metrics: Mutex::default(),
            endpoints: Endpoints::default(),
            _room: room,
        }
    }

    /// Those of a cluster that is not counted.
    pub(super) fn uncounted(bounds: Arc<Bounds>) -> Self {
        Self { is_counted: false, ..Self::new(bounds, None) }
    }

    /// An endpoint at an address, if it is told apart.
    pub(super) fn endpoint(&self, address: SocketAddr) -> Option<Arc<Endpoint>> {
        if !self.is_counted {
            return None;
        }
        let (endpoint, left_out) = self.endpoints.of(address, &self.bounds);
        self.bounds.leave_out(What::Endpoints, left_out);
        endpoint
    }

    pub(super) fn started(&self, endpoint: Option<&Endpoint>) {
        if !self.is_counted {
            return self.bounds.leave_out(What::Calls, 1);
        }
        self.calls.started();
        endpoint.iter().for_each(|endpoint| endpoint.calls().started());
    }

    pub(super) fn finished(&self, succeeded: bool, metrics: &[(&str, f64)], endpoint: Option<&Endpoint>) {
        if !self.is_counted {
            return;
        }
        self.calls.finished(succeeded);
        endpoint.iter().for_each(|endpoint| endpoint.calls().finished(succeeded));
        // What is no number would make the whole sum none.
        let values = metrics.iter().filter(|(_, value)| value.is_finite()).map(|&(name, value)| (name, 1, value));
        let at = endpoint.map(Endpoint::address);
        self.add_metrics(values, |known, name, value, bounds| {
            let own = known.own.add(name.to_owned(), name.len(), MOST_METRICS, value, bounds);
            let add =
                |at| known.of_endpoints.add((at, name.to_owned()), name.len(), MOST_ENDPOINT_METRICS, value, bounds);
            own & at.is_none_or(add)
        });
    }

    /// Adds metrics by their names, counts and sums, and counts those that there is no room for.
    fn add_metrics<'a>(
        &self,
        metrics: impl Iterator<Item = (&'a str, u64, f64)>,
        mut add: impl FnMut(&mut Metrics, &'a str, (u64, f64), &Arc<Bounds>) -> bool,
    ) {
        let mut metrics = metrics.peekable();
        if metrics.peek().is_none() {
            return;
        }
        let (mut known, mut left_out) = (self.metrics.lock(), 0);
        for (name, count, total) in metrics {
            if !add(&mut known, name, (count, total), &self.bounds) {
                left_out += count;
            }
        }
        drop(known);
        self.bounds.leave_out(What::Metrics, left_out);
    }

    /// What there is to report, which counts from nothing then, but for what is not over. Endpoints are told apart if they are
    /// asked for.
    pub(super) fn take(&self, (region, zone, sub_zone): &Place, with_endpoints: bool) -> UpstreamLocalityStats {
        let Taken { issued, succeeded, failed, in_progress } = self.calls.take();
        let mut stats = UpstreamLocalityStats {
            locality: Some(Locality { region: region.clone(), zone: zone.clone(), sub_zone: sub_zone.clone() }),
            total_issued_requests: issued,
            total_successful_requests: succeeded,
            total_error_requests: failed,
            total_requests_in_progress: in_progress,
            ..UpstreamLocalityStats::default()
        };
        let Metrics { own, of_endpoints } = std::mem::take(&mut *self.metrics.lock());
        for (metric_name, sum) in own {
            let unnamed = UnnamedEndpointLoadMetricStats {
                num_requests_finished_with_metric: sum.count,
                total_metric_value: sum.total,
            };
            // gRFC A85.
            match metric_name.as_str() {
                "cpu_utilization" => stats.cpu_utilization = Some(unnamed),
                "mem_utilization" => stats.mem_utilization = Some(unnamed),
                "application_utilization" => stats.application_utilization = Some(unnamed),
                _ => stats.load_metric_stats.push(named(metric_name, &sum)),
            }
        }
        let endpoints = self.endpoints.take(of_endpoints);
        if with_endpoints {
            stats.upstream_endpoint_stats = endpoints;
        }
        stats
    }

    /// What was taken is to be reported with what came since.
    pub(super) fn put_back(&self, stats: &UpstreamLocalityStats) {
        if !self.is_counted {
            return self.bounds.leave_out(What::Calls, stats.total_issued_requests);
        }
        self.calls.put_back(Taken {
            issued: stats.total_issued_requests,
            succeeded: stats.total_successful_requests,
            failed: stats.total_error_requests,
            in_progress: 0,
        });
        let unnamed = [
            ("cpu_utilization", &stats.cpu_utilization),
            ("mem_utilization", &stats.mem_utilization),
            ("application_utilization", &stats.application_utilization),
        ];
        let unnamed = unnamed.into_iter().filter_map(|(name, sum)| {
            sum.map(|sum| (name, sum.num_requests_finished_with_metric, sum.total_metric_value))
        });
        self.add_metrics(unnamed.chain(stats.load_metric_stats.iter().map(parts)), |known, name, value, bounds| {
            known.own.add(name.to_owned(), name.len(), MOST_METRICS, value, bounds)
        });
        for stats in &stats.upstream_endpoint_stats {
            let Some(endpoint) = address_of(stats).and_then(|address| self.endpoint(address)) else { continue };
            endpoint.put_back(stats);
            self.add_metrics(stats.load_metric_stats.iter().map(parts), |known, name, value, bounds| {
                let key = (endpoint.address(), name.to_owned());
                known.of_endpoints.add(key, name.len(), MOST_ENDPOINT_METRICS, value, bounds)
            });
        }
    }

    /// What was counted there is that of another locality, which is told apart.
    pub(super) fn fold_into(&self, other: &Self, with: &Place) {
        other.put_back(&self.take(with, false));
    }

    pub(super) fn issued(&self) -> u64 {
        self.calls.issued()
    }

    /// Whether there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}
