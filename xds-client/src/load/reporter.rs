//! What programs hold: a reporter, its clusters and their localities.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::wire::Locality;

use super::counts::{Cluster, Key, Loads};
use super::locality::Requests;
use super::stream::LoadStream;
use crate::backoff::Backoff;
use crate::federation::Dialed;

/// Counts the load that a program puts on clusters, for one server: from [`Client::load_reporter`](crate::Client::load_reporter) or
/// [`Watch::load_reporter`](crate::Watch::load_reporter).
///
/// The server says of which clusters it wants to hear, and how often; that it was told in a while is no reason for it to be told
/// more. What was counted while there was no stream to it is in the first report of the next one. A report that was on its way
/// when its stream broke is lost: no server says that it has one.
///
/// Clones are the same reporter, and all of one server's reporters are: its stream ends when the last of them, of their clusters
/// and of their localities is dropped, and what was not reported then is not. Of clusters and localities in nobody's hands, up to
/// a thousand are kept for the next report.
#[derive(Clone)]
pub struct LoadReporter(Arc<Reporter>);

/// One server's.
pub(crate) struct Reporter {
    server: Arc<str>,
    loads: Arc<Loads>,
    stream: Box<dyn Dialed>,
}

/// The load on a cluster. Clones are the same.
#[derive(Clone)]
pub struct ClusterLoad {
    reporter: LoadReporter,
    cluster: Arc<Cluster>,
}

/// The load on a locality of a cluster. Clones are the same.
#[derive(Clone)]
pub struct LocalityLoad {
    requests: Arc<Requests>,
    /// Which is to be reported for it.
    cluster: ClusterLoad,
}

/// A reporter to a server over what `open` makes of its stream, as this encoded node; none if it makes nothing.
pub(crate) fn new(
    server: Arc<str>,
    node: &Bytes,
    backoff: Backoff,
    open: impl FnOnce(LoadStream) -> Option<Box<dyn Dialed>>,
) -> Option<Arc<Reporter>> {
    let loads = Arc::<Loads>::default();
    let stream = open(LoadStream::new(loads.clone(), node, backoff))?;
    Some(Arc::new(Reporter { server, loads, stream }))
}

impl LoadReporter {
    pub(crate) fn of(reporter: Arc<Reporter>) -> Self {
        Self(reporter)
    }

    /// The server, as the bootstrap has it.
    pub fn server(&self) -> &Arc<str> {
        &self.0.server
    }

    /// Why the server is told nothing at present: there is no stream to it, and why. It is tried on, and nothing is forgotten
    /// meanwhile.
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.0.loads.trouble()
    }

    /// The load on a cluster, of these names; that of its EDS service is empty if it has none.
    pub fn cluster(&self, cluster: &str, eds_service: &str) -> ClusterLoad {
        let key = Key { cluster: cluster.to_owned(), service: eds_service.to_owned() };
        let counted = ClusterLoad { cluster: self.0.loads.cluster(key), reporter: self.clone() };
        // It counts from now on.
        self.0.stream.nudge();
        counted
    }
}

impl ClusterLoad {
    /// The load on a locality of the cluster.
    pub fn locality(&self, locality: &Locality) -> LocalityLoad {
        LocalityLoad { requests: self.cluster.locality(locality), cluster: self.clone() }
    }

    /// A request was dropped, not sent, by a policy of this category: without one if that is empty, as by circuit breaking.
    pub fn call_dropped(&self, category: &str) {
        self.cluster.dropped(category);
    }
}

impl LocalityLoad {
    /// A request is sent.
    pub fn call_started(&self) {
        self.requests.started();
    }

    /// It is over, well or not, with the metrics that came of it, by their names in the report (gRFC A85): `cpu_utilization`,
    /// `mem_utilization`, `application_utilization`, `named_metrics.NAME`. Up to a hundred names are kept.
    pub fn call_finished(&self, succeeded: bool, metrics: &[(&str, f64)]) {
        self.requests.finished(succeeded, metrics);
    }

    /// Its cluster.
    pub fn cluster(&self) -> &ClusterLoad {
        &self.cluster
    }
}

impl fmt::Debug for LoadReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadReporter").field("server", &self.0.server).finish_non_exhaustive()
    }
}

impl fmt::Debug for ClusterLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterLoad").field("server", self.reporter.server()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LocalityLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalityLoad").field("requests", &self.requests).finish_non_exhaustive()
    }
}
