//! Forgetting what nobody is subscribed to.

use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::interest::Interest;
use crate::keys::{ListKey, SlotKey, Target, TypeKey};
use crate::store::{Answer, Slot};
use crate::text::TypeUrl;

impl<V> Cache<V> {
    /// Forgets what only `interest` kept: nobody is subscribed to it any more, so nobody is told.
    /// What others are subscribed to stays, and so does what belongs to an answered collection.
    ///
    /// What is forgotten is unknown again: a later subscriber waits until its origin is asked and answers.
    /// An authoritative cache forgets nothing: there, what is not in it does not exist. Of a glob that somebody was
    /// subscribed to the members leave tombstones: who comes back to it is told of those that its next
    /// [answer](crate::Edit::answered) does not have (rule 100).
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
    ///     let mut edit = cache.edit(Instant::now());
    ///     edit.put(&clusters, name, Resource::unversioned(7, ()));
    ///     let _ = edit.finish();
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
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, ()));
    /// let _ = edit.finish();
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
        if self.store.options.authoritative {
            return;
        }
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return };
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                let canonical = self.store[type_key].aliases.canonical(name).unwrap_or(name);
                if let Some(at) = self.store.slot_of(type_key, canonical) {
                    self.evict_slot(at, keeps);
                }
                self.forget_error(type_key, name);
            }
            collection => {
                if let Some(list) = self.store.list_of(type_key, collection) {
                    self.evict_list(list, keeps);
                }
            }
        }
        self.store.drop_type_if_unused(type_key);
    }

    /// Evicts until there is no more than there may be, or nothing left that nobody is subscribed to.
    pub(crate) fn make_room(&mut self) {
        let Some(capacity) = self.store.capacity() else { return };
        while self.store.present > capacity
            && let Some(target) = self.store.idle.pop()
        {
            let type_key = match target {
                Target::Slot(at) => {
                    let Slot { type_key, ref name, .. } = self.store[at];
                    let name = name.clone();
                    self.evict_slot(at, &|_| false);
                    self.forget_error(type_key, &name);
                    type_key
                }
                Target::List(at) => {
                    let type_key = self.store[at].type_key;
                    if self.store[at].answer != Answer::None {
                        self.evict_list(at, &|_| false);
                    }
                    type_key
                }
            };
            self.store.drop_type_if_unused(type_key);
        }
    }

    fn evict_list(&mut self, at: ListKey, keeps: &dyn Fn(&ResourceName) -> bool) {
        if self.store[at].watchers.count > 0 {
            return;
        }
        if self.store[at].answer != Answer::None {
            self.store.note_list(at);
        }
        self.store[at].answer = Answer::None;
        let type_key = self.store[at].type_key;
        let failed: Vec<_> = self.store[at].failed.values().cloned().collect();
        let members: Vec<_> = self.store.members(at).collect();
        for member in members {
            self.evict_slot(member, keeps);
        }
        for name in failed {
            self.forget_error(type_key, &name);
        }
        if self.store.lists().contains(at) {
            self.store.drop_list_if_unused(at);
        }
    }

    fn evict_slot(&mut self, at: SlotKey, keeps: &dyn Fn(&ResourceName) -> bool) {
        let slot = &self.store[at];
        let (type_key, lists) = (slot.type_key, slot.lists());
        let mut within = slot.lists().map(|list| &self.store[list]);
        if self.store.is_watched(at) || within.any(|list| list.watchers.count > 0 || list.answer != Answer::None) {
            return;
        }
        let aliases = self.store[type_key].aliases.of(&slot.name);
        if slot.state.is_present() && aliases.iter().chain([&slot.name]).any(keeps) {
            return;
        }
        let name = slot.name.clone();
        let aliases = self.store[type_key].aliases.clear(&name);
        if self.store[at].state.is_present() {
            self.store.note_evicted(type_key, &name, aliases);
        }
        self.totals.evicted += self.store.take(at).count() as u64;
        for list in lists {
            self.store.leave_list(list, at);
            self.bury_forgotten(list, &name);
            self.store.drop_list_if_unused(list);
        }
        self.store.drop_slot_if_unused(at);
    }

    /// Forgets an error that nobody is interested in: not one that spares what somebody holds.
    pub(crate) fn forget_error(&mut self, type_key: TypeKey, name: &ResourceName) {
        let Some(failure) = self.store[type_key].errors.get(name) else { return };
        let is_of_interest = match failure.listed {
            true => self.store.is_of_interest(type_key, name),
            false => self.store.slot_of(type_key, name).is_some(),
        };
        if is_of_interest {
            return;
        }
        let spares = failure.error.is_transient() && self.is_brought(type_key, name);
        if !spares {
            self.store.clear_error(type_key, name);
        }
    }
}
