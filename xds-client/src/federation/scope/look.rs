//! What admin pages and metrics see of a scope. Nobody waits for them: they hold its lock for a part at a time.

use std::ops::Bound;

use xdstp_cache::{Interest, Resource, ResourceError, Stored, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use super::{BATCH, Scope};
use crate::federation::demand::Wish;
use xds_transport::Frame;

/// What is known of a name.
#[derive(Debug)]
pub struct Look {
    /// What it is called itself, where it was asked for by an alias.
    pub name: ResourceName,
    /// What is there, if anything is.
    pub resource: Option<Resource<Frame>>,
    /// Which of its variants that is, if it has any: whom it is for (TP2).
    pub variant: Option<String>,
    /// Whether the origin has answered for it.
    pub is_known: bool,
    /// What the origin found wrong.
    pub error: Option<String>,
    /// Whether that is known from before a restart only.
    pub stale: bool,
    /// Whether the subscriber that was looked for was sent that.
    pub is_sent: bool,
}

impl Scope {
    /// Whether there is anything to see of it.
    pub fn is_dormant(&self) -> bool {
        self.is_idle() && self.lock().cache.resources().next().is_none()
    }

    /// How many resources are known from before a restart only.
    pub fn stale_count(&self) -> usize {
        self.lock().cache.stale_count()
    }

    /// Whether a resource is.
    pub(crate) fn is_stale(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        self.lock().cache.is_stale(type_url, name)
    }

    /// How many subscribers it has.
    pub fn subscriber_count(&self) -> usize {
        self.lock().cache.subscriber_count()
    }

    /// What is `picked` of some of the names that something is known of, and where others begin, if there are more; the first
    /// begin at 0. The scope is locked while one is picked: that asks nothing of the federation.
    pub fn stored_from<T>(&self, from: usize, picked: impl Fn(Stored<'_, Frame>) -> T) -> (Vec<T>, Option<usize>) {
        let state = self.lock();
        let (part, next) = state.cache.resources_from(from, BATCH);
        (part.map(&picked).collect(), next)
    }

    /// Visits what is `picked` of every name that something is known of, while others may use the scope; but not while one is
    /// picked.
    pub fn visit_stored<T>(&self, picked: impl Fn(Stored<'_, Frame>) -> T, mut visitor: impl FnMut(T)) {
        let mut next = Some(0);
        while let Some(from) = next {
            let part;
            (part, next) = self.stored_from(from, &picked);
            part.into_iter().for_each(&mut visitor);
        }
    }

    /// The names and collections that are subscribed upstream.
    pub fn subscriptions(&self) -> Vec<Wish> {
        let mut subscriptions: Vec<Wish> = Vec::new();
        loop {
            let before = subscriptions.len();
            let after = subscriptions.last().cloned().map_or(Bound::Unbounded, Bound::Excluded);
            if let Some(demand) = &self.lock().demand {
                subscriptions.extend(demand.wanted().range((after, Bound::Unbounded)).take(BATCH).cloned());
            }
            if subscriptions.len() == before {
                return subscriptions;
            }
        }
    }

    /// How many these are.
    pub fn subscription_count(&self) -> usize {
        self.lock().demand.as_ref().map_or(0, |demand| demand.wanted().len())
    }

    /// As what a subscriber asked for a name of its type: the name, the glob that has it, or everything.
    pub fn asked_for_as(&self, id: SubscriberId, name: &ResourceName) -> Option<Interest> {
        let cache = &self.lock().cache;
        let everything = (name.is_opaque() || cache.wildcard_covers_xdstp()).then_some(Interest::Wildcard);
        let named = [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
        named.chain(everything).find(|interest| cache.is_subscribed(id, interest))
    }

    /// What is known of a name, and whether a subscriber was sent that.
    pub fn look_at(&self, type_url: &TypeUrl, name: &ResourceName, id: Option<SubscriberId>) -> Look {
        let cache = &self.lock().cache;
        let own = cache.canonical(type_url, name).unwrap_or(name);
        let resource = cache.resource(type_url, own).cloned();
        let is_known = cache.is_known(type_url, &Interest::Name(own.clone()));
        Look {
            variant: resource.as_ref().and_then(|resource| resource.value.variant()).map(ToString::to_string),
            is_known,
            error: cache.error(type_url, own).map(ToString::to_string),
            stale: cache.is_stale(type_url, own),
            is_sent: (is_known || resource.is_some()) && id.is_some_and(|id| cache.is_sent(id, own)),
            name: own.clone(),
            resource,
        }
    }

    /// Whether it is known that a name or collection fails, and in just these words.
    pub(crate) fn fails(&self, type_url: &TypeUrl, name: &ResourceName, error: &ResourceError) -> bool {
        self.lock().cache.error(type_url, name) == Some(error)
    }

    /// What a subscriber asks for: bounded by what a stream may.
    pub fn interests(&self, id: SubscriberId) -> Vec<Interest> {
        let mut interests: Vec<Interest> = Vec::new();
        loop {
            let before = interests.len();
            interests.extend(self.lock().cache.interests_from(id, before).take(BATCH));
            if interests.len() < before + BATCH {
                return interests;
            }
        }
    }
}
