//! Routes: one downstream stream's view of the relay, a source over as many scopes as its names need.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use prost::Message;
use slab::Slab;
use xds_transport::Frame;
use xds_transport::grpc::server::{Opened, Wake};
use xds_transport::server::{Source, Tally};
use xds_transport::wire::Node;
use xdstp_cache::{Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version};
use xdstp_uri::ResourceName;

use crate::relay_core::RelayCore;
use crate::relay_core::scope::Scope;

/// Routes one stream's interest: `xdstp:` names by authority, old-style names by node group.
pub struct Routes {
    relay: Arc<RelayCore>,
    stream: u64,
    wake: Wake,
    node: Bytes,
    /// The scope of this node's old-style names, once one was asked for.
    group: Option<Arc<Scope>>,
    /// What this stream fetches for itself, by origin (rule 121).
    private: HashMap<usize, Arc<Scope>>,
    subscribers: Slab<Subscriber>,
    view: Arc<View>,
}

/// What an admin page may know of a stream while it is served.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) node_id: Mutex<String>,
    /// Its subscribers in each scope.
    pub(crate) parts: Mutex<Vec<(TypeUrl, Part)>>,
}

struct Subscriber {
    type_url: TypeUrl,
    parts: Vec<Part>,
    /// Names that this stream is served from its private scopes.
    private: HashMap<ResourceName, Part>,
}

/// A subscriber of one scope.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) scope: Arc<Scope>,
    pub(crate) id: SubscriberId,
}

impl Routes {
    pub(crate) fn new(relay: Arc<RelayCore>, stream: u64, opened: &Opened, view: Arc<View>) -> Self {
        Self {
            relay,
            stream,
            wake: opened.wake.clone(),
            node: Bytes::new(),
            group: None,
            private: HashMap::new(),
            subscribers: Slab::new(),
            view,
        }
    }

    fn route(&mut self, interest: &Interest) -> Arc<Scope> {
        if let Interest::Name(name) = interest
            && let Some(authority) = name.authority()
        {
            return self.relay.authority_scope(authority);
        }
        self.group.get_or_insert_with(|| self.relay.group_scope(&self.node)).clone()
    }

    /// The part of a subscriber that serves an interest, opened when there is none yet.
    fn part(&mut self, id: SubscriberId, interest: &Interest) -> Option<Part> {
        let scope = self.route(interest);
        let subscriber = self.subscribers.get_mut(id.index())?;
        if let Some(part) = subscriber.parts.iter().find(|part| Arc::ptr_eq(&part.scope, &scope)) {
            return Some(part.clone());
        }
        let part = self.view.open(scope, &subscriber.type_url, &self.wake);
        subscriber.parts.push(part.clone());
        Some(part)
    }

    /// Asks an origin for a name on a stream of this client's own.
    fn fetch_privately(&mut self, id: SubscriberId, name: ResourceName, origin: usize) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        if subscriber.private.contains_key(&name) {
            return;
        }
        let Self { relay, stream, node, private, .. } = self;
        let scope = private.entry(origin).or_insert_with(|| relay.private_scope(*stream, origin, node)).clone();
        let opened = subscriber.private.values().find(|part| Arc::ptr_eq(&part.scope, &scope)).cloned();
        let part = opened.unwrap_or_else(|| self.view.open(scope, &subscriber.type_url, &self.wake));
        part.scope.subscribe(&subscriber.type_url, part.id, &Interest::Name(name.clone()));
        subscriber.private.insert(name, part);
    }

    /// Ends private interest in names that nothing asks for any more.
    fn drop_private(&mut self, id: SubscriberId, unwanted: impl Fn(&ResourceName, &[Part]) -> bool) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let Subscriber { type_url, parts, private } = subscriber;
        private.retain(|name, part| {
            let drop = unwanted(name, parts);
            if drop {
                part.scope.unsubscribe(type_url, part.id, &Interest::Name(name.clone()));
            }
            !drop
        });
    }

    /// One round over the parts: what is visited comes from the shared scopes, but for stubs of
    /// resources that must not be shared, which are noted instead.
    fn pull_parts(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let mut pulled = Pulled::default();
        let mut stubs: Vec<(ResourceName, usize)> = Vec::new();
        let mut served: Vec<ResourceName> = Vec::new();
        let Some(subscriber) = self.subscribers.get(id.index()) else { return pulled };
        let all = subscriber.all_parts();
        for part in all {
            let (shared, origin) = (part.scope.shared, part.scope.origin);
            let private = &subscriber.private;
            let this = part.scope.pull(part.id, removals, &mut |pull| {
                let name = match &pull {
                    Pull::Put { name, resource } if shared && resource.value.do_not_cache() => {
                        stubs.push(((*name).clone(), origin));
                        return ControlFlow::Continue(());
                    }
                    Pull::Put { name, .. } | Pull::Removed { name } => name,
                    _ => return visitor(pull),
                };
                if shared && private.contains_key(*name) {
                    served.push((*name).clone());
                }
                visitor(pull)
            });
            pulled = pulled.and(this);
            if pulled.more {
                break;
            }
        }
        self.drop_private(id, |name, _| served.contains(name));
        for (name, origin) in stubs {
            self.fetch_privately(id, name, origin);
        }
        pulled
    }
}

