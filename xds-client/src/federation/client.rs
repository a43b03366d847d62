//! Whom routes serve.

use std::sync::Arc;

use bytes::Bytes;
use xds_transport::server::{NodeError, ProtocolError, Tally};
use xdstp_cache::{Interest, ResourceError, Selector, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::node_group::NodeGroup;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::share::OverLimit;
use crate::federation::timings::Timings;

/// What a client asks for of a node group.
#[derive(Clone, Copy, Debug)]
pub struct OfGroup<'a> {
    /// Of which type.
    pub type_url: &'a TypeUrl,
    /// At which origin, by position.
    pub origin: usize,
    /// Whether that has the same for every node: then all groups are one.
    pub is_alike: bool,
    /// Its name, or `*` for all of the type.
    pub name: &'a str,
}

/// What is the business of who serves a client, and not of the core: who it is, and what is said and counted of its limits.
/// Dropped when the routes are.
pub trait Client: Send + Sync + 'static {
    /// The group of the client's node.
    ///
    /// # Errors
    /// When it must not join any: its stream ends with this reason (rule 154).
    fn identify(&self, node: &Bytes) -> Result<NodeGroup, NodeError>;

    /// The group of the client's node for what it asks for of one type at an origin, where that is not the one for all: the same for
    /// all that is asked for there on its stream.
    ///
    /// # Errors
    /// When it is to have nothing of the type: its stream ends with this reason.
    fn group_for(&self, _node: &Bytes, _asked: &OfGroup<'_>) -> Result<Option<NodeGroup>, NodeError> {
        Ok(None)
    }

    /// Whether there is anything of node groups that it is [refused](Self::refuses).
    fn refuses_some(&self) -> bool {
        false
    }

    /// Why this is for none of the groups that it may be of: it is told so as of what it [may not ask for](Self::denies). Otherwise than
    /// there, what it may ask for counts, whatever that stands for.
    fn refuses(&self, _node: &Bytes, _asked: &OfGroup<'_>) -> Option<ResourceError> {
        None
    }

    /// By what it selects among variants where it does not say so itself (TP2); by nothing, unless its node says more.
    fn selector(&self, _node: &Bytes) -> Selector {
        Selector::default()
    }

    /// Whether there is anything that it may not ask for.
    fn is_limited(&self) -> bool {
        false
    }

    /// How often what it may ask for has changed. Once it is more than before, and the waker of its routes is woken, what it asks for
    /// is looked at again.
    fn judged(&self) -> u64 {
        0
    }

    /// Why it may not ask for this, if it may not: it is told so, and no origin hears of it.
    fn denies(&self, _type_url: &TypeUrl, _interest: &Interest) -> Option<ResourceError> {
        None
    }

    /// It is told that it may not ask for this, or is [refused](Self::refuses) it, or `by_alias` that it may not have what this stands for.
    fn denied(&self, _type_url: &TypeUrl, _interest: &Interest, _by_alias: bool) {}

    /// From where else its client is served resources of a type that a scope has, if from anywhere: a scope of the same origin and the
    /// same key, or of that of another node group, in which there is always an answer. With another key the client has
    /// [left](Self::leaves) the scope. It is asked when something of the scope is first asked for, and again after
    /// [`View::look_anew`](super::View::look_anew).
    fn track(&self, _type_url: &TypeUrl, _scope: &Scope) -> Option<Arc<Scope>> {
        None
    }

    /// It rejected a response, in which these were, with these words: none of a full state, which has all there is.
    fn rejected(&self, _type_url: &TypeUrl, _names: &[ResourceName], _words: &str) {}

    /// One type of it is about to be served from a scope of this key, which may be new: whether it may, besides what all may.
    /// Each time that it was let in, it [leaves](Self::leaves) once.
    ///
    /// # Errors
    /// There would be more than it may have.
    fn enters(&self, _scope: &ScopeKey) -> Result<(), OverLimit> {
        Ok(())
    }

    /// One type of it is served from there no more.
    fn leaves(&self, _scope: &ScopeKey) {}

    /// It asks for so many names more, by their weight: whether it may, besides what all may.
    ///
    /// # Errors
    /// There would be more than it may have, and there are none more.
    fn grows(&self, _names: usize) -> Result<(), OverLimit> {
        Ok(())
    }

    /// Whether it would be let have so many names more, of which nothing is counted yet.
    ///
    /// # Errors
    /// There would be more than it may have.
    fn may_grow(&self, _names: usize) -> Result<(), OverLimit> {
        Ok(())
    }

    /// It asks for so many names fewer, of those that it was let.
    fn shrinks(&self, _names: usize) {}

    /// It brings so many names along, by their weight, of which it may ask for some as well: whether it may, besides what all may.
    ///
    /// # Errors
    /// There would be more than it may, and there are none more.
    fn brings(&self, _names: usize) -> Result<(), OverLimit> {
        Ok(())
    }

    /// So many of those that it was let bring along count no more.
    fn brought(&self, _names: usize) {}

    /// It asks for more than it may: the reason that its stream ends with.
    fn refused(&self, error: &OverLimit) -> String;

    /// What it did ends its stream.
    fn ends(&self, _error: &ProtocolError) {}

    /// The same in words for the client.
    fn words(&self, error: &ProtocolError) -> String {
        error.to_string()
    }

    /// It named something that is too long, and is answered that there is no such thing.
    fn named_too_long(&self) {}

    /// It wants something of a type: where it is counted how long that takes, if anywhere.
    fn opened(&self, _type_url: &TypeUrl) -> Option<Arc<dyn Timings>> {
        None
    }

    /// It wants nothing of a type any more: what it did meanwhile.
    fn closed(&self, _type_url: &TypeUrl, _tally: &Tally) {}
}
