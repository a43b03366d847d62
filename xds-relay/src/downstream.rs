//! The accepting side: the relay's core behind the gRPC server.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

use tonic::Status;
use tonic::metadata::MetadataMap;
#[cfg(unix)]
use tonic::transport::server::UdsConnectInfo;
use xds_transport::grpc::server::{self, Accept, Accepted, Opened, Service, StreamHandle};
use xds_transport::server::Stream;

use crate::relay_core::{AdmitError, Admitted, RelayCore, Routes, Seen, ServedStream, Share};

/// A service that serves every stream that is opened from one relay.
pub(crate) fn service(core: Arc<RelayCore>) -> Service<Downstream> {
    let limits = core.limits();
    Service::new(Downstream(core.clone()))
        .settings(core.settings())
        .max_request_bytes(limits.max_request_bytes)
        .max_unfinished_bytes(limits.unfinished_request_bytes)
        .first_request_within(limits.first_request)
        .max_stream_age(limits.stream_age)
}

/// Serves every stream that is opened from one relay.
pub(crate) struct Downstream(Arc<RelayCore>);

impl Accept for Downstream {
    type Source = Routes;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Routes>, Status> {
        let peer = peer(&opened);
        let Opened { request, protocol, wake, handle, .. } = opened;
        let metadata = MetadataMap::from_headers(request.headers);
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
}

/// Who a client is, for people: an address, or the process behind a unix socket; and whom it proved to be.
fn peer(opened: &Opened) -> String {
    let mut peer = opened.peer().map_or_else(String::new, |peer| peer.to_string());
    #[cfg(unix)]
    if let Some(socket) = opened.request.extensions.get::<UdsConnectInfo>() {
        peer = match socket.peer_cred.and_then(|process| process.pid()) {
            Some(process) => format!("unix, process {process}"),
            None => "unix".to_owned(),
        };
    }
    if let Some(certificate) = opened.certificate() {
        let names = [certificate.uri_names(), certificate.dns_names()];
        let name = names.into_iter().flatten().next().map_or_else(|| certificate.subject(), String::as_str);
        // Who vouches for a client need not mind what a line of a log is.
        peer = format!("{peer} {}", name.escape_debug());
    }
    peer
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
