//! Looking at single resources.

use std::collections::BTreeSet;

use xdstp_uri::{CanonicalText, ResourceName};

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, SlotKey, Target, TypeKey};
use crate::links::{Gone, List, State, Walk};
use crate::resource::{Resource, TypeUrl};

impl<V> Cache<V> {
    /// Whether a subscriber is interested in a name, by whatever interest.
    pub fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.is_open(id) && self.is_wanted(id, self.subscribers[id.key()].type_key, name)
    }

    /// The resource of a name that a subscriber is interested in, by whatever interest.
    pub fn wanted(&self, id: SubscriberId, name: &ResourceName) -> Option<&Resource<V>> {
        if !self.is_open(id) {
            return None;
        }
        let type_key = self.subscribers[id.key()].type_key;
        let at = self.slot_of(type_key, name)?;
        self.is_wanted(id, type_key, name).then(|| self.slots[at].state.resource()).flatten()
    }

    /// The slot of the name that a text is the canonical form of, if there is one.
    pub(crate) fn known(&self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<SlotKey> {
        if !self.is_open(id) {
            return None;
        }
        let names = &self.types[self.subscribers[id.key()].type_key].names;
        names.find_by(&self.slots, text, |slot| slot.name.as_str() == text.as_str())
    }

    /// Whether a name that a subscriber asked for stands for a resource that is there (rule 105).
    pub fn is_alias(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let at = self.slot_of(self.subscribers[id.key()].type_key, name);
        at.is_some_and(|at| self.link_of(id, Target::Slot(at)).is_some() && self.resolve(at) != at)
    }

    /// Whether the resource of a name is there, or one of a collection.
    pub fn holds_any(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        match interest {
            Interest::Name(name) if !name.is_glob() => self.resource(type_url, name).is_some(),
            collection => {
                let list = self.type_keys.get(type_url).and_then(|of| self.list_of(*of, collection));
                list.is_some_and(|list| self.lists[list].live > 0)
            }
        }
    }

    /// What a name stands for, whose resource is there (rule 105): the last that claimed it as an alias.
    pub fn canonical(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<&ResourceName> {
        let type_key = self.type_keys.get(type_url)?;
        self.types[*type_key].aliases.canonical(alias)
    }

    /// Whether a name that is not there, is known not to be: it was answered itself, or a collection of the subscriber
    /// that covers it is complete, or its wildcard was said not to have it any more.
    pub fn is_absent(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let type_key = self.subscribers[id.key()].type_key;
        match self.slot_of(type_key, name) {
            Some(at) if self.link_of(id, Target::Slot(at)).is_some() => {
                matches!(self.slots[at].state, State::Absent)
            }
            Some(at) if self.slots[at].state.resource().is_some() => false,
            _ => self.is_answered(id, type_key, name) || self.went_from_wildcard(id, type_key, name),
        }
    }

    /// Whether a name went from the subscriber's wildcard since the origin is there, though that is not complete.
    fn went_from_wildcard(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        let wildcard = |link: &LinkKey| match self.links[*link].target {
            Target::List(list) => self.lists[list].glob.is_none(),
            Target::Slot(_) => false,
        };
        let Some(link) = self.covering(id, type_key, name).find(wildcard) else { return false };
        let Target::List(list) = self.links[link].target else { return false };
        let since = self.lists[list].gone.iter().rev().take_while(|gone| gone.seq > self.lost);
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
    /// cache.upsert_raw(&clusters, &cart, Resource::unversioned(7, ()), now, &mut Vec::new());
    /// cache.pull(subscriber, Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    ///
    /// cache.remove(&clusters, &cart, now, &mut Vec::new());
    /// assert!(cache.may_hold(subscriber, &shop).contains(&cart));
    /// cache.pull(subscriber, Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    /// assert!(cache.may_hold(subscriber, &shop).is_empty());
    /// ```
    pub fn may_hold(&self, id: SubscriberId, interest: &Interest) -> BTreeSet<ResourceName> {
        let target = self.is_open(id).then(|| self.existing_target(self.subscribers[id.key()].type_key, interest));
        let Some((target, link)) = target.flatten().and_then(|target| Some((target, self.link_of(id, target)?))) else {
            return BTreeSet::new();
        };
        match target {
            Target::Slot(slot) => self.names_of(link, slot),
            Target::List(list) => {
                let Some(Walk { gone_cursor, since, complete, .. }) = self.walk(link) else { return BTreeSet::new() };
                let members = self.lists[list].members(&self.slots);
                let List { gone, owed, .. } = &self.lists[list];
                // It was not told of what went later, nor before its answer was complete of what went before it came.
                let untold =
                    |gone: &&Gone| !gone.name.is_glob() && (gone.seq > *gone_cursor || !complete && gone.seq <= *since);
                let untold = gone.iter().chain(owed).filter(untold).map(|gone| gone.name.clone());
                let pending = self.pending_within(id, target);
                members.map(|at| self.slots[at].name.clone()).chain(untold).chain(pending).collect()
            }
        }
    }

    /// What is held of a name, to change what is not its content, such as how long it lives: nobody is told.
    pub fn value_mut(&mut self, type_url: &TypeUrl, name: &ResourceName) -> Option<&mut V> {
        let at = self.find(type_url, name)?;
        self.slots[at].state.resource_mut().map(|resource| &mut resource.value)
    }
}
