//! What is counted, and not reported yet.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use prost::Message;
use xds_transport::wire::load_report::ClusterStats;

use super::ask::Ask;
use super::bounds::{Bounds, CLUSTER_BYTES, KEPT_CLUSTERS, LeftOut, MOST, MOST_CLUSTERS, Tell, What};
use super::cluster::{Cluster, Key, Within, in_nobody_s_hands, is_held};

/// What is counted for one server, whether it asks for it or not.
#[derive(Debug)]
pub(super) struct Loads {
    bounds: Arc<Bounds>,
    clusters: Mutex<Clusters>,
    /// Stands for those that there is no room for.
    uncounted: Arc<Cluster>,
    /// There are some that do not know yet when they began.
    begun: AtomicBool,
    /// Why there is no stream to the server.
    trouble: Mutex<Option<Arc<str>>>,
}

#[derive(Debug)]
struct Clusters {
    by_key: BTreeMap<Key, Arc<Cluster>>,
    /// With so many, those that nobody holds make room: again when there are twice as many as were held then.
    full_at: usize,
}

/// How far a report has come: to the end of a cluster, or to a locality within it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    key: Key,
    within: Option<Within>,
}

impl Loads {
    pub(super) fn new(server: Arc<str>, tell: Tell) -> Self {
        Self::bounded(Bounds::new(server, tell, MOST))
    }

    fn bounded(bounds: Bounds) -> Self {
        let bounds = Arc::new(bounds);
        Self {
            clusters: Mutex::new(Clusters { by_key: BTreeMap::new(), full_at: KEPT_CLUSTERS }),
            uncounted: Arc::new(Cluster::uncounted(bounds.clone())),
            begun: AtomicBool::new(false),
            trouble: Mutex::default(),
            bounds,
        }
    }

    pub(super) fn left_out(&self) -> LeftOut {
        self.bounds.left_out()
    }

    /// The cluster of these names, or the one that stands for those that there is no room for.
    pub(super) fn cluster(&self, key: Key) -> Arc<Cluster> {
        let mut clusters = self.clusters.lock();
        if let Some(known) = clusters.by_key.get(&key) {
            return known.clone();
        }
        let gone = clusters.make_room();
        let has_room = clusters.by_key.len() < MOST_CLUSTERS && key.cluster.len() + key.service.len() <= CLUSTER_BYTES;
        let made = if has_room { Arc::new(Cluster::new(self.bounds.clone())) } else { self.uncounted.clone() };
        if has_room {
            clusters.by_key.insert(key, made.clone());
            self.begun.store(true, Ordering::Release);
        }
        drop(clusters);
        self.bounds.leave_out(What::Clusters, gone.len() as u64 + u64::from(!has_room));
        self.bounds.leave_out(What::Calls, gone.iter().map(|cluster| cluster.unreported()).sum());
        made
    }

    /// Those that were not there before count from now on.
    pub(super) fn begin(&self, now: Instant) {
        if self.begun.swap(false, Ordering::Acquire) {
            self.clusters.lock().by_key.values().for_each(|cluster| cluster.begin(now));
        }
    }

    /// What there is to report of the clusters that are wanted, from there on, until it measures so much: and how far that is, if
    /// there may be more.
    pub(super) fn report(&self, ask: &Ask<'_>, after: Option<Cursor>) -> (Vec<ClusterStats>, Option<Cursor>) {
        let (mut reported, mut size, mut gone, mut next) = (Vec::new(), 0, Vec::new(), None);
        let (after, mut within) = after.map_or((None, None), |Cursor { key, within }| (Some(key), within));
        let from = match &after {
            None => Bound::Unbounded,
            Some(key) if within.is_some() => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
        };
        let mut clusters = self.clusters.lock();
        for (key, cluster) in clusters.by_key.range_mut((from, Bound::Unbounded)) {
            // Who lets go of it later is seen the next time.
            let held = is_held(cluster);
            let within = within.take().filter(|_| after.as_ref() == Some(key));
            let mut rest = None;
            if ask.wanted.has(&key.cluster) && (within.is_some() || !ask.only_news || !cluster.is_empty()) {
                let (stats, more) = cluster.take(key, within, ask, ask.bytes.saturating_sub(size));
                size += stats.encoded_len();
                reported.push(stats);
                rest = more;
            }
            if !held && cluster.is_empty() {
                gone.push(key.clone());
            }
            if rest.is_some() || size >= ask.bytes {
                next = Some(Cursor { key: key.clone(), within: rest });
                break;
            }
        }
        gone.iter().for_each(|key| _ = clusters.by_key.remove(key));
        (reported, next)
    }

