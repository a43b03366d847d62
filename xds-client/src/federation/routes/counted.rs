//! What one client uses up, told to it: names, and scopes that it is served from.

use std::sync::Arc;

use xds_transport::server::weight;
use xdstp_cache::{Interest, SubscriberId};

use super::Routes;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::share::OverLimit;

impl Routes {
    /// A scope that its client may be served from, before it is made: who may not costs its origin nothing.
    pub(super) fn enter(
        &self,
        key: &ScopeKey,
        scope: impl FnOnce() -> Result<Arc<Scope>, OverLimit>,
    ) -> Result<Arc<Scope>, OverLimit> {
        self.client.enters(key)?;
        scope().inspect_err(|_| self.client.leaves(key))
    }

    /// So many more names, of what all may have, and of what its client may.
    pub(super) fn grow_names(&mut self, by: usize) -> Result<(), OverLimit> {
        self.names.grow(by)?;
        self.client.grows(by).inspect_err(|_| self.names.shrink(by))
    }

    /// Whether there is room for one more name, before an origin hears of it.
    pub(super) fn may_grow(&self, name: &str) -> Result<(), OverLimit> {
        let by = weight(name);
        self.names.may_grow(by)?;
        self.client.may_grow(by)
    }

    /// So many more that it brings along.
    pub(super) fn grow_brought(&mut self, by: usize) -> Result<(), OverLimit> {
        self.brought.grow(by)?;
        self.client.brings(by).inspect_err(|_| self.brought.shrink(by))
    }

    /// So many fewer, of those that there were.
    pub(super) fn shrink_brought(&mut self, by: usize) {
        let by = by.min(self.brought.used());
        self.brought.shrink(by);
        self.client.brought(by);
    }

    /// Whether a subscriber asked for just this before.
    pub(super) fn wants(&self, id: SubscriberId, interest: &Interest) -> bool {
        let part = self.subscribers.get(id.index()).and_then(|of| of.part(&self.federation, interest));
        part.is_some_and(|part| part.scope.wants(part.id, interest))
    }

    /// What is kept of a subscriber beside the names that it asks for counts for so many from now on.
    pub(super) fn keeps_beside(&mut self, id: SubscriberId, names: usize) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let before = std::mem::replace(&mut subscriber.beside, names);
        self.shrink_names(before.saturating_sub(names));
        if let Err(error) = self.grow_names(names.saturating_sub(before)) {
            self.refuse(&error);
        }
    }

    /// So many fewer, of those that there were.
    pub(super) fn shrink_names(&mut self, by: usize) {
        // What it was not let have is not given back.
        let by = by.min(self.names.used());
        self.names.shrink(by);
        self.client.shrinks(by);
    }
}
