//! What a client asks for and may not have: no scope hears of it, and the client is told.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use xds_transport::server::weight;
use xdstp_cache::{Failed, Interest, Removals, ResourceError, SubscriberId, TypeUrl, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use super::Routes;
use crate::federation::client::{Client, OfGroup};
use crate::federation::core::Federation;
use crate::federation::denied::name_of;
use crate::federation::place::Place;
use crate::federation::subscriber::{Subscriber, authority_of};

/// Who says what a client may not have.
pub(super) struct Denying<'a> {
    federation: &'a Federation,
    client: &'a dyn Client,
    node: &'a Bytes,
}

impl Denying<'_> {
    /// Why an interest is denied, or of no group that the client may be of.
    pub(super) fn why(&self, type_url: &TypeUrl, interest: &Interest) -> Option<ResourceError> {
        let denied = self.client.denies(type_url, interest).filter(|_| self.client.is_limited());
        // Who has not said who it is, is in no group yet.
        if denied.is_some() || self.node.is_empty() || !self.client.refuses_some() {
            return denied;
        }
        let Place::Group { origin } = self.federation.place(authority_of(interest)) else { return None };
        let is_alike = self.federation.is_alike(origin);
        self.client.refuses(self.node, &OfGroup { type_url, origin, is_alike, name: interest.as_str() })
    }
}

impl Routes {
    /// Where an interest is denied, whether it is new.
    pub(super) fn deny(&mut self, id: SubscriberId, interest: &Interest) -> Option<bool> {
        if !self.client.is_limited() && !self.client.refuses_some() {
            return None;
        }
        let subscriber = self.subscribers.get_mut(id.index())?;
        let name = name_of(interest)?;
        let by = Denying { federation: &self.federation, client: &*self.client, node: &self.node };
        if by.why(&subscriber.type_url, interest).is_none() {
            subscriber.denied.iter_mut().for_each(|denied| denied.ask_again(&name));
            return None;
        }
        self.client.denied(&subscriber.type_url, interest, false);
        let new = subscriber.denied.get_or_insert_default().ask(name);
        if new {
            let weight = weight(interest.as_str());
            subscriber.names += weight;
            if let Err(error) = self.grow_names(weight) {
                self.refuse(&error);
            }
        }
        Some(new)
    }

    /// Whether an interest that ends was denied: then that is all.
    pub(super) fn leave_denied(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return false };
        let Some(denied) = &mut subscriber.denied else { return false };
        let left = name_of(interest).is_some_and(|name| denied.leave(&name));
        if left {
            let weight = weight(interest.as_str());
            subscriber.names = subscriber.names.saturating_sub(weight);
            self.shrink_names(weight);
        }
        left
    }

    /// Of what may not be asked for it is not said whether it is there, by who brings it along either: but for what a
    /// wildcard covers.
    pub(super) fn leave_out_denied(&self, id: SubscriberId, held: &mut Vec<(ResourceName, Version)>) {
        if !self.client.is_limited() && !self.client.refuses_some() {
            return;
        }
        let Some(subscriber) = self.subscribers.get(id.index()) else { return };
        let by = self.denying();
        let wildcard = subscriber.part(&self.federation, &Interest::Wildcard);
        let wildcard = wildcard.filter(|_| subscriber.has_wildcard(&self.federation));
        held.retain(|(name, _)| {
            let by_wildcard = || wildcard.is_some_and(|part| part.scope.covers(part.id, name));
            by.why(&subscriber.type_url, &Interest::Name(name.clone())).is_none() || by_wildcard()
        });
    }

    /// Tells of it: in place of the resource, which is no more there for this client than one that is gone.
    pub(super) fn pull_denied(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Self { federation, client, subscribers, node, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return ControlFlow::Continue(()) };
        let by = Denying { federation, client: &**client, node };
        let has_wildcard = subscriber.has_wildcard(federation);
        let Subscriber { type_url, denied, .. } = subscriber;
        let Some(denied) = denied else { return ControlFlow::Continue(()) };
        // That the wildcard is denied removes nothing, and does not wait.
        while (removals == Removals::Include || denied.owes_wildcard())
            && let Some((name, error)) = denied.pop(|interest| by.why(type_url, interest))
        {
            let removed = !has_wildcard && name.as_str() != "*";
            visitor(Failed::new(&name, &error, false, removed))?;
        }
        ControlFlow::Continue(())
    }

    pub(super) fn denying(&self) -> Denying<'_> {
        Denying { federation: &self.federation, client: &*self.client, node: &self.node }
    }

    /// These stand for what was kept from the client: it is told so of those that it asked for.
    pub(super) fn deny_aliases(&mut self, id: SubscriberId, aliases: BTreeSet<ResourceName>) {
        let Self { federation, client, subscribers, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return };
        for alias in aliases {
            let interest = Interest::Name(alias);
            let part = subscriber.part(federation, &interest);
            let asked = part.is_some_and(|part| part.scope.wants(part.id, &interest));
            let Interest::Name(alias) = &interest else { continue };
            if asked && subscriber.denied.get_or_insert_default().stands_for_denied(alias.clone()) {
                client.denied(&subscriber.type_url, &interest, true);
            }
        }
    }
}

impl Subscriber {
    /// Whether its client may ask for the name that this is the canonical form of.
    pub(super) fn may_ask(&self, by: &Denying<'_>, text: &CanonicalText<'_>) -> bool {
        let name = ResourceName::parse(text.as_str()).map(Interest::from);
        let denied = self.denied.is_some() || name.map_or(true, |name| by.why(&self.type_url, &name).is_some());
        // Whoever was denied something is looked at by name, which may be among that.
        !denied
    }
}
