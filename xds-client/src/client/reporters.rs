//! The servers that load is reported to: one reporter for each, whoever reports.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use super::metrics::Metrics;
use crate::backoff::Backoff;
use crate::bootstrap::Server;
use crate::federation::{Dialed, Position};
use crate::load::{self, LoadError, LoadReporter, LoadStream, Reporter, Tell};

/// Opens streams of load reports.
pub(crate) trait OpenLoadReports: Send + Sync {
    /// Drives a stream to a server until the result is dropped; none where there is no way to.
    fn open(&self, at: Position, stream: LoadStream) -> Option<Box<dyn Dialed>>;
}

/// Those of a client.
pub(crate) struct Reporters {
    /// Of each origin, in order.
    servers: Vec<Vec<Server>>,
    open: Arc<dyn OpenLoadReports>,
    node: Bytes,
    backoff: Backoff,
    /// Is told what of load is left out.
    tell: Tell,
    known: Mutex<HashMap<Server, Weak<Reporter>>>,
}

impl Reporters {
    pub(super) fn new(
        servers: Vec<Vec<Server>>,
        open: Arc<dyn OpenLoadReports>,
        node: Bytes,
        backoff: Backoff,
        metrics: Option<Arc<dyn Metrics>>,
    ) -> Self {
        let tell = move |server: &str, what: &'static str, count: u64| {
            metrics.iter().for_each(|metrics| metrics.load_left_out(server, what, count));
        };
        Self { servers, open, node, backoff, tell: Arc::new(tell), known: Mutex::default() }
    }

    /// To the first server that is called so.
    pub(super) fn of_name(&self, name: &str) -> Result<LoadReporter, LoadError> {
        let of_origin = |(origin, servers): (usize, &Vec<Server>)| {
            let server = servers.iter().position(|server| server.uri() == name)?;
            Some(Position { origin, server })
        };
        let at = self.servers.iter().enumerate().find_map(of_origin);
        self.at(at.ok_or_else(|| LoadError::UnknownServer { server: name.into() })?)
    }

    /// To the server at a position.
    pub(crate) fn at(&self, at: Position) -> Result<LoadReporter, LoadError> {
        let server = self.servers.get(at.origin).and_then(|servers| servers.get(at.server));
        // What has no server is not watched.
        let server = server.ok_or(LoadError::NotWatched)?;
        if let Some(reporter) = self.known(server) {
            return Ok(LoadReporter::of(reporter));
        }
        // Not under the lock: a transport is its program's own code, which may ask for a reporter, too.
        let name: Arc<str> = server.uri().into();
        let open = |stream| self.open.open(at, stream);
        let opened = load::new(name.clone(), &self.node, self.backoff.clone(), self.tell.clone(), open);
        let opened = opened.ok_or(LoadError::Unsupported { server: name })?;
        Ok(LoadReporter::of(self.first_of(server, opened)))
    }

    fn known(&self, server: &Server) -> Option<Arc<Reporter>> {
        self.known.lock().get(server).and_then(Weak::upgrade)
    }

    /// The reporter of a server: this one, unless somebody else opened one meanwhile.
    fn first_of(&self, server: &Server, opened: Arc<Reporter>) -> Arc<Reporter> {
        let mut known = self.known.lock();
        if let Some(first) = known.get(server).and_then(Weak::upgrade) {
            drop(known);
            return first;
        }
        known.retain(|_, reporter| reporter.strong_count() > 0);
        known.insert(server.clone(), Arc::downgrade(&opened));
        opened
    }
}
