//! Faults that are planted to see them found: around the relay's core, so that the core stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;
use xds_relay::relay_core::{ClientNode, NodeGroup, NodeGrouping, ShareBy};
use xds_transport::Rejected;
use xds_transport::client::{Command, Update, Verdict};
use xds_transport::server::NodeError;
use xdstp_cache::TypeUrl;
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    ShareAcrossGroups,
    RemoveOnOutage,
    NeverUnsubscribe,
    DropUnsubscribeOfNames,
    LoseRemovals,
    LoseUpdate,
    RejectUpstream,
    LoseWake,
    LeakStream,
    TakePieceForWhole,
}

impl Fault {
    pub(crate) const ALL: [Self; 10] = [
        Self::ShareAcrossGroups,
        Self::RemoveOnOutage,
        Self::NeverUnsubscribe,
        Self::DropUnsubscribeOfNames,
        Self::LoseRemovals,
        Self::LoseUpdate,
        Self::RejectUpstream,
        Self::LoseWake,
        Self::LeakStream,
        Self::TakePieceForWhole,
    ];

    pub(crate) fn grouping(fault: Option<Self>) -> Box<dyn NodeGrouping> {
        if fault == Some(Self::ShareAcrossGroups) {
            return Box::new(Everybody);
        }
        Box::new(ShareBy::new(vec![xds_relay::config::NodeField::Cluster]))
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
    pub(crate) inner: Box<dyn Consumer>,
    pub(crate) fault: Option<Fault>,
    updates: u64,
    /// The last update of each type, and every name it ever had.
    seen: BTreeMap<TypeUrl, (Update, BTreeSet<ResourceName>)>,
}

impl Feed {
    pub(crate) fn new(inner: Box<dyn Consumer>, fault: Option<Fault>) -> Self {
        Self { inner, fault, updates: 0, seen: BTreeMap::new() }
    }
}

impl Consumer for Feed {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        let fault = self.fault;
        self.inner.commands(now, &mut |command| match (&command, fault) {
            (Command::Unsubscribe(..), Some(Fault::NeverUnsubscribe)) => {}
            (Command::Unsubscribe(_, interest), Some(Fault::DropUnsubscribeOfNames)) if !interest.is_collection() => {}
            _ => apply(command),
        });
    }

    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        self.updates += 1;
        match self.fault {
            Some(Fault::LoseRemovals) => update.removed.clear(),
            Some(Fault::TakePieceForWhole) => update.complete.clone_from(&update.answered),
            Some(Fault::LoseUpdate) if self.updates.is_multiple_of(5) => return Verdict::Accept,
            Some(Fault::RejectUpstream) if update.changed.len() > 1 => {
                let reasons = vec![Rejected::new(update.changed[0].name.as_str(), "not today")];
                return Verdict::Reject { reasons };
            }
            Some(Fault::RemoveOnOutage) => {
                let names = update.changed.iter().map(|changed| changed.name.clone());
                let seen = self.seen.entry(update.type_url.clone());
                seen.or_insert_with(|| (update.clone(), BTreeSet::new())).1.extend(names);
            }
            _ => {}
        }
        self.inner.update(now, update)
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        let gone = matches!(connection, Connection::Disconnected { .. });
        self.inner.connection(now, connection);
        if gone {
            for (_, (mut update, names)) in std::mem::take(&mut self.seen) {
                update.changed.clear();
                update.removed = names.into_iter().collect();
                self.inner.update(now, update);
            }
        }
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
