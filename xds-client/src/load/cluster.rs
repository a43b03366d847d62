//! What is counted of one cluster.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prost::Message;
use xds_transport::wire;
use xds_transport::wire::Locality;
use xds_transport::wire::load_report::{ClusterStats, DroppedRequests};

use super::ask::Ask;
use super::bounds::{Bounds, LOCALITY_BYTES, MOST_CATEGORIES, MOST_LOCALITIES, What};
use super::locality::{Place, Requests, place};
use super::sums::{Sum, Sums};

/// The names of a cluster and of its EDS service, which is empty if it has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) cluster: String,
    pub(super) service: String,
}

type Localities = BTreeMap<Place, Arc<Requests>>;

#[derive(Debug)]
pub(super) struct Cluster {
    bounds: Arc<Bounds>,
    /// Those that there is no room for are one, which is in no report.
    is_counted: bool,
    localities: Mutex<Localities>,
    dropped: Mutex<Dropped>,
    /// When it was reported last, or began.
    since: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Dropped {
    total: u64,
    by_category: Sums<String>,
}

/// How far a report of a cluster has come: up to this locality. What follows counts since then, too.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Within {
    place: Place,
    since: Instant,
}

impl Cluster {
    pub(super) fn new(bounds: Arc<Bounds>) -> Self {
        Self {
            bounds,
            is_counted: true,
            localities: Mutex::default(),
            dropped: Mutex::default(),
            since: Mutex::default(),
        }
    }

    /// The one that stands for all that are not counted.
    pub(super) fn uncounted(bounds: Arc<Bounds>) -> Self {
        let requests = Arc::new(Requests::uncounted(bounds.clone()));
        let localities = Mutex::new(BTreeMap::from([(Place::default(), requests)]));
        Self { is_counted: false, localities, ..Self::new(bounds) }
    }

    /// It counts from now on, unless it does already.
    pub(super) fn begin(&self, now: Instant) {
        self.since.lock().get_or_insert(now);
    }

    /// A locality, or the one without names that stands for those that there is no room for: their load is in the sum of the
    /// cluster's all the same.
    pub(super) fn locality(&self, locality: &Locality) -> Arc<Requests> {
        let place = if self.is_counted { place(locality) } else { Place::default() };
        let mut localities = self.localities.lock();
        if let Some(known) = localities.get(&place) {
            return known.clone();
        }
        let length = place.0.len() + place.1.len() + place.2.len();
        let is_named = length > 0;
        let has_room =
            |of: &Localities| of.len() - usize::from(of.contains_key(&Place::default())) < MOST_LOCALITIES - 1;
        let gone = if has_room(&localities) { Localities::new() } else { in_nobody_s_hands(&mut localities) };
        let is_told_apart = is_named && length <= LOCALITY_BYTES && has_room(&localities);
        let room = if is_told_apart { self.bounds.room() } else { None };
        let place = if room.is_some() { place } else { Place::default() };
        let made = || Arc::new(Requests::new(self.bounds.clone(), room));
        let left_out = u64::from(is_named && place == Place::default());
        let requests = localities.entry(place).or_insert_with(made).clone();
        drop(localities);
        self.bounds.leave_out(What::Localities, left_out);
        self.forget(gone);
        requests
    }

    /// What nobody holds has made room: what was counted is that of the locality without names.
    fn forget(&self, gone: Localities) {
        let gone: Vec<_> = gone.into_iter().filter(|(_, requests)| !requests.is_empty()).collect();
        self.bounds.leave_out(What::Localities, gone.len() as u64);
        for (place, requests) in gone {
            requests.fold_into(&self.locality(&Locality::default()), &place);
        }
    }

    /// A request was not sent; without a category it is for a reason that has none.
    pub(super) fn dropped(&self, category: &str) {
        if !self.is_counted {
            return self.bounds.leave_out(What::Calls, 1);
        }
        self.add_dropped(1, [(category, 1)].into_iter().filter(|(category, _)| !category.is_empty()));
    }

