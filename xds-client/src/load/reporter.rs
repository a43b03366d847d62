//! What programs hold: a reporter, its clusters and their localities.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::wire::Locality;

use super::bounds::{LeftOut, Tell};
use super::cluster::{Cluster, Key};
use super::counts::Loads;
use super::endpoints::Endpoint;
use super::locality::Requests;
use super::stream::LoadStream;
use crate::backoff::Backoff;
use crate::federation::Dialed;

/// Counts the load that a program puts on clusters, for one server: from [`Client::load_reporter`](crate::Client::load_reporter) or
/// [`Watch::load_reporter`](crate::Watch::load_reporter).
///
/// The server says of which clusters it wants to hear, and how often; that it was told in a while is no reason for it to be told
/// more. What was counted while there was no stream to it is in the first report of the next one. So is a message that the
/// last stream had not taken when it ended; one that it had is taken for told, and lost if it did not arrive: no server says that
/// it has one, and what may have arrived is not told twice.
///
/// Clones are the same reporter, and all of one server's reporters are: its stream ends when the last of them, of their clusters
/// and of their localities is dropped. What was not reported then is told before it ends, for up to two seconds that nobody waits
/// for, if there is a stream on which the server asked: a runtime that ends earlier ends that, too.
///
/// For one server up to 10,000 clusters are counted, each with up to a thousand localities (one of them without names), up to a
/// thousand endpoints of each, a hundred metrics of a locality, a thousand of all its endpoints, and a hundred categories of what
/// is dropped; of all of these that are no clusters, 100,000 together. Names may have 8 KiB (a cluster's), 1 KiB (a
/// locality's) or 256 bytes. What is beyond is in the sum that it belongs to, where the protocol has one, and
/// [counted](Self::left_out). Of clusters and localities in nobody's hands, up to a thousand are kept for the next report, and
/// of clusters as many as are held, if these are more.
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

/// The load on an endpoint of a locality, and with it on the locality. Clones are the same.
#[derive(Clone)]
pub struct EndpointLoad {
    /// None if it is not told apart from others of the locality.
    endpoint: Option<Arc<Endpoint>>,
    /// Which is to be reported for it.
    locality: LocalityLoad,
}

/// A reporter to a server over what `open` makes of its stream, as this encoded node; none if it makes nothing.
pub(crate) fn new(
    server: Arc<str>,
    node: &Bytes,
    backoff: Backoff,
    tell: Tell,
    open: impl FnOnce(LoadStream) -> Option<Box<dyn Dialed>>,
) -> Option<Arc<Reporter>> {
    let loads = Arc::new(Loads::new(server.clone(), tell));
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

    /// What of the load is not told the server, or not told apart, because there is more of it than is kept. Whoever has
    /// [`Metrics`](crate::Metrics) is told each, and the log says the first of each kind.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xds_transport::wire::Locality;
    /// use xdstp_client::Client;
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::test::Network;
    ///
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(Network::new(Instant::now())).build()?;
    /// let reporter = client.load_reporter("xds:1")?;
    /// let locality = reporter.cluster("web", "").locality(&Locality::default());
    /// locality.call_started();
    /// locality.call_finished(true, &[(&"x".repeat(1000), 0.5)]);
    /// assert_eq!(reporter.left_out().metrics, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn left_out(&self) -> LeftOut {
        self.0.loads.left_out()
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
        self.requests.started(None);
    }

    /// It is over, well or not, with the metrics that came of it, by their names in the report (gRFC A85): `cpu_utilization`,
    /// `mem_utilization`, `application_utilization`, `named_metrics.NAME`. Up to a hundred names are kept.
    pub fn call_finished(&self, succeeded: bool, metrics: &[(&str, f64)]) {
        self.requests.finished(succeeded, metrics, None);
    }

    /// The load on the endpoint at an address. It is the load on the locality, too, and told apart to a server that asks for that
    /// (`report_endpoint_granularity`).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use xds_transport::wire::load_report::LoadStatsResponse;
    /// use xds_transport::wire::{self, Locality};
    /// use xdstp_client::Client;
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::test::Network;
    ///
    /// let network = Network::new(Instant::now());
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    /// let server = network.server("xds:1");
    /// server.answer_load(&LoadStatsResponse {
    ///     send_all_clusters: true,
    ///     report_endpoint_granularity: true,
    ///     load_reporting_interval: Some(wire::Duration { seconds: 10, nanos: 0 }),
    ///     ..LoadStatsResponse::default()
    /// });
    ///
    /// let locality = client.load_reporter("xds:1")?.cluster("web", "").locality(&Locality::default());
    /// let endpoint = locality.endpoint("10.0.0.1:80".parse()?);
    /// endpoint.call_started();
    /// endpoint.call_finished(true, &[("named_metrics.queue", 3.0)]);
    /// network.pass(Duration::from_secs(10));
    /// let reports = server.take_load_reports();
    /// let of_locality = &reports[0].cluster_stats[0].upstream_locality_stats[0];
    /// assert_eq!(of_locality.total_successful_requests, 1);
    /// assert_eq!(of_locality.upstream_endpoint_stats[0].total_successful_requests, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn endpoint(&self, address: SocketAddr) -> EndpointLoad {
        EndpointLoad { endpoint: self.requests.endpoint(address), locality: self.clone() }
    }

    /// Its cluster.
    pub fn cluster(&self) -> &ClusterLoad {
        &self.cluster
    }
}

impl EndpointLoad {
    /// A request is sent to the endpoint.
    pub fn call_started(&self) {
        self.locality.requests.started(self.endpoint.as_deref());
    }

    /// It is over, as by [`LocalityLoad::call_finished`].
    pub fn call_finished(&self, succeeded: bool, metrics: &[(&str, f64)]) {
        self.locality.requests.finished(succeeded, metrics, self.endpoint.as_deref());
    }

    /// Its locality.
    pub fn locality(&self) -> &LocalityLoad {
        &self.locality
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

impl fmt::Debug for EndpointLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointLoad").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
