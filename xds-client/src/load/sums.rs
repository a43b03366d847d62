//! Counts and sums by names that are others' own.

use std::collections::BTreeMap;
use std::sync::Arc;

use xds_transport::wire::load_report::EndpointLoadMetricStats;

use super::bounds::{Bounds, NAME_BYTES, Room};

/// So many names, and no more.
#[derive(Debug)]
pub(super) struct Sums<K>(BTreeMap<K, Sum>);

#[derive(Debug)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) total: f64,
    _room: Room,
}

impl<K> Default for Sums<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Sums<K> {
    /// Adds to what goes by a key, of this name. Whether there was room for it.
    pub(super) fn add(
        &mut self,
        key: K,
        name: usize,
        most: usize,
        (count, total): (u64, f64),
        bounds: &Arc<Bounds>,
    ) -> bool {
        if let Some(sum) = self.0.get_mut(&key) {
            sum.count += count;
            sum.total += total;
            return true;
        }
        if self.0.len() >= most || name > NAME_BYTES {
            return false;
        }
        let Some(room) = bounds.room() else { return false };
        self.0.insert(key, Sum { count, total, _room: room });
        true
    }
}

impl<K> IntoIterator for Sums<K> {
    type Item = (K, Sum);
    type IntoIter = std::collections::btree_map::IntoIter<K, Sum>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A sum as it is reported.
pub(super) fn named(metric_name: String, sum: &Sum) -> EndpointLoadMetricStats {
    EndpointLoadMetricStats { metric_name, num_requests_finished_with_metric: sum.count, total_metric_value: sum.total }
}

/// The same by its parts.
pub(super) fn parts(stats: &EndpointLoadMetricStats) -> (&str, u64, f64) {
    (&stats.metric_name, stats.num_requests_finished_with_metric, stats.total_metric_value)
}