    fn add_dropped<'a>(&self, total: u64, by_category: impl Iterator<Item = (&'a str, u64)>) {
        let mut dropped = self.dropped.lock();
        dropped.total += total;
        let mut left_out = 0;
        for (category, count) in by_category {
            let (key, sum) = (category.to_owned(), (count, 0.0));
            if !dropped.by_category.add(key, category.len(), MOST_CATEGORIES, sum, &self.bounds) {
                left_out += count;
            }
        }
        drop(dropped);
        self.bounds.leave_out(What::Categories, left_out);
    }

    /// What there is to report, of the localities after those that were reported within the same report: of each that somebody
    /// holds, or that there is anything of, until it measures so much; and how far that is, if there are more.
    pub(super) fn take(
        &self,
        key: &Key,
        within: Option<Within>,
        ask: &Ask<'_>,
        most: usize,
    ) -> (ClusterStats, Option<Within>) {
        let (after, since) = within.map(|Within { place, since }| (place, since)).unzip();
        let mut stats = ClusterStats {
            cluster_name: key.cluster.clone(),
            cluster_service_name: key.service.clone(),
            ..ClusterStats::default()
        };
        if since.is_none() {
            let Dropped { total, by_category } = std::mem::take(&mut *self.dropped.lock());
            let category = |(category, sum): (String, Sum)| DroppedRequests { category, dropped_count: sum.count };
            stats.total_dropped_requests = total;
            stats.dropped_requests = by_category.into_iter().map(category).collect();
        }
        let since = since.unwrap_or_else(|| self.since.lock().replace(ask.now).unwrap_or(ask.now));
        stats.load_report_interval = Some(duration(ask.now.saturating_duration_since(since)));
        let (mut size, mut gone, mut next) = (stats.encoded_len(), Vec::new(), None);
        let mut localities = self.localities.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = localities.range_mut((from, Bound::Unbounded)).peekable();
        while let Some((place, requests)) = rest.next() {
            // Who lets go of it later is seen the next time.
            let held = is_held(requests);
            if held || !requests.is_empty() {
                let taken = requests.take(place, ask.endpoints);
                size += taken.encoded_len();
                stats.upstream_locality_stats.push(taken);
            }
            if !held {
                gone.push(place.clone());
            }
            if size >= most && rest.peek().is_some() {
                next = Some(Within { place: place.clone(), since });
                break;
            }
        }
        gone.iter().for_each(|place| _ = localities.remove(place));
        (stats, next)
    }

    /// What was taken until then is to be reported with what came since.
    pub(super) fn put_back(&self, taken: Instant, stats: &ClusterStats) {
        let calls = || stats.upstream_locality_stats.iter().map(|stats| stats.total_issued_requests).sum::<u64>();
        if !self.is_counted {
            return self.bounds.leave_out(What::Calls, stats.total_dropped_requests + calls());
        }
        let by_category = stats.dropped_requests.iter().map(|of| (&*of.category, of.dropped_count));
        self.add_dropped(stats.total_dropped_requests, by_category);
        for stats in &stats.upstream_locality_stats {
            let locality = stats.locality.clone().unwrap_or_default();
            self.locality(&locality).put_back(stats);
        }
        let interval = stats.load_report_interval.unwrap_or_default();
        let interval = Duration::new(interval.seconds.try_into().unwrap_or(0), interval.nanos.try_into().unwrap_or(0));
        *self.since.lock() = taken.checked_sub(interval).or(Some(taken));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dropped.lock().total == 0 && self.localities.lock().values().all(|requests| requests.is_empty())
    }

    /// How many calls there are of it in no report.
    pub(super) fn unreported(&self) -> u64 {
        let issued: u64 = self.localities.lock().values().map(|requests| requests.issued()).sum();
        self.dropped.lock().total + issued
    }
}

/// Whether anybody but its table has it: what they counted is seen here if not.
pub(super) fn is_held<T>(counted: &mut Arc<T>) -> bool {
    Arc::get_mut(counted).is_none()
}

/// A server that never asks is no reason to keep for ever what nobody uses any more.
pub(super) fn in_nobody_s_hands<K: Ord + Clone, T>(counted: &mut BTreeMap<K, Arc<T>>) -> BTreeMap<K, Arc<T>> {
    let key_of = |(key, counted): (&K, &mut Arc<T>)| (!is_held(counted)).then(|| key.clone());
    let gone: Vec<K> = counted.iter_mut().filter_map(key_of).collect();
    gone.into_iter().filter_map(|key| counted.remove_entry(&key)).collect()
}

fn duration(of: Duration) -> wire::Duration {
    // Less than 10^9.
    let nanos = i32::try_from(of.subsec_nanos()).unwrap_or_default();
    wire::Duration { seconds: i64::try_from(of.as_secs()).unwrap_or(i64::MAX), nanos }
}