    /// What was taken then is to be reported with what came since: it was not told.
    pub(super) fn put_back(&self, taken: Instant, reported: Vec<ClusterStats>) {
        for stats in reported {
            let key = Key { cluster: stats.cluster_name.clone(), service: stats.cluster_service_name.clone() };
            self.cluster(key).put_back(taken, &stats);
        }
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

impl Clusters {
    /// Of a server that never asks, what nobody holds is forgotten where there are many: what was counted there is given.
    fn make_room(&mut self) -> Vec<Arc<Cluster>> {
        if self.by_key.len() < self.full_at {
            return Vec::new();
        }
        let gone = in_nobody_s_hands(&mut self.by_key);
        self.full_at = (2 * self.by_key.len()).clamp(KEPT_CLUSTERS, MOST_CLUSTERS);
        gone.into_values().filter(|cluster| !cluster.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use xds_transport::wire::Locality;

    use super::super::ask::Wanted;
    use super::*;

    fn loads() -> Loads {
        Loads::new("xds:1".into(), Arc::new(|_, _, _| {}))
    }

    fn key(cluster: &str) -> Key {
        Key { cluster: cluster.into(), service: String::new() }
    }

    fn all(now: Instant) -> Ask<'static> {
        Ask { now, wanted: &Wanted::All, endpoints: true, only_news: false, bytes: usize::MAX }
    }

    /// Whoever counts lets go of what it counted and has it again, while reports are made of it.
    #[test]
    fn r029_nothing_is_lost_or_told_twice_while_reports_are_made() {
        const THREADS: u64 = 4;
        const REQUESTS: u64 = 2000;
        let (loads, now) = (loads(), crate::upstream::now());
        let (mut issued, mut finished, mut dropped) = (0, 0, 0);
        let mut report = || {
            let (stats, last) = loads.report(&all(now), None);
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
                            let cluster = loads.cluster(key("web"));
                            cluster.dropped("x");
                            let requests = cluster.locality(&Locality::default());
                            drop(cluster);
                            requests.started(None);
                            requests.finished(true, &[], None);
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
        let (stats, _) = loads.report(&all(now), None);
        assert!(stats.is_empty(), "nobody holds it any more");
    }

    #[test]
    fn r029_of_all_that_is_told_apart_there_is_a_bound_and_what_is_reported_makes_room() {
        let (now, zone) = (crate::upstream::now(), |zone: &str| Locality { zone: zone.into(), ..Locality::default() });
        let loads = Loads::bounded(Bounds::new("xds:1".into(), Arc::new(|_, _, _| {}), 4));
        let web = loads.cluster(key("web"));
        for _ in 0..2 {
            let held: Vec<_> = ["a", "b", "c"].map(|name| web.locality(&zone(name))).into();
            held.iter().for_each(|requests| requests.started(None));
            let endpoint = held.first().and_then(|a| a.endpoint("10.0.0.1:80".parse().unwrap()));
            held.iter().for_each(|requests| requests.finished(true, &[("m", 1.0)], endpoint.as_deref()));
            web.dropped("throttle");
            drop((held, endpoint));
            let (stats, _) = loads.report(&all(now), None);
            let [web] = &stats[..] else { panic!("{stats:?}") };
            assert_eq!(web.upstream_locality_stats.iter().map(|zone| zone.total_issued_requests).sum::<u64>(), 3);
            assert_eq!((web.total_dropped_requests, web.dropped_requests.len()), (1, 0));
        }
        let expected = LeftOut { metrics: 6, categories: 2, ..LeftOut::default() };
        assert_eq!(loads.left_out(), expected);
    }

    #[test]
    fn r029_what_is_put_back_is_as_it_was_with_its_endpoints() {
        let (loads, now) = (loads(), crate::upstream::now());
        let address = "[::1]:80".parse().unwrap();
        let count = |loads: &Loads, metric: &str| {
            let requests = loads.cluster(key("web")).locality(&Locality::default());
            let endpoint = requests.endpoint(address);
            requests.started(endpoint.as_deref());
            requests.finished(false, &[(metric, 2.0), ("cpu_utilization", 0.5)], endpoint.as_deref());
        };
        loads.begin(now);
        count(&loads, "a");
        let (first, _) = loads.report(&all(now), None);
        loads.put_back(now, first.clone());
        assert_eq!(loads.report(&all(now), None), (first.clone(), None));
        loads.put_back(now, first);
        count(&loads, "a");
        let (both, _) = loads.report(&all(now), None);
        let zone = &both[0].upstream_locality_stats[0];
        let endpoint = &zone.upstream_endpoint_stats[0];
        assert_eq!((zone.total_issued_requests, zone.total_error_requests), (2, 2));
        assert_eq!((endpoint.total_issued_requests, endpoint.total_error_requests), (2, 2));
        let metrics = |of: &[xds_transport::wire::load_report::EndpointLoadMetricStats]| {
            of.iter().map(|of| (of.metric_name.clone(), of.total_metric_value)).collect::<Vec<_>>()
        };
        assert_eq!(metrics(&zone.load_metric_stats), [("a".to_owned(), 4.0)]);
        assert_eq!(metrics(&endpoint.load_metric_stats), [("a".to_owned(), 4.0), ("cpu_utilization".to_owned(), 1.0)]);
        assert_eq!(zone.cpu_utilization.unwrap().total_metric_value, 1.0);
        assert_eq!(loads.left_out(), LeftOut::default());
    }
}
