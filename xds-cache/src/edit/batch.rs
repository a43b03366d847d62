//! Many resources at once: a batch, and a snapshot that replaces all of a type.

use std::collections::HashSet;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::edit::Edit;
use crate::id::SubscriberId;
use crate::outcome::Outcomes;
use crate::resource::Resource;
use crate::text::TypeUrl;

impl<V> Edit<'_, V> {
    /// Stores many resources of one type: what the [capacity](crate::Options::capacity) has no room for goes when all are in.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// # cache.pull(subscriber, xdstp_cache::Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    ///
    /// let batch = ["cart", "shop"].map(|name| (name.parse().unwrap(), Resource::unversioned(7, name)));
    /// let mut edit = cache.edit(Instant::now());
    /// assert_eq!(edit.put_all(&clusters, batch).added, 2);
    /// assert!(edit.finish().into_iter().eq([subscriber]));
    /// ```
    pub fn put_all(
        &mut self,
        type_url: &TypeUrl,
        resources: impl IntoIterator<Item = (ResourceName, Resource<V>)>,
    ) -> Outcomes {
        self.change(|cache, now, woken| cache.upsert_raw_all(type_url, resources, now, woken))
    }

    /// Makes a type hold exactly these resources, and changes only what differs: who wants something that is
    /// added, changed or gone is woken, once; who wants what stayed the same is not.
    ///
    /// It is a snapshot of the resources, not of what is known beside them: an error stays until its name is
    /// put or removed, and in a relay's cache a name that never was there stays unanswered.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Options, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// let snapshot = |bodies: &[(&str, u128)]| -> Vec<_> {
    ///     bodies.iter().map(|(name, digest)| (name.parse().unwrap(), Resource::unversioned(*digest, ()))).collect()
    /// };
    /// let mut edit = cache.edit(Instant::now());
    /// edit.replace(&clusters, snapshot(&[("cart", 1), ("shop", 2), ("till", 3)]));
    ///
    /// let outcomes = edit.replace(&clusters, snapshot(&[("cart", 1), ("shop", 9), ("desk", 4)]));
    /// assert_eq!((outcomes.unchanged, outcomes.changed, outcomes.added, outcomes.removed), (1, 1, 1, 1));
    /// assert!(edit.finish().is_empty(), "nobody asked for anything");
    /// ```
    pub fn replace(
        &mut self,
        type_url: &TypeUrl,
        resources: impl IntoIterator<Item = (ResourceName, Resource<V>)>,
    ) -> Outcomes {
        self.change(|cache, now, woken| cache.replace_raw(type_url, resources, now, woken))
    }
}

impl<V> Cache<V> {
    pub(crate) fn upsert_raw_all(
        &mut self,
        type_url: &TypeUrl,
        resources: impl IntoIterator<Item = (ResourceName, Resource<V>)>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcomes {
        let before = self.totals;
        self.change_type(type_url, now, |cache, type_key| {
            for (name, resource) in resources {
                cache.store(type_key, &name, resource, now, woken);
            }
        });
        self.totals.since(before)
    }

    pub(crate) fn replace_raw(
        &mut self,
        type_url: &TypeUrl,
        resources: impl IntoIterator<Item = (ResourceName, Resource<V>)>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcomes {
        let before = self.totals;
        self.change_type(type_url, now, |cache, type_key| {
            let mut kept = HashSet::new();
            for (name, resource) in resources {
                cache.store(type_key, &name, resource, now, woken);
                if let Some(at) = cache.store.slot_of(type_key, &name) {
                    kept.insert(at);
                    cache.remove_others(at, now, woken);
                }
            }
            let named = cache.store[type_key].names.iter();
            let slots = named.filter(|at| !kept.contains(at)).map(|at| &cache.store[at]);
            let mut gone: Vec<_> = slots.filter(|slot| slot.state.is_present()).map(|slot| slot.name.clone()).collect();
            gone.sort_unstable();
            for name in gone {
                cache.remove(type_url, &name, now, woken);
            }
        });
        self.totals.since(before)
    }
}
