//! Forgetting what nobody is subscribed to.

use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::interest::Interest;
use crate::keys::{ListKey, SlotKey, Target};
use crate::links::{Answer, Slot, State};
use crate::resource::TypeUrl;

impl<V> Cache<V> {
    /// Forgets what only `interest` kept: nobody is subscribed to it any more, so nobody is told.
    /// What others are subscribed to stays, and so does what belongs to an answered collection.
    ///
    /// What is forgotten is unknown again: a later subscriber waits until its origin is asked and answers.
    /// An authoritative cache forgets nothing: there, what is not in it does not exist. Of a glob that somebody was
    /// subscribed to the members leave tombstones: who comes back to it is told of those that its next
    /// [answer](Self::answered) does not have (rule 100).
    ///
    /// A cache with a [capacity](crate::Options::capacity) does this of its own accord. There, a collection that
    /// was answered goes as a whole, and has to be asked for again: without one of its members it would not be
    /// the answer any more.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Resource};
    ///
    /// let mut options = Options::default();
    /// (options.authoritative, options.capacity) = (false, Some(1));
    /// let mut cache = Cache::new(options);
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let [cart, shop] = ["cart", "shop"].map(|name| Interest::Name(name.parse().unwrap()));
    /// let subscriber = cache.open(&clusters);
    /// for interest in [&cart, &shop] {
    ///     cache.subscribe(subscriber, interest);
    ///     let Interest::Name(name) = interest else { unreachable!() };
    ///     cache.upsert_raw(&clusters, name, Resource::unversioned(7, ()), Instant::now(), &mut Vec::new());
    /// }
    /// // Both are wanted, so both are there; one is too many once it is not.
    /// assert!(cache.is_known(&clusters, &cart));
    /// cache.unsubscribe(subscriber, &cart);
    /// assert!(!cache.is_known(&clusters, &cart) && cache.is_known(&clusters, &shop));
    /// ```
    pub fn evict(&mut self, type_url: &TypeUrl, interest: &Interest, now: Instant) {
        self.evict_unless(type_url, interest, now, &|_| false);
    }

    /// Does what [`evict`](Self::evict) does, but for resources of which it `keeps` any name, or alias: of what nobody is
    /// subscribed to, some may be wanted again soon.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Resource};
    ///
    /// let (now, mut options) = (Instant::now(), Options::default());
    /// options.authoritative = false;
    /// let mut cache = Cache::new(options);
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse().unwrap();
    /// cache.upsert_raw(&clusters, &cart, Resource::unversioned(7, ()), now, &mut Vec::new());
    /// let cart = Interest::Name(cart);
    /// cache.evict_unless(&clusters, &cart, now, &|name| name.as_str() == "cart");
    /// assert!(cache.is_known(&clusters, &cart));
    /// cache.evict(&clusters, &cart, now);
    /// assert!(!cache.is_known(&clusters, &cart));
    /// ```
    pub fn evict_unless(
        &mut self,
        type_url: &TypeUrl,
        interest: &Interest,
        now: Instant,
        keeps: &dyn Fn(&ResourceName) -> bool,
    ) {
        self.expire(now);
        if self.options.authoritative {
            return;
        }
        let Some(type_key) = self.type_keys.get(type_url).copied() else { return };
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                let canonical = self.types[type_key].aliases.canonical(name).unwrap_or(name);
                if let Some(at) = self.slot_of(type_key, canonical) {
                    self.evict_slot(at, keeps);
                }
                self.forget_error(type_key, name);
            }
            collection => {
                if let Some(list) = self.list_of(type_key, collection) {
                    self.evict_list(list, keeps);
                }
            }
        }
        self.drop_type_if_unused(type_key);
    }

    /// Evicts until there is no more than there may be, or nothing left that nobody is subscribed to.
    pub(crate) fn make_room(&mut self) {
        let Some(capacity) = self.capacity() else { return };
        while self.present > capacity
            && let Some(target) = self.idle.pop()
        {
            let type_key = match target {
                Target::Slot(at) => {
                    let Slot { type_key, ref name, .. } = self.slots[at];
                    let name = name.clone();
                    self.evict_slot(at, &|_| false);
                    self.forget_error(type_key, &name);
                    type_key
                }
                Target::List(at) => {
                    let type_key = self.lists[at].type_key;
                    if self.lists[at].answer != Answer::None {
                        self.evict_list(at, &|_| false);
                    }
                    type_key
                }
            };
            self.drop_type_if_unused(type_key);
        }
    }

    /// A resource changed, or lost its last watcher: it, or the collections it is part of, may be evicted now.
    pub(crate) fn renew(&mut self, at: SlotKey) {
        if self.capacity().is_none() {
            return;
        }
        let at = self.resolve(at);
        let Slot { places, ref state, .. } = self.slots[at];
        if state.resource().is_none() || self.is_watched(at) {
            return;
        }
        let lists = || places.into_iter().filter_map(|place| place.list);
        if lists().any(|list| self.lists[list].watchers > 0) {
            return;
        }
        let mut whole = false;
        for list in lists() {
            if self.lists[list].answer != Answer::None {
                whole = true;
                self.idle.renew(Target::List(list));
            }
        }
        if !whole {
            self.idle.renew(Target::Slot(at));
        }
    }

    /// The same of a collection.
    pub(crate) fn renew_list(&mut self, at: ListKey) {
        if self.capacity().is_none() || self.lists[at].watchers > 0 {
            return;
        }
        if self.lists[at].answer != Answer::None {
            self.idle.renew(Target::List(at));
        } else {
            let members: Vec<_> = self.lists[at].members(&self.slots).collect();
            members.into_iter().for_each(|at| self.renew(at));
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.options.capacity.filter(|_| !self.options.authoritative)
    }

    fn evict_list(&mut self, at: ListKey, keeps: &dyn Fn(&ResourceName) -> bool) {
        if self.lists[at].watchers > 0 {
            return;
        }
        self.lists[at].answer = Answer::None;
        let type_key = self.lists[at].type_key;
        let failed: Vec<_> = self.lists[at].failed.values().cloned().collect();
        let members: Vec<_> = self.lists[at].members(&self.slots).collect();
        for member in members {
            self.evict_slot(member, keeps);
        }
        for name in failed {
            self.forget_error(type_key, &name);
        }
        if self.lists.contains(at) {
            self.drop_list_if_unused(at);
        }
    }

    fn evict_slot(&mut self, at: SlotKey, keeps: &dyn Fn(&ResourceName) -> bool) {
        let slot = &self.slots[at];
        let mut lists = slot.places.iter().filter_map(|place| place.list).map(|list| &self.lists[list]);
        if self.is_watched(at) || lists.any(|list| list.watchers > 0 || list.answer != Answer::None) {
            return;
        }
        let aliases = self.types[slot.type_key].aliases.of(&slot.name);
        if slot.state.resource().is_some() && aliases.iter().chain([&slot.name]).any(keeps) {
            return;
        }
        let (places, name) = (slot.places, slot.name.clone());
        let evicted = slot.state.resource().is_some();
        self.types[slot.type_key].aliases.clear(&name);
        self.present -= usize::from(evicted);
        self.totals.evicted += u64::from(evicted);
        self.slots[at].state = State::Absent;
        for list in places.into_iter().filter_map(|place| place.list) {
            self.lists[list].unlink(&mut self.slots, at);
            self.bury_forgotten(list, &name);
            self.drop_list_if_unused(list);
        }
        self.drop_slot_if_unused(at);
    }
}
