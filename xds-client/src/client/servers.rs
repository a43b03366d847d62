//! How a client reaches its servers.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;

#[cfg(feature = "lrs")]
use super::reporters::OpenLoadReports;
use crate::bootstrap::Server;
use crate::federation::{Dial, Dialed, Position};
#[cfg(feature = "lrs")]
use crate::load::{self, LoadStream};
use crate::upstream::{Consumer, Driver, Pool};

/// How a client speaks with servers, where that is not gRPC over TCP: see [`Builder::transport`](crate::Builder::transport).
///
/// No lock of the client is held while any of it runs, nor what it returns is nudged or dropped: it may watch, drop watches, and
/// ask the client for anything.
pub trait Transport: Send + Sync + 'static {
    /// Opens a stream to a server for a consumer, as this encoded node, and keeps it open until the result is dropped.
    /// What becomes of it is for [`Upstream`](crate::upstream::Upstream) to say, and what is said on it.
    fn open(&self, server: &Server, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed>;

    /// Drives a stream of load reports to a server, and opens it anew whenever that is due, until the result is dropped. A
    /// transport without such streams has none: reporters are refused then.
    #[cfg(feature = "lrs")]
    fn open_load_reports(&self, _server: &Server, _stream: LoadStream) -> Option<Box<dyn Dialed>> {
        Option::None
    }
}

/// By gRPC, each in a task of its own.
pub(super) struct Servers {
    /// Of each origin, by the positions of its servers.
    pub(super) pools: Vec<Vec<Pool>>,
    pub(super) runtime: Handle,
}

/// By whatever a program brings.
pub(super) struct ByTransport {
    /// Of each origin, by their positions.
    pub(super) servers: Vec<Vec<Server>>,
    pub(super) transport: Arc<dyn Transport>,
}

/// By nothing.
pub(super) struct None;

struct Driven {
    wake: Arc<Notify>,
    _driver: Driver,
}

/// A stream that nobody opens.
struct Nothing;

impl Dial for Servers {
    fn dial(&self, at: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let Some(pool) = self.pools.get(at.origin).and_then(|pools| pools.get(at.server)) else {
            return Box::new(Nothing);
        };
        let wake = Arc::new(Notify::new());
        // Whoever watches may be on any thread.
        let _within = self.runtime.enter();
        Box::new(Driven { _driver: pool.spawn(node, consumer, wake.clone()), wake })
    }
}

impl Dial for ByTransport {
    fn dial(&self, at: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        match self.servers.get(at.origin).and_then(|servers| servers.get(at.server)) {
            Some(server) => self.transport.open(server, node, consumer),
            Option::None => Box::new(Nothing),
        }
    }
}

#[cfg(feature = "lrs")]
impl OpenLoadReports for Servers {
    fn open(&self, at: Position, stream: LoadStream) -> Option<Box<dyn Dialed>> {
        let pool = self.pools.get(at.origin)?.get(at.server)?;
        // Whoever reports may be on any thread.
        let _within = self.runtime.enter();
        Some(load::drive::spawn(pool.clone(), stream))
    }
}

#[cfg(feature = "lrs")]
impl OpenLoadReports for ByTransport {
    fn open(&self, at: Position, stream: LoadStream) -> Option<Box<dyn Dialed>> {
        let server = self.servers.get(at.origin)?.get(at.server)?;
        self.transport.open_load_reports(server, stream)
    }
}

impl Transport for None {
    fn open(&self, _: &Server, _: Bytes, _: Box<dyn Consumer>) -> Box<dyn Dialed> {
        Box::new(Nothing)
    }
}

impl Dialed for Driven {
    fn nudge(&self) {
        self.wake.notify_one();
    }
}

impl Dialed for Nothing {
    fn nudge(&self) {}
}
