//! What one stream fetches for itself, because it must not be shared (rule 121).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use xdstp_cache::{Interest, SubscriberId, Version};
use xdstp_uri::ResourceName;

use super::{Routes, leave_part};
use crate::federation::part::Part;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::subscriber::{Stub, Subscriber};

impl Routes {
    /// Asks an origin for a name on a stream of this client's own. What the client may hold of it stays until that stream
    /// says otherwise (rule 150).
    pub(super) fn fetch_privately(&mut self, id: SubscriberId, Stub { name, shared, once_shared }: Stub) {
        let Self { federation, number, node, private, subscribers, view, waker, client, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return };
        let origin = shared.origin();
        let moves = subscriber.private.contains_key(&name);
        if moves && let Some(part) = subscriber.private_parts.iter().find(|part| part.scope.origin() == origin) {
            if subscriber.asks_again {
                part.scope.resend(part.id, &name);
            }
            return;
        }
        let part = match subscriber.private_parts.iter().find(|part| part.scope.origin() == origin) {
            Some(part) => part.clone(),
            None => {
                let selector = shared.key.selector();
                let key = ScopeKey::Private(*number).selected(selector);
                if let Err(error) = client.enters(&key) {
                    return self.refuse(&error);
                }
                let scope = match private.entry((origin, selector.cloned())) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(new) => match federation.private_scope(*number, origin, selector, node) {
                        Ok(scope) => new.insert(scope).clone(),
                        Err(error) => {
                            client.leaves(&key);
                            return self.refuse(&error);
                        }
                    },
                };
                let part = view.open(scope, &subscriber.type_url, waker);
                subscriber.private_parts.push(part.clone());
                part
            }
        };
        part.scope.subscribe(&subscriber.type_url, part.id, &Interest::Name(name.clone()));
        if once_shared || subscriber.brings {
            part.scope.resume(&subscriber.type_url, part.id, vec![(name.clone(), Version::from(""))]);
        }
        subscriber.private.insert(name, shared);
        if moves {
            // It was fetched from another origin, which nothing may be of any more.
            self.drop_private(id, |_, _, _| false);
        }
    }

    /// Ends private interest in names that nothing asks for any more, and the streams that are not needed then.
    pub(super) fn drop_private(
        &mut self,
        id: SubscriberId,
        unwanted: impl Fn(&ResourceName, &mut Arc<Scope>, &[Part]) -> bool,
    ) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let Subscriber { type_url, parts, private_parts, private, .. } = subscriber;
        private.retain(|name, shared| {
            let drop = unwanted(name, shared, parts);
            if drop && let Some(part) = private_parts.iter().find(|part| part.scope.origin() == shared.origin()) {
                part.scope.unsubscribe(type_url, part.id, &Interest::Name(name.clone()));
            }
            !drop
        });
        let unused = |part: &mut Part| !private.values().any(|shared| shared.origin() == part.scope.origin());
        for part in private_parts.extract_if(.., unused) {
            leave_part(&self.view, &*self.client, type_url, &part);
        }
        let Self { private, subscribers, .. } = self;
        private.retain(|_, scope| subscribers.iter().any(|(_, of)| of.fetches_from(scope)));
    }
}
