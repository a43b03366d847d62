//! What is counted, and not reported yet.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prost::Message;
use xds_transport::wire;
use xds_transport::wire::Locality;
use xds_transport::wire::load_report::{ClusterStats, DroppedRequests};

use super::locality::{Place, Requests, place};

/// How many clusters there may be, and localities of each, of which some are in nobody's hands any more and not reported yet.
const MOST: usize = 1000;
/// How many categories of dropped requests are told apart in a cluster: their names are those of its control plane.
const MOST_CATEGORIES: usize = 100;

/// What is counted for one server, whether it asks for it or not.
#[derive(Debug, Default)]
pub(super) struct Loads {
    clusters: Mutex<BTreeMap<Key, Arc<Cluster>>>,
    /// There are some that do not know yet when they began.
    begun: AtomicBool,
    /// Why there is no stream to the server.
    trouble: Mutex<Option<Arc<str>>>,
}

/// The names of a cluster and of its EDS service, which is empty if it has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) cluster: String,
    pub(super) service: String,
}

/// Which clusters a server asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    These(BTreeSet<String>),
}

#[derive(Debug, Default)]
pub(super) struct Cluster {
    localities: Mutex<BTreeMap<Place, Arc<Requests>>>,
    dropped: Mutex<Dropped>,
    /// When it was reported last, or began.
    since: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Dropped {
    total: u64,
    by_category: BTreeMap<String, u64>,
}

impl Wanted {
    fn has(&self, key: &Key) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(&key.cluster),
        }
    }
}

impl Loads {
    pub(super) fn cluster(&self, key: Key) -> Arc<Cluster> {
        let mut clusters = self.clusters.lock();
        if let Some(known) = clusters.get(&key) {
            return known.clone();
        }
        make_room(&mut clusters);
        self.begun.store(true, Ordering::Release);
        clusters.entry(key).or_default().clone()
    }

    /// Those that were not there before count from now on.
    pub(super) fn begin(&self, now: Instant) {
        if self.begun.swap(false, Ordering::Acquire) {
            self.clusters.lock().values().for_each(|cluster| _ = cluster.since.lock().get_or_insert(now));
        }
    }

    /// What there is to report of the clusters that are wanted, of those after this one, until it measures so much: and the last
    /// of them, if there may be more.
    pub(super) fn report(
        &self,
        now: Instant,
        wanted: &Wanted,
        after: Option<Key>,
        bytes: usize,
    ) -> (Vec<ClusterStats>, Option<Key>) {
        let (mut reported, mut size, mut gone, mut last) = (Vec::new(), 0, Vec::new(), None);
        let mut clusters = self.clusters.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, cluster) in clusters.range_mut((from, Bound::Unbounded)) {
            // Who lets go of it later is seen the next time.
            let held = is_held(cluster);
            if wanted.has(key) {
                let stats = cluster.take(key, now);
                size += stats.encoded_len();
                reported.push(stats);
            }
            if !held && cluster.is_empty() {
                gone.push(key.clone());
            }
            if size >= bytes {
                last = Some(key.clone());
                break;
            }
        }
        gone.iter().for_each(|key| _ = clusters.remove(key));
        (reported, last)
    }

    pub(super) fn set_trouble(&self, trouble: Option<&str>) {
        let mut told = self.trouble.lock();
        if told.as_deref() != trouble {
            *told = trouble.map(Into::into);
        }
    }

    pub(super) fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.lock().clone()
    }
}

impl Cluster {
    pub(super) fn locality(&self, locality: &Locality) -> Arc<Requests> {
        let mut localities = self.localities.lock();
        let place = place(locality);
        if let Some(known) = localities.get(&place) {
            return known.clone();
        }
        make_room(&mut localities);
        localities.entry(place).or_default().clone()
    }

    /// A request was not sent; without a category it is for a reason that has none.
    pub(super) fn dropped(&self, category: &str) {
        let mut dropped = self.dropped.lock();
        dropped.total += 1;
        let Dropped { by_category, .. } = &mut *dropped;
        if !category.is_empty() && (by_category.contains_key(category) || by_category.len() < MOST_CATEGORIES) {
            *by_category.entry(category.to_owned()).or_default() += 1;
        }
    }

    /// What there is to report: of each locality that somebody holds, or that there is anything of.
    fn take(&self, key: &Key, now: Instant) -> ClusterStats {
        let mut upstream_locality_stats = Vec::new();
        self.localities.lock().retain(|place, requests| {
            let held = is_held(requests);
            if held || !requests.is_empty() {
                upstream_locality_stats.push(requests.take(place));
            }
            held
        });
        let Dropped { total, by_category } = std::mem::take(&mut *self.dropped.lock());
        let dropped =
            by_category.into_iter().map(|(category, dropped_count)| DroppedRequests { category, dropped_count });
        let since = self.since.lock().replace(now).unwrap_or(now);
        ClusterStats {
            cluster_name: key.cluster.clone(),
            cluster_service_name: key.service.clone(),
            upstream_locality_stats,
            total_dropped_requests: total,
            dropped_requests: dropped.collect(),
            load_report_interval: Some(duration(now.saturating_duration_since(since))),
        }
    }

    fn is_empty(&self) -> bool {
        self.dropped.lock().total == 0 && self.localities.lock().values().all(|requests| requests.is_empty())
    }
}

/// Whether anybody but its table has it: what they counted is seen here if not.
fn is_held<T>(counted: &mut Arc<T>) -> bool {
    Arc::get_mut(counted).is_none()
}

/// A server that never asks is no reason to keep for ever what nobody uses any more.
fn make_room<K: Ord, T>(counted: &mut BTreeMap<K, Arc<T>>) {
    if counted.len() >= MOST {
        counted.retain(|_, counted| is_held(counted));
    }
}

fn duration(of: Duration) -> wire::Duration {
    // Less than 10^9.
    let nanos = i32::try_from(of.subsec_nanos()).unwrap_or_default();
    wire::Duration { seconds: i64::try_from(of.as_secs()).unwrap_or(i64::MAX), nanos }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever counts lets go of what it counted and has it again, while reports are made of it.
    #[test]
    fn r029_nothing_is_lost_or_told_twice_while_reports_are_made() {
        const THREADS: u64 = 4;
        const REQUESTS: u64 = 2000;
        let (loads, now) = (Loads::default(), crate::upstream::now());
        let key = || Key { cluster: "web".into(), service: String::new() };
        let (mut issued, mut finished, mut dropped) = (0, 0, 0);
        let mut report = || {
            let (stats, last) = loads.report(now, &Wanted::All, None, usize::MAX);
            assert!(last.is_none());
            for stats in stats {
                dropped += stats.total_dropped_requests;
                for zone in stats.upstream_locality_stats {
                    issued += zone.total_issued_requests;
                    finished += zone.total_successful_requests;
                }
            }
        };
        std::thread::scope(|scope| {
            let counting: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..REQUESTS {
                            let cluster = loads.cluster(key());
                            cluster.dropped("x");
                            let requests = cluster.locality(&Locality::default());
                            drop(cluster);
                            requests.started();
                            requests.finished(true, &[]);
                        }
                    })
                })
                .collect();
            while !counting.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                report();
            }
        });
        report();
        assert_eq!([issued, finished, dropped], [THREADS * REQUESTS; 3]);
        let (stats, _) = loads.report(now, &Wanted::All, None, usize::MAX);
        assert!(stats.is_empty(), "nobody holds it any more");
    }
}
