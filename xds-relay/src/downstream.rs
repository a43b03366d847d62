//! The accepting side: the relay's core behind the gRPC server.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use tonic::Status;
use xds_transport::grpc::server::{self, Accept, Accepted, Opened, StreamHandle};
use xds_transport::server::{Settings, Stream};

use crate::relay_core::{AdmitError, Admitted, RelayCore, Routes, Seen, ServedStream, Share};

/// Serves every stream that is opened from one relay.
pub(crate) struct Downstream(pub(crate) Arc<RelayCore>);

impl Accept for Downstream {
    type Source = Routes;

    fn accept(&self, opened: Opened) -> Result<Accepted<Routes>, Status> {
        let Opened { peer, protocol, metadata, wake, handle, .. } = opened;
        let peer = peer.map_or_else(String::new, |peer| peer.to_string());
        let Admitted { metadata, seen, place, .. } = self.0.admit(Instant::now(), &metadata).map_err(|error| {
            tracing::warn!(%peer, "a stream is refused: {error}");
            match error {
                AdmitError::Limit(_) => Status::resource_exhausted(error.to_string()),
                _ => Status::failed_precondition(error.to_string()),
            }
        })?;
        let waker = Waker::from(Arc::new(WakeStream(wake)));
        let source =
            self.0.open_stream(protocol, waker, Some(Arc::new(Outside { handle, peer, _seen: seen, _place: place })));
        Ok(Accepted { source, metadata })
    }

    fn settings(&self) -> Settings {
        self.0.settings()
    }

    fn max_request_bytes(&self) -> usize {
        self.0.limits().max_request_bytes
    }

    fn max_unfinished_bytes(&self) -> usize {
        self.0.limits().unfinished_request_bytes
    }

    fn first_request_within(&self) -> Option<Duration> {
        Some(self.0.limits().first_request)
    }

    fn max_stream_age(&self) -> Option<Duration> {
        Some(self.0.limits().stream_age)
    }
}

struct WakeStream(server::Wake);

impl Wake for WakeStream {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

/// A stream of the gRPC server, from outside.
struct Outside {
    handle: StreamHandle,
    peer: String,
    _seen: Option<Seen>,
    _place: Share,
}

impl ServedStream for Outside {
    fn peer(&self) -> &str {
        &self.peer
    }

    fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        self.handle.inspect(look);
    }

    fn end(&self, reason: &str) {
        self.handle.end(reason);
    }

    fn refuse(&self, reason: &str) {
        self.handle.refuse(reason);
    }
}
