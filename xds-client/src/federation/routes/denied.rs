//! What a client asks for and may not have: no scope hears of it, and the client is told.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use xds_transport::server::weight;
use xdstp_cache::{Failed, Interest, Removals, SubscriberId, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use super::Routes;
use crate::federation::client::Client;
use crate::federation::denied::name_of;
use crate::federation::subscriber::Subscriber;

impl Routes {
    /// Where an interest is denied, whether it is new.
    pub(super) fn deny(&mut self, id: SubscriberId, interest: &Interest) -> Option<bool> {
        if !self.client.is_limited() {
            return None;
        }
        let subscriber = self.subscribers.get_mut(id.index())?;
        let name = name_of(interest)?;
        if self.client.denies(&subscriber.type_url, interest).is_none() {
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
        let Some(subscriber) = self.subscribers.get(id.index()).filter(|_| self.client.is_limited()) else { return };
        let wildcard = subscriber.part(&self.federation, &Interest::Wildcard);
        let wildcard = wildcard.filter(|_| subscriber.has_wildcard(&self.federation));
        held.retain(|(name, _)| {
            let by_wildcard = || wildcard.is_some_and(|part| part.scope.covers(part.id, name));
            self.client.denies(&subscriber.type_url, &Interest::Name(name.clone())).is_none() || by_wildcard()
        });
    }

    /// Tells of it: in place of the resource, which is no more there for this client than one that is gone.
    pub(super) fn pull_denied(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Self { federation, client, subscribers, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return ControlFlow::Continue(()) };
        let has_wildcard = subscriber.has_wildcard(federation);
        let Subscriber { type_url, denied, .. } = subscriber;
        let Some(denied) = denied else { return ControlFlow::Continue(()) };
        // That the wildcard is denied removes nothing, and does not wait.
        while (removals == Removals::Include || denied.owes_wildcard())
            && let Some((name, error)) = denied.pop(type_url, &**client)
        {
            let removed = !has_wildcard && name.as_str() != "*";
            visitor(Failed::new(&name, &error, false, removed))?;
        }
        ControlFlow::Continue(())
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
    pub(super) fn may_ask(&self, client: &dyn Client, text: &CanonicalText<'_>) -> bool {
        let name = ResourceName::parse(text.as_str()).map(Interest::from);
        let denied = self.denied.is_some() || name.map_or(true, |name| client.denies(&self.type_url, &name).is_some());
        // Whoever was denied something is looked at by name, which may be among that.
        !denied
    }
}
