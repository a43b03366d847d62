//! Storing a resource.

use std::collections::BTreeSet;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::edit::Edit;
use crate::id::SubscriberId;
use crate::keys::{SlotKey, TypeKey};
use crate::outcome::Outcome;
use crate::resource::Resource;
use crate::store::Slot;
use crate::text::TypeUrl;

impl<V> Edit<'_, V> {
    /// Stores a resource.
    ///
    /// A glob and `*` name no resource: what comes under such a name is ignored.
    ///
    /// Raw, because the cache cannot know whether the content is what its type and name say; clients refuse a whole
    /// response over one that is not (rules 81, 82). `xds-transport` has a `put_checked` that looks.
    pub fn put(&mut self, type_url: &TypeUrl, name: &ResourceName, resource: Resource<V>) -> Outcome {
        self.change(|cache, now, woken| cache.upsert_raw(type_url, name, resource, now, woken))
    }

    /// A [`put`](Self::put) that says by what other names the resource may be asked for: who asks for one of
    /// them is sent the resource, under its own name, and once, whatever covers it. These replace the aliases that it
    /// had, which a plain `put` leaves alone; they go when it is removed; and a change of them is told as a change of
    /// the resource.
    ///
    /// An alias belongs to one resource, the last to claim it. The name of a resource that is there, a glob and `*` are
    /// none.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource};
    ///
    /// let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost".into();
    /// let [shop, alias] = ["routes/shop", "routes/shop.example"].map(|name| name.parse().unwrap());
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&hosts);
    /// cache.subscribe(subscriber, &Interest::Name(alias));
    ///
    /// let (resource, aliases) = (Resource::unversioned(7, "body"), ["routes/shop.example".parse().unwrap()]);
    /// let mut edit = cache.edit(Instant::now());
    /// edit.put_with_aliases(&hosts, &shop, aliases, resource);
    /// let _ = edit.finish();
    ///
    /// let mut names = Vec::new();
    /// cache.pull(subscriber, Removals::Include, &mut |pull| {
    ///     if let Pull::Put { name, .. } = pull {
    ///         names.push(name.to_string());
    ///     }
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(names, ["routes/shop"]);
    /// ```
    pub fn put_with_aliases(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        aliases: impl IntoIterator<Item = ResourceName>,
        resource: Resource<V>,
    ) -> Outcome {
        self.change(|cache, now, woken| cache.upsert_raw_with_aliases(type_url, name, aliases, resource, now, woken))
    }

    /// Has everybody interested sent the resource again although it did not change: the origin did so too.
    pub fn touch(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.change(|cache, _, woken| cache.touch(type_url, name, woken));
    }
}

impl<V> Cache<V> {
    /// Stores a resource and appends to `woken` who must be told. A subscriber that has something
    /// to pull already is not named again.
    pub(crate) fn upsert_raw(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        self.change_type(type_url, now, |cache, type_key| cache.store(type_key, name, resource, now, woken))
    }

    pub(crate) fn upsert_raw_with_aliases(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        aliases: impl IntoIterator<Item = ResourceName>,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        self.change_type(type_url, now, |cache, type_key| {
            let outcome = cache.store(type_key, name, resource, now, woken);
            let mut aliases = aliases.into_iter().peekable();
            // Mostly there are none, and were none.
            if (aliases.peek().is_some() || !cache.store[type_key].aliases.is_empty())
                && let Some(at) = cache.store.slot_of(type_key, name)
            {
                cache.set_aliases(at, aliases, woken);
            }
            outcome
        })
    }

    pub(crate) fn touch(&mut self, type_url: &TypeUrl, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        if let Some(at) = self.store.find(type_url, name)
            && self.store[at].state.is_present()
        {
            self.store.clear_error(self.store[at].type_key, name);
            self.store.stale.remove(&at);
            if let Some(varied) = self.store[at].state.varied_mut() {
                varied.touched = true;
                return self.settle_slot(at, woken);
            }
            self.changed(at, woken);
            self.store.renew(at);
        }
    }

    /// An upsert into a type, but for what is done once per call.
    pub(crate) fn store(
        &mut self,
        type_key: TypeKey,
        name: &ResourceName,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        if name.is_glob() || name.as_str() == "*" {
            return Outcome::Unchanged;
        }
        let at = self.store.slot(type_key, name);
        if self.store[at].state.varied().is_some() {
            return self.store_beside(at, resource, now, woken);
        }
        let outcome = match self.store[at].state.resource() {
            None => Outcome::Added,
            Some(old) => Outcome::of(old, &resource),
        };
        let failed = self.store[type_key].errors.contains_key(name);
        let outcome = if failed && outcome == Outcome::Unchanged { Outcome::Recovered } else { outcome };
        self.totals.count(outcome);
        if outcome == Outcome::Unchanged {
            self.confirm_slot(at, woken);
            return outcome;
        }
        if outcome != Outcome::Recovered {
            self.store.put(at, resource, now);
        }
        if outcome == Outcome::Added {
            self.end_alias(type_key, name);
            self.store.enter_lists(at);
        }
        if !self.store[type_key].errors.is_empty() {
            self.store.clear_error(type_key, name);
            if let Some(glob) = name.glob_parent() {
                self.recover(type_key, glob, woken);
            }
        }
        self.changed(at, woken);
        if outcome == Outcome::Added {
            self.store[at].born = self.store.seq;
        }
        self.store.renew(at);
        outcome
    }

    fn set_aliases(
        &mut self,
        at: SlotKey,
        aliases: impl IntoIterator<Item = ResourceName>,
        woken: &mut Vec<SubscriberId>,
    ) {
        let Slot { type_key, ref name, ref state, .. } = self.store[at];
        // What has variants has no aliases: each would be another one's.
        if state.varied().is_some() {
            return;
        }
        let is_resource = |alias: &ResourceName| {
            let slot = self.store.slot_of(type_key, alias).map(|at| &self.store[at]);
            slot.is_some_and(|slot| slot.state.is_present())
        };
        let usable = |alias: &ResourceName| !alias.is_glob() && alias.as_str() != "*" && !is_resource(alias);
        let aliases: BTreeSet<_> = aliases.into_iter().filter(usable).collect();
        if *self.store[type_key].aliases.of(name) == aliases {
            return;
        }
        let name = name.clone();
        self.store.note_name(type_key, &name);
        self.drop_aliases(at, woken);
        let mut spared = Vec::new();
        for alias in aliases {
            let failure = self.store.clear_error(type_key, &alias);
            spared.extend(failure.filter(|failure| failure.error.is_transient()).map(|_| alias.clone()));
            let of = &mut self.store[type_key];
            let before = of.aliases.insert(alias, &name);
            of.had_aliases = true;
            before.iter().for_each(|before| self.lost_alias(type_key, before));
        }
        self.changed(at, woken);
        spared.iter().for_each(|alias| self.end_sparing(type_key, alias, woken));
    }
}