impl View {
    fn open(&self, scope: Arc<Scope>, type_url: &TypeUrl, wake: &Wake) -> Part {
        let id = scope.open(type_url, wake.clone());
        let part = Part { scope, id };
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push((type_url.clone(), part.clone()));
        part
    }

    fn close(&self, type_url: &TypeUrl, part: &Part) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|(_, open)| !(Arc::ptr_eq(&open.scope, &part.scope) && open.id == part.id));
        drop(parts);
        part.scope.close(type_url, part.id);
    }
}

impl Subscriber {
    /// The shared parts, then the private ones, each once.
    fn all_parts(&self) -> Vec<Part> {
        let mut all = self.parts.clone();
        for part in self.private.values() {
            if !all.iter().any(|other| Arc::ptr_eq(&other.scope, &part.scope)) {
                all.push(part.clone());
            }
        }
        all
    }
}

impl Source for Routes {
    fn identify(&mut self, node: &Bytes) {
        self.node = node.clone();
        let id = Node::decode(node.clone()).map(|node| node.id).unwrap_or_default();
        *self.view.node_id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let subscriber = Subscriber { type_url: type_url.clone(), parts: Vec::new(), private: HashMap::new() };
        SubscriberId::from_index(self.subscribers.insert(subscriber) as u32)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        let Some(subscriber) = self.subscribers.try_remove(id.index()) else { return };
        for part in subscriber.all_parts() {
            self.view.close(&subscriber.type_url, &part);
        }
        self.relay.count(&subscriber.type_url, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        let Some(part) = self.part(id, interest) else { return false };
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        part.scope.subscribe(&subscriber.type_url, part.id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        let Some(part) = self.part(id, interest) else { return false };
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        let held = part.scope.unsubscribe(&subscriber.type_url, part.id, interest);
        self.drop_private(id, |name, parts| !parts.iter().any(|part| part.scope.covers(part.id, name)));
        held
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        let mut parts: Vec<(Part, Vec<(ResourceName, Version)>)> = Vec::new();
        for (name, version) in held {
            let Some(part) = self.part(id, &Interest::Name(name.clone())) else { continue };
            match parts.iter_mut().find(|(known, _)| Arc::ptr_eq(&known.scope, &part.scope)) {
                Some((_, held)) => held.push((name, version)),
                None => parts.push((part, vec![(name, version)])),
            }
        }
        for (part, held) in parts {
            part.scope.resume(part.id, held);
        }
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let one_scope = self.subscribers.get(id.index()).is_some_and(|of| of.parts.len() <= 1 && of.private.is_empty());
        if one_scope || removals == Removals::Defer {
            return self.pull_parts(id, removals, visitor);
        }
        // Rule 134: no scope's removals before another's additions.
        let additions = self.pull_parts(id, Removals::Defer, visitor);
        if additions.more {
            return additions;
        }
        additions.and(self.pull_parts(id, Removals::Include, visitor))
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return Unanswered::default() };
        subscriber.all_parts().iter().fold(Unanswered::default(), |unanswered, part| {
            let shared = part.scope.shared;
            unanswered.and(part.scope.visit(part.id, &mut |name, resource| {
                if !(shared && resource.value.do_not_cache()) {
                    visitor(name, resource);
                }
            }))
        })
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        subscriber.all_parts().iter().any(|part| part.scope.has_work(part.id))
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        subscriber.all_parts().iter().any(|part| part.scope.resend(part.id, name))
    }

    fn type_version(&self, id: SubscriberId) -> Option<Version> {
        let subscriber = self.subscribers.get(id.index())?;
        match subscriber.parts.as_slice() {
            [only] if subscriber.private.is_empty() => only.scope.type_version(only.id),
            _ => None,
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.relay.forget_stream(self.stream);
    }
}
