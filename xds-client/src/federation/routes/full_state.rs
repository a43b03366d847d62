//! All that a subscriber is to hold, from all of its parts.

use std::collections::HashSet;

use xds_transport::Frame;
use xdstp_cache::{Removals, Resource, SubscriberId, Unanswered};
use xdstp_uri::ResourceName;

use super::Routes;
use crate::federation::denied::Screen;
use crate::federation::moved::is_unknown;
use crate::federation::part::Part;
use crate::federation::scope::stub::may_be_held;

impl Routes {
    /// Visits all there is of what the subscriber wants; what is not answered of it is returned.
    pub(super) fn visit_all(
        &mut self,
        id: SubscriberId,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
    ) -> Unanswered {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return Unanswered::default() };
        let several = subscriber.parts.len() > 1;
        // What the part of the name's own authority has, counts.
        let mut own: HashSet<ResourceName> = HashSet::new();
        let is_own = |part: &Part, name: &ResourceName| part.scope.is_at(self.federation.place(name.authority()));
        let mut unanswered = Unanswered::default();
        // What must not be shared, and whether the client may hold what was.
        let mut stubs: Vec<(ResourceName, bool)> = Vec::new();
        let mut others: Vec<(bool, ResourceName, Resource<Frame>)> = Vec::new();
        let has_wildcard = self.client.is_limited() && subscriber.has_wildcard(&self.federation);
        let mut screen = Screen::of(&*self.client, &subscriber.type_url, has_wildcard);
        for part in subscriber.all_parts() {
            let shared = part.scope.shared;
            unanswered = unanswered.and(part.scope.visit(part.id, &mut |name, resource| {
                if screen.as_mut().is_some_and(|screen| screen.keeps_resource(&part.scope, name, resource)) {
                    return;
                }
                if shared && resource.value.do_not_cache() {
                    return stubs.push((name.clone(), may_be_held(resource)));
                }
                if several {
                    if shared && !is_own(part, name) {
                        let of_group = part.scope.key.authority().is_none();
                        return others.push((of_group, name.clone(), resource.clone()));
                    }
                    // What is fetched for this client is what that part has.
                    if !name.is_opaque() {
                        own.insert(name.clone());
                    }
                }
                visitor(name, resource);
            }));
        }
        others.sort_by_key(|(of_group, ..)| *of_group);
        for (_, name, resource) in others {
            if own.insert(name.clone()) {
                visitor(&name, &resource);
            }
        }
        for (_, held) in stubs.iter().filter(|(name, _)| subscriber.awaits_private(name)) {
            unanswered.names += 1;
            unanswered.held += usize::from(*held);
        }
        if let Some(subscriber) = self.subscribers.get_mut(id.index()).filter(|subscriber| subscriber.moves) {
            unanswered.held = unanswered.names + unanswered.collections + unanswered.refused;
            subscriber.moves = unanswered.any();
        }
        unanswered
    }

    /// What is not answered of the collections that a subscriber wants: what is there is not visited for that.
    pub fn unanswered_collections(&self, id: SubscriberId) -> Unanswered {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return Unanswered::default() };
        let of_parts = subscriber.all_parts().map(|part| part.scope.unanswered_collections(part.id));
        of_parts.fold(Unanswered::default(), Unanswered::and)
    }

    /// Visits what is gone, and may be told only later; and what may be gone, of which that is not known yet.
    pub(super) fn visit_leaving_all(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return };
        let has_wildcard = self.client.is_limited() && subscriber.has_wildcard(&self.federation);
        let mut screen = Screen::of(&*self.client, &subscriber.type_url, has_wildcard);
        for (name, resource) in subscriber.moved.iter().flat_map(|moved| moved.leaving()) {
            let is_wanted = subscriber.all_parts().any(|part| part.scope.covers(part.id, name));
            let _ = is_wanted
                && (removals == Removals::Defer || is_unknown(subscriber.all_parts(), name))
                && visitor(name, resource);
        }
        for part in subscriber.all_parts() {
            let is_stub = |resource: &Resource<Frame>| part.scope.shared && resource.value.do_not_cache();
            part.scope.visit_leaving(part.id, removals, &mut |name, resource| {
                let mut kept =
                    || screen.as_mut().is_some_and(|screen| screen.keeps_resource(&part.scope, name, resource));
                !is_stub(resource) && !kept() && visitor(name, resource)
            });
        }
    }
}
