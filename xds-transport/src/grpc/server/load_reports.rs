//! One client's load reports, as who takes them has them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use http::request::Parts;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Status, Streaming};

use crate::grpc::server::certificate::ClientCertificate;
use crate::grpc::server::handle::{Shared, Wake};
use crate::grpc::server::told;
use crate::server::{ProtocolError, Stream};
use crate::wire::Node;
use crate::wire::load_report::{ClusterStats, LoadStatsRequest, LoadStatsResponse};

/// The load reports of one stream. There is no queue: a report is read when it is [asked](Self::next) for, and its client held
/// back until then.
#[derive(Debug)]
pub struct LoadReports {
    request: Parts,
    node: Node,
    /// Reported with the node.
    first: Option<Vec<ClusterStats>>,
    requests: Streaming<LoadStatsRequest>,
    most_clusters: usize,
    line: Arc<Line>,
}

/// What is to be said on a stream.
#[derive(Debug, Default)]
pub(super) struct Line {
    asked: Mutex<Option<LoadStatsResponse>>,
    end: Mutex<Option<Status>>,
    wake: Wake,
}

impl LoadReports {
    pub(super) fn new(
        request: Parts,
        node: Node,
        requests: Streaming<LoadStatsRequest>,
        most_clusters: usize,
        line: Arc<Line>,
    ) -> Self {
        Self { request: told::of_client(request), node, first: None, requests, most_clusters, line }
    }

    /// What came with the node is the first report, if it is one.
    pub(super) fn with_first(self, stats: Vec<ClusterStats>) -> Result<Self, Status> {
        self.check(&stats)?;
        Ok(Self { first: Some(stats).filter(|stats| !stats.is_empty()), ..self })
    }

    /// Who the client says that it is.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The call: its headers, and what the connection and layers before this one say of the client.
    pub fn request(&self) -> &Parts {
        &self.request
    }

    /// Where the client is, if it came over TCP and the connection says so.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.request.extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr)
    }

    /// What the client proved to be, if the connection says so.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        self.request.extensions.get()
    }

    /// Has the client report this from now on, in place of what it was to report before. Of what it was not told yet the newest
    /// is told. Only a client whose node has the feature [`SEND_ALL_CLUSTERS`](crate::wire::load_report::SEND_ALL_CLUSTERS)
    /// can be asked for all clusters.
    pub fn ask(&self, response: LoadStatsResponse) {
        *lock(&self.line.asked) = Some(response);
        self.line.wake.wake();
    }

    /// The next report, in which there may be nothing; `None` when the client ended the stream. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// What is wrong with the stream, or with the report: it is over then.
    pub async fn next(&mut self) -> Result<Option<Vec<ClusterStats>>, Status> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(report) = self.requests.message().await? else { return Ok(None) };
        self.check(&report.cluster_stats)?;
        Ok(Some(report.cluster_stats))
    }

    fn check(&self, stats: &[ClusterStats]) -> Result<(), Status> {
        let (count, most) = (stats.len(), self.most_clusters);
        if count > most {
            return Err(Status::resource_exhausted(format!("a report of {count} clusters, where there may be {most}")));
        }
        Ok(())
    }
}

impl Line {
    pub(super) fn register(&self, waker: &Waker) {
        self.wake.register(waker);
    }

    pub(super) fn take_asked(&self) -> Option<LoadStatsResponse> {
        lock(&self.asked).take()
    }

    pub(super) fn take_end(&self) -> Option<Status> {
        lock(&self.end).take()
    }
}

impl Shared for Line {
    fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}

    fn end(&self, status: Status) {
        *lock(&self.end) = Some(status);
        self.wake.wake();
    }

    fn refuse(&self, error: &ProtocolError) {
        self.end(Status::resource_exhausted(error.to_string()));
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
