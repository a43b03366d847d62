//! Looking at what a subscriber wants, and may hold.

use std::collections::BTreeSet;

use xdstp_uri::{CanonicalText, ResourceName};

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, SlotKey, Target, TypeKey};
use crate::resource::Resource;
use crate::store::{Gone, List};
use crate::subscribers::Walk;

impl<V> Cache<V> {
    /// Whether a subscriber is interested in a name, by whatever interest.
    pub fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.is_open(id) && self.is_wanted(id, self.subscribers[id].type_key, name)
    }

    /// The resource of a name that a subscriber is interested in, by whatever interest.
    pub fn wanted(&self, id: SubscriberId, name: &ResourceName) -> Option<&Resource<V>> {
        if !self.is_open(id) {
            return None;
        }
        self.is_wanted(id, self.subscribers[id].type_key, name).then(|| self.seen_by_name(id, name)).flatten()
    }

    /// Whether a subscriber was sent what there is of a name as it is now, or said that it has it: otherwise it is to be sent.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource};
    ///
    /// let (clusters, cart) = ("type.googleapis.com/envoy.config.cluster.v3.Cluster".into(), "cart".parse().unwrap());
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// for digest in [7, 8] {
    ///     let mut edit = cache.edit(Instant::now());
    ///     edit.put(&clusters, &cart, Resource::unversioned(digest, ()));
    ///     let _ = edit.finish();
    ///     assert!(!cache.is_sent(subscriber, &cart));
    ///     cache.pull(subscriber, Removals::Include, &mut |_| ControlFlow::Continue(()));
    ///     assert!(cache.is_sent(subscriber, &cart));
    /// }
    /// ```
    pub fn is_sent(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let type_key = self.subscribers[id].type_key;
        let Some(at) = self.store.slot_of(type_key, name) else { return false };
        let seq = self.store[at].seq;
        self.links_to(id, at)
            .chain(self.covering(id, type_key, name))
            .any(|link| self.subscribers[link].cursor() >= seq)
    }

    /// The slot of the name that a text is the canonical form of, if there is one.
    pub(crate) fn known(&self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<SlotKey> {
        if !self.is_open(id) {
            return None;
        }
        self.store.known(self.subscribers[id].type_key, text)
    }

    /// Whether a name that a subscriber asked for stands for a resource that is there (rule 105).
    pub fn is_alias(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let at = self.store.slot_of(self.subscribers[id].type_key, name);
        at.is_some_and(|at| self.subscribers.link_of(id, Target::Slot(at)).is_some() && self.store.resolve(at) != at)
    }

    /// Whether a name that is not there, is known not to be: it was answered itself, or a collection of the subscriber
    /// that covers it is complete, or its wildcard was said not to have it any more.
    pub fn is_absent(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let type_key = self.subscribers[id].type_key;
        match self.store.slot_of(type_key, name) {
            _ if self.store.is_unreadable(type_key, name) && !self.store.is_here(type_key, name) => false,
            Some(at) if self.subscribers.link_of(id, Target::Slot(at)).is_some() => self.is_absent_for(id, at),
            Some(at) if self.store[at].state.is_present() => self.is_absent_for(id, at),
            _ => self.is_answered(id, type_key, name) || self.went_from_wildcard(id, type_key, name),
        }
    }

    /// Whether a name went from the subscriber's wildcard since the origin is there, though that is not complete.
    fn went_from_wildcard(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        let wildcard = |link: &LinkKey| match self.subscribers.target(*link) {
            Target::List(list) => self.store[list].glob.is_none(),
            Target::Slot(_) => false,
        };
        let Some(link) = self.covering(id, type_key, name).find(wildcard) else { return false };
        let Target::List(list) = self.subscribers.target(link) else { return false };
        let since = self.store[list].gone.iter().rev().take_while(|gone| gone.seq > self.store.lost);
        since.map(|gone| &gone.name).any(|gone| gone == name)
    }

    /// The names that a subscriber may hold because of one of its interests: what is there of it, what went and it was not
    /// told of, and what an alias stands for, or stood for when the subscriber was sent that.
    ///
    /// For who leaves the interest, and keeps the names because another source has them, too.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let shop = "xdstp://authority/envoy.config.cluster.v3.Cluster/shop/*".parse().unwrap();
    /// let cart = "xdstp://authority/envoy.config.cluster.v3.Cluster/shop/cart".parse().unwrap();
    /// let (shop, now) = (Interest::Name(shop), Instant::now());
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &shop);
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, ()));
    /// let _ = edit.finish();
    /// cache.pull(subscriber, Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    ///
    /// let mut edit = cache.edit(now);
    /// edit.remove(&clusters, &cart);
    /// let _ = edit.finish();
    /// assert!(cache.may_hold(subscriber, &shop).contains(&cart));
    /// cache.pull(subscriber, Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    /// assert!(cache.may_hold(subscriber, &shop).is_empty());
    /// ```
    pub fn may_hold(&self, id: SubscriberId, interest: &Interest) -> BTreeSet<ResourceName> {
        let target = self.is_open(id).then(|| self.store.existing_target(self.subscribers[id].type_key, interest));
        let Some((target, link)) =
            target.flatten().and_then(|target| Some((target, self.subscribers.link_of(id, target)?)))
        else {
            return BTreeSet::new();
        };
        match target {
            Target::Slot(slot) => self.names_of(link, slot),
            Target::List(list) => {
                let Some(Walk { gone_cursor, since, complete, .. }) = self.subscribers.walk(link) else {
                    return BTreeSet::new();
                };
                let members = self.store.members(list);
                let List { gone, owed, .. } = &self.store[list];
                // It was not told of what went later, nor before its answer was complete of what went before it came.
                let untold =
                    |gone: &&Gone| !gone.name.is_glob() && (gone.seq > *gone_cursor || !complete && gone.seq <= *since);
                let untold = gone.iter().chain(owed).filter(untold).map(|gone| gone.name.clone());
                let pending = self.pending_within(id, target);
                members
                    .filter(|at| self.may_hold_member(id, *at))
                    .map(|at| self.store[at].name.clone())
                    .chain(untold)
                    .chain(pending)
                    .collect()
            }
        }
    }

    /// Whether a subscriber may hold what is in the slot of a member: not of variants of which none was for it.
    fn may_hold_member(&self, id: SubscriberId, at: SlotKey) -> bool {
        let held = || self.look_of(id, &self.store[at].name).is_none_or(|look| !look.held.is_empty());
        self.seen(id, at).is_some() || held()
    }
}
