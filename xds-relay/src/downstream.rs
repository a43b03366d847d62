//! The accepting side: the relay's core behind the gRPC server.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Instant;

use tokio::runtime::Handle;
use tonic::Status;
use tonic::metadata::MetadataMap;
use xds_transport::grpc::server::{self, Accept, Accepted, Opened, Service, StreamHandle};
use xds_transport::server::Stream;

use crate::claim::Claim;
use crate::client_rules::{ClientRules, Shown, Under, peer};
use crate::config::ClientRule;
use crate::lock::lock;
use crate::metrics::AUDIT;
use crate::relay_core::{AdmitError, Admitted, ClientUse, RelayCore, Routes, Seen, ServedStream, Share};

/// A service that serves every stream that is opened from one relay.
pub(crate) fn service(core: Arc<RelayCore>, rules: Arc<ClientRules>) -> Service<Downstream> {
    let limits = core.limits();
    Service::new(Downstream { core: core.clone(), rules })
        .settings(core.settings())
        .max_request_bytes(limits.max_request_bytes)
        .max_unfinished_bytes(limits.unfinished_request_bytes)
        .first_request_within(limits.first_request)
        .max_stream_age(limits.stream_age)
        .long_turns(at_a_time())
}

/// Half of the threads that streams are served by: the others are for who has little to be told.
fn at_a_time() -> usize {
    let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
    (workers / 2).max(1)
}

/// Serves every stream that is opened from one relay.
pub(crate) struct Downstream {
    core: Arc<RelayCore>,
    rules: Arc<ClientRules>,
}

impl Accept for Downstream {
    type Source = Routes;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Routes>, Status> {
        let peer = peer(&opened.request);
        let rules = self.rules.now();
        let under = rules.admit(&opened.request, &peer, self.core.metrics())?;
        let (shown, now) = (Shown::of(&opened.request), Instant::now());
        let client_use = self.counted(&shown, under.as_ref(), &peer, now)?;
        let Opened { request, protocol, wake, handle, .. } = opened;
        let claim = request.extensions.get::<Claim>().cloned();
        let metadata = MetadataMap::from_headers(request.headers);
        let admitted = self.core.admit(now, &metadata);
        let (client_use, Admitted { metadata, seen, place, .. }) = match admitted {
            Ok(admitted) => (client_use, admitted),
            Err(error) => {
                client_use.undo(now);
                tracing::warn!(%peer, "a stream is refused: {error}");
                return Err(match error {
                    AdmitError::Limit(_) => Status::resource_exhausted(error.to_string()),
                    _ => Status::failed_precondition(error.to_string()),
                });
            }
        };
        let rule = Mutex::new(under.map(|under| under.rule));
        // Many may come from this machine, whom nothing tells apart.
        let client = (!client_use.identity().is_this_machine()).then(|| client_use.number());
        let waker = Waker::from(Arc::new(WakeStream(wake)));
        let outside =
            Outside { handle, peer, shown, rules: self.rules.clone(), rule, client_use, _seen: seen, _place: place };
        let outside = Arc::new(outside);
        let source = self.core.open_stream(protocol, waker, Some(outside.clone()));
        // Whoever replaced the rules in between looked at the streams that there were.
        if !Arc::ptr_eq(&rules, &self.rules.now()) {
            outside.judge().map_err(Status::permission_denied)?;
        }
        claim.iter().for_each(Claim::is_admitted);
        Ok(Accepted { source, metadata, client })
    }
}

impl Downstream {
    /// One more of the streams that its client may have.
    fn counted(&self, shown: &Shown, under: Option<&Under>, peer: &str, now: Instant) -> Result<ClientUse, Status> {
        let client = shown.identity(under.map(|under| &*under.rule));
        let opened = self.core.admit_client((client.clone(), false), under.map(Under::allowed), now);
        opened.map_err(|error| {
            tracing::warn!(target: AUDIT, %peer, %client, "a stream is refused: {error}");
            Status::resource_exhausted(error.to_string())
        })
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
    shown: Shown,
    rules: Arc<ClientRules>,
    rule: Mutex<Option<Arc<ClientRule>>>,
    client_use: ClientUse,
    _seen: Option<Seen>,
    _place: Share,
}

impl ServedStream for Outside {
    fn peer(&self) -> &str {
        &self.peer
    }

    fn rule(&self) -> Option<Arc<ClientRule>> {
        lock(&self.rule).clone()
    }

    fn is_limited(&self) -> bool {
        lock(&self.rule).is_some()
    }

    fn judge(&self) -> Result<(), String> {
        let under = self.rules.now().of(&self.shown).map_err(|status| status.message().to_owned())?;
        self.client_use.is_under(under.as_ref().map(Under::allowed));
        *lock(&self.rule) = under.map(|under| under.rule);
        Ok(())
    }

    fn client_use(&self) -> Option<&ClientUse> {
        Some(&self.client_use)
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

    fn deny(&self, reason: &str) {
        self.handle.deny(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_rules::Rules;
    use crate::config::Config;
    use crate::metrics::Metrics;
    use crate::relay_core::EveryNode;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_streams_that_have_much_to_be_told_half_as_many_as_there_are_threads_go_on_at_a_time() {
        let config = Config::parse("relay.yaml", "origins: [{ name: up, server: 'a:1' }]").unwrap();
        let dialer = Box::new(crate::origins::Connections::new(&config).unwrap());
        let core = RelayCore::new(&config, Box::new(EveryNode), dialer, Arc::new(Metrics::new([])));
        let rules = ClientRules::new(Rules::load(&config).unwrap());
        let service = format!("{:?}", service(core, rules));
        assert!(service.contains("long_turns: Some(2)"), "{service}");
    }
}
