//! The client at the other end of a stream that a relay serves.

use std::sync::Arc;

use bytes::Bytes;
use xds_transport::server::{NodeError, ProtocolError, Tally};
use xdstp_cache::{Interest, ResourceError, Selector, TypeUrl};
use xdstp_client::federation::{Client, NodeGroup, OfGroup, OverLimit, Scope, ScopeKey, Timings};
use xdstp_uri::ResourceName;

use crate::config::{ClientLimit, ClientRule};
use crate::lock::lock;
use crate::metrics::{AUDIT, Denial};
use crate::relay_core::client_node::ClientNode;
use crate::relay_core::core::RelayCore;
use crate::relay_core::covered::Covered;
use crate::relay_core::quotas::{self, LimitError};
use crate::relay_core::stream_entry::StreamEntry;

/// A client of a relay, whose stream is in its list for as long as this is there.
pub(crate) struct ServedClient {
    relay: Arc<RelayCore>,
    number: u64,
    entry: Arc<StreamEntry>,
    covered: Covered,
}

impl ServedClient {
    /// The client of the stream that the relay lists under a number.
    pub(crate) fn new(relay: Arc<RelayCore>, number: u64, entry: Arc<StreamEntry>) -> Self {
        Self { relay, number, entry, covered: Covered::default() }
    }

    fn peer(&self) -> &str {
        self.entry.outside.as_ref().map_or("", |outside| outside.peer())
    }
}

/// Why a client may not ask for this, if it may not, and what it is told.
pub(crate) fn denial(rule: &ClientRule, type_url: &TypeUrl, interest: &Interest) -> Option<(Denial, &'static str)> {
    if !rule.allows_type(type_url.as_str()) {
        return Some((Denial::Type, "this client may not ask for resources of this type"));
    }
    match interest {
        Interest::Wildcard if !rule.wildcard => {
            Some((Denial::Wildcard, "this client may not ask for all resources of this type; it may ask by name"))
        }
        Interest::Name(name) if !rule.allows_name(name) => {
            Some((Denial::Name, "this client may not ask for this name"))
        }
        _ => None,
    }
}

/// The first byte of the key of a group that is one stream: no grouping's keys begin with it where groups go by type.
const ALONE: u8 = 2;

impl Client for ServedClient {
    fn identify(&self, node: &Bytes) -> Result<NodeGroup, NodeError> {
        let decoded = ClientNode::decode(node.clone())?;
        // Before its rule is looked at: who replaces the rule looks at the node after that.
        self.entry.identify(node, &decoded.message().id);
        self.covered.forget();
        if let Some(reason) = self.entry.rule().and_then(|rule| rule.denies_node(decoded.message())) {
            self.relay.metrics.downstream_denied(Denial::Node);
            let (peer, node) = (self.peer(), &decoded.message().id);
            tracing::warn!(target: AUDIT, %peer, %node, "a node is denied: {reason}");
            return Err(NodeError::denied(reason));
        }
        self.relay.grouping.group(&decoded)
    }

