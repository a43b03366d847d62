//! How much is counted apart, and what was left out beyond that.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many clusters are counted for a server.
pub(super) const MOST_CLUSTERS: usize = 10_000;
/// How many clusters there are before what nobody holds makes room.
pub(super) const KEPT_CLUSTERS: usize = 1000;
/// How many localities of a cluster are told apart, with the one that has no names.
pub(super) const MOST_LOCALITIES: usize = 1000;
/// How many endpoints of a locality are told apart.
pub(super) const MOST_ENDPOINTS: usize = 1000;
/// How many metrics are kept of a locality: their names are those of whoever answers.
pub(super) const MOST_METRICS: usize = 100;
/// How many metrics are kept of all endpoints of a locality: with them a locality is some hundred KiB at most, so that what is
/// reported of one fits into a message.
pub(super) const MOST_ENDPOINT_METRICS: usize = 1000;
/// How many categories of dropped requests are told apart in a cluster: their names are those of its control plane.
pub(super) const MOST_CATEGORIES: usize = 100;
/// How many localities, endpoints, metrics and categories there are of all clusters for a server.
pub(super) const MOST: usize = 100_000;
/// How many bytes the names of a cluster may have, those of a locality, and that of a metric or a category.
pub(super) const CLUSTER_BYTES: usize = 8 << 10;
pub(super) const LOCALITY_BYTES: usize = 1 << 10;
pub(super) const NAME_BYTES: usize = 256;

/// Is told what was left out: of which server, what, and how often.
pub(crate) type Tell = Arc<dyn Fn(&str, &'static str, u64) + Send + Sync>;

/// What of the load for a server was left out of its reports, or was not told apart in them, since its first reporter: programs
/// count more than is kept. See [`LoadReporter::left_out`](super::LoadReporter::left_out).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// How often a cluster was not counted, or was forgotten before it was reported: there were as many as are kept.
    pub clusters: u64,
    /// How many calls to such clusters were started, or dropped. They are in no report.
    pub calls: u64,
    /// How often a locality was not told apart. Its load is reported with the cluster's as that of a locality without names.
    pub localities: u64,
    /// How often an endpoint was not told apart. Its load is reported with that of its locality.
    pub endpoints: u64,
    /// How many values of metrics are in no report.
    pub metrics: u64,
    /// How many calls were dropped by a category that is not told apart. They are among the cluster's that were dropped.
    pub categories: u64,
}

/// Of what something was left out.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Clusters,
    Calls,
    Localities,
    Endpoints,
    Metrics,
    Categories,
}

/// What is counted for one server may be so much.
pub(super) struct Bounds {
    server: Arc<str>,
    tell: Tell,
    left_out: Counts,
    used: AtomicUsize,
    most: usize,
}

#[derive(Default)]
struct Counts {
    clusters: AtomicU64,
    calls: AtomicU64,
    localities: AtomicU64,
    endpoints: AtomicU64,
    metrics: AtomicU64,
    categories: AtomicU64,
}

/// A place among what is counted, until it is dropped.
#[derive(Debug)]
pub(super) struct Room(Arc<Bounds>);

impl Bounds {
    pub(super) fn new(server: Arc<str>, tell: Tell, most: usize) -> Self {
        Self { server, tell, left_out: Counts::default(), used: AtomicUsize::new(0), most }
    }

    pub(super) fn room(self: &Arc<Self>) -> Option<Room> {
        let more = |used: usize| (used < self.most).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Room(self.clone()))
    }

    /// So much was left out. It calls what is its program's own: nothing is locked meanwhile.
    pub(super) fn leave_out(&self, what: What, count: u64) {
        if count == 0 {
            return;
        }
        let before = self.left_out.of(what).fetch_add(count, Ordering::Relaxed);
        let Self { server, tell, .. } = self;
        let name = what.name();
        if before == 0 {
            tracing::warn!("load for {server}: {} (this is said once)", what.words());
        }
        tell(server, name, count);
    }

    pub(super) fn left_out(&self) -> LeftOut {
        let count = |what| self.left_out.of(what).load(Ordering::Relaxed);
        LeftOut {
            clusters: count(What::Clusters),
            calls: count(What::Calls),
            localities: count(What::Localities),
            endpoints: count(What::Endpoints),
            metrics: count(What::Metrics),
            categories: count(What::Categories),
        }
    }
}

impl Counts {
    fn of(&self, what: What) -> &AtomicU64 {
        match what {
            What::Clusters => &self.clusters,
            What::Calls => &self.calls,
            What::Localities => &self.localities,
            What::Endpoints => &self.endpoints,
            What::Metrics => &self.metrics,
            What::Categories => &self.categories,
        }
    }
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::Calls => "calls",
            Self::Localities => "localities",
            Self::Endpoints => "endpoints",
            Self::Metrics => "metrics",
            Self::Categories => "categories",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Clusters => "there are more clusters than are counted, or longer names",
            Self::Calls => "calls to clusters that are not counted are in no report",
            Self::Localities => "there are more localities than are told apart, or longer names",
            Self::Endpoints => "there are more endpoints than are told apart",
            Self::Metrics => "there are more metrics than are kept, or longer names",
            Self::Categories => "calls are dropped by more categories than are told apart, or by longer names",
        }
    }
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounds").field("server", &self.server).field("used", &self.used).finish_non_exhaustive()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}
