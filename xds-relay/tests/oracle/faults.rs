//! Faults that are planted to see them found: around the relay's core, so that the core stays as it is.

use std::time::Instant;

use bytes::Bytes;
use xds_relay::relay_core::{ClientNode, EveryNode, NodeGroup, NodeGrouping, ShareBy};
use xds_transport::client::{Command, Update, Verdict};
use xds_transport::server::NodeError;
use xdstp_cache::{ResourceError, TypeUrl};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Tenants are one node group.
    ShareAcrossTenants,
    /// What came last in a response is taken for gone.
    DropResource,
    /// What came over a stream is gone when the stream ends.
    RemoveOnOutage,
    /// The first piece of an answer is taken for all of it.
    TakePieceForWhole,
    /// A resource that must not be shared is one like others.
    ForgetDoNotCache,
}

impl Fault {
    #[allow(dead_code, reason = "the fuzzer plants none")]
    pub(crate) const ALL: [Self; 5] = [
        Self::ShareAcrossTenants,
        Self::DropResource,
        Self::RemoveOnOutage,
        Self::TakePieceForWhole,
        Self::ForgetDoNotCache,
    ];

    pub(crate) fn grouping(
        fault: Option<Self>,
        share_by: Option<&Vec<xds_relay::config::NodeField>>,
    ) -> Box<dyn NodeGrouping> {
        match share_by {
            _ if fault == Some(Self::ShareAcrossTenants) => Box::new(Everybody),
            Some(fields) => Box::new(ShareBy::new(fields.clone())),
            None => Box::new(EveryNode),
        }
    }
}

/// A grouping that mixes up who may share.
struct Everybody;

impl NodeGrouping for Everybody {
    fn group(&self, _: &ClientNode) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(Vec::new(), "everybody".to_owned()))
    }
}

/// A feed that is wrong in one way.
pub(crate) struct Feed {
    inner: Box<dyn Consumer>,
    fault: Option<Fault>,
    /// The last update, and every name that came.
    seen: Option<(Update, Vec<(TypeUrl, ResourceName)>)>,
}

impl Feed {
    pub(crate) fn new(inner: Box<dyn Consumer>, fault: Option<Fault>) -> Self {
        Self { inner, fault, seen: None }
    }
}

impl Consumer for Feed {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        self.inner.commands(now, apply);
    }

    fn has_more_commands(&self) -> bool {
        self.inner.has_more_commands()
    }

    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        match self.fault {
            Some(Fault::DropResource) if update.changed.len() > 1 => {
                update.removed.extend(update.changed.pop().map(|changed| changed.name));
            }
            Some(Fault::TakePieceForWhole) => update.complete.clone_from(&update.answered),
            Some(Fault::RemoveOnOutage) => {
                let names = update.changed.iter().map(|changed| (update.type_url.clone(), changed.name.clone()));
                let seen = self.seen.get_or_insert_with(|| (update.clone(), Vec::new()));
                seen.1.extend(names);
            }
            Some(Fault::ForgetDoNotCache) => {
                for changed in &mut update.changed {
                    let frame = changed.resource.value.clone();
                    let (wrapper, ttl) = (frame.wrapper().clone(), frame.ttl());
                    changed.resource.value = frame.with_wrapper(wrapper, ttl, false);
                }
            }
            _ => {}
        }
        self.inner.update(now, update)
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        let over = matches!(connection, Connection::Disconnected { .. });
        self.inner.connection(now, connection);
        if over && let Some((update, names)) = self.seen.take() {
            for (type_url, name) in names {
                let mut lost = update.clone();
                lost.changed.clear();
                (lost.type_url, lost.removed) = (type_url, vec![name]);
                self.inner.update(now, lost);
            }
        }
    }

    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError) {
        self.inner.type_ended(now, type_url, error);
    }

    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        self.inner.type_opened(now, type_url);
    }

    fn node(&mut self) -> Option<Bytes> {
        self.inner.node()
    }

    fn received(&mut self, at: Instant) {
        self.inner.received(at);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
    }
}