    fn group_for(&self, node: &Bytes, asked: &OfGroup<'_>) -> Result<Option<NodeGroup>, NodeError> {
        let grouping = &*self.relay.grouping;
        if !grouping.goes_by_type() {
            return Ok(None);
        }
        let group = self.covered.group_for(grouping, node, asked).inspect_err(|reason| {
            self.relay.metrics.downstream_denied(Denial::Aggregation);
            let (peer, node) = (self.peer(), self.entry.node().id);
            tracing::warn!(target: AUDIT, %peer, %node, r#type = %asked.type_url, "a type is denied: {reason}");
        })?;
        Ok(Some(group.unwrap_or_else(|| {
            NodeGroup::new([&[ALONE], &self.number.to_be_bytes()[..]].concat(), format!("stream {}", self.number))
        })))
    }

    fn refuses_some(&self) -> bool {
        self.relay.grouping.goes_by_type()
    }

    fn refuses(&self, node: &Bytes, asked: &OfGroup<'_>) -> Option<ResourceError> {
        let why = self.covered.refuses(&*self.relay.grouping, node, asked)?;
        Some(ResourceError::new(ResourceError::PERMISSION_DENIED, why))
    }

    fn selector(&self, _: &Bytes) -> Selector {
        self.relay.node_parameters.selector(&self.entry.node())
    }

    fn is_limited(&self) -> bool {
        self.entry.is_limited()
    }

    fn judged(&self) -> u64 {
        self.entry.judged()
    }

    fn denies(&self, type_url: &TypeUrl, interest: &Interest) -> Option<ResourceError> {
        let words = denial(&*self.entry.rule()?, type_url, interest)?.1;
        Some(ResourceError::new(ResourceError::PERMISSION_DENIED, words))
    }

    fn denied(&self, type_url: &TypeUrl, interest: &Interest, by_alias: bool) {
        let reason = self.entry.rule().and_then(|rule| denial(&rule, type_url, interest)).map(|(reason, _)| reason);
        let reason = if by_alias { Denial::Alias } else { reason.unwrap_or(Denial::Aggregation) };
        self.relay.metrics.downstream_denied(reason);
        let (peer, node, what) = (self.peer(), self.entry.node().id, reason.as_str());
        tracing::warn!(target: AUDIT, %peer, %node, r#type = %type_url, name = %interest, "denied by the {what}");
    }

    fn track(&self, type_url: &TypeUrl, scope: &Scope) -> Option<Arc<Scope>> {
        self.relay.track((self.number, &self.entry), type_url, scope)
    }

    fn rejected(&self, type_url: &TypeUrl, names: &[ResourceName], words: &str) {
        self.relay.rejected((self.number, &self.entry), type_url, names, words);
    }

    fn enters(&self, scope: &ScopeKey) -> Result<(), OverLimit> {
        self.entry.client_use().map_or(Ok(()), |of| of.enters(scope, &self.relay.federation))
    }

    fn leaves(&self, scope: &ScopeKey) {
        self.entry.client_use().into_iter().for_each(|of| of.leaves(scope));
    }

    fn grows(&self, names: usize) -> Result<(), OverLimit> {
        self.entry.client_use().map_or(Ok(()), |of| of.grows(names))
    }

    fn may_grow(&self, names: usize) -> Result<(), OverLimit> {
        self.entry.client_use().map_or(Ok(()), |of| of.may_grow(names))
    }

    fn shrinks(&self, names: usize) {
        self.entry.client_use().into_iter().for_each(|of| of.shrinks(names));
    }

    fn brings(&self, names: usize) -> Result<(), OverLimit> {
        self.entry.client_use().map_or(Ok(()), |of| of.brings(names))
    }

    fn brought(&self, names: usize) {
        self.entry.client_use().into_iter().for_each(|of| of.brought(names));
    }

    fn refused(&self, error: &OverLimit) -> String {
        match self.entry.client_use().filter(|_| ClientLimit::is_of_client(error.key)) {
            Some(of) => {
                self.relay.count_of_client(of.rule(), error.key);
                let (peer, node, client) = (self.peer(), self.entry.node().id, of.identity());
                tracing::warn!(target: AUDIT, %peer, %node, %client, "a stream ends: {}", LimitError::from(error.clone()));
            }
            None => self.relay.metrics.downstream_refused(error.key),
        }
        LimitError::from(error.clone()).to_string()
    }

    fn ends(&self, error: &ProtocolError) {
        if let Some(key) = quotas::key_of(error) {
            self.relay.metrics.downstream_refused(key);
        }
    }

    fn words(&self, error: &ProtocolError) -> String {
        quotas::key_of(error).map_or_else(|| error.to_string(), |key| format!("{error}{}", quotas::line(key)))
    }

    fn named_too_long(&self) {
        self.relay.metrics.downstream_refused("name_bytes");
        let node = self.entry.node().id;
        tracing::warn!(%node, "a name is longer than limits.name_bytes: it is answered as that of nothing");
    }

    fn opened(&self, type_url: &TypeUrl) -> Option<Arc<dyn Timings>> {
        let counted = self.relay.metrics.timings(type_url.as_str());
        Some(match self.relay.lives.get() {
            Some(lives) => lives.of_client(type_url, &self.entry.node().id, counted),
            None => counted,
        })
    }

    fn closed(&self, type_url: &TypeUrl, tally: &Tally) {
        self.relay.counts.closed(type_url, tally);
    }
}

impl Drop for ServedClient {
    fn drop(&mut self) {
        lock(&self.relay.streams).remove(&self.number);
    }
}
