//! The streams of a service: how many there are, and their end.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use slab::Slab;
use tokio::sync::watch;
use tonic::Status;

use crate::grpc::server::handle::Shared;

/// The streams of a [`Service`](super::Service) from outside. Cheap to clone; all that a service and its clones serve are counted
/// together.
#[derive(Clone, Debug, Default)]
pub struct Streams(Arc<Table>);

#[derive(Debug)]
struct Table {
    open: Mutex<Open>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Open {
    streams: Slab<Weak<dyn Shared>>,
    /// Why no more are opened.
    drains: Option<String>,
}

impl Default for Table {
    fn default() -> Self {
        Self { open: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Streams {
    /// How many there are.
    pub fn count(&self) -> usize {
        *self.0.count.borrow()
    }

    /// Ends all streams there are with UNAVAILABLE: their clients reconnect, elsewhere if they can.
    pub fn end_all(&self, reason: &str) {
        let streams: Vec<_> = self.0.lock().streams.iter().map(|(_, stream)| stream.clone()).collect();
        // Not under the lock: who ends takes it.
        streams.iter().filter_map(Weak::upgrade).for_each(|stream| stream.end(Status::unavailable(reason)));
    }

    /// The same, and from now on every new stream is refused with UNAVAILABLE, too.
    pub fn drain(&self, reason: &str) {
        self.0.lock().drains.get_or_insert_with(|| reason.to_owned());
        self.end_all(reason);
    }

    /// Resolves once there is no stream.
    pub async fn drained(&self) {
        // Its sender is here.
        let _ = self.0.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Drains once a signal has come: what a server is to be shut down with, as streams would keep it open otherwise.
    ///
    /// ```no_run
    /// # use xds_transport::grpc::server::ControlPlane;
    /// # async fn run(signal: impl Future<Output = ()> + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
    /// let service = ControlPlane::new().service();
    /// let until = service.streams().drain_on(signal);
    /// let server = tonic::transport::Server::builder().add_routes(service.into_routes());
    /// server.serve_with_shutdown("[::1]:18000".parse()?, until).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn drain_on<F: Future<Output = ()> + Send>(&self, signal: F) -> impl Future<Output = ()> + Send + use<F> {
        let streams = self.clone();
        async move {
            signal.await;
            streams.drain("the server is shutting down");
        }
    }

    /// One more is open, unless there are as many as there may be, or none is opened any more.
    ///
    /// # Errors
    /// What it ends with.
    pub(crate) fn enter(&self, stream: Weak<dyn Shared>, most: Option<usize>) -> Result<Entry, Status> {
        let mut open = self.0.lock();
        if let Some(reason) = &open.drains {
            return Err(Status::unavailable(reason.clone()));
        }
        if let Some(most) = most.filter(|most| open.streams.len() >= *most) {
            return Err(Status::resource_exhausted(format!("there are {most} streams, as many as there may be")));
        }
        let key = open.streams.insert(stream);
        self.0.tell(&open);
        Ok(Entry { streams: self.clone(), key })
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, open: &Open) {
        self.count.send_replace(open.streams.len());
    }
}

/// As long as a stream is open.
#[derive(Debug)]
pub(crate) struct Entry {
    streams: Streams,
    key: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock();
        open.streams.try_remove(self.key);
        self.streams.0.tell(&open);
    }
}
