//! Storing variants, and what that changes for those who select among them.

use std::sync::Arc;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::edit::Edit;
use crate::id::SubscriberId;
use crate::keys::{SlotKey, Target, TypeKey};
use crate::moments::Seq;
use crate::outcome::Outcome;
use crate::resource::Resource;
use crate::store::{Settled, Slot, State, Turn};
use crate::text::TypeUrl;
use crate::variant::Variant;

impl<V: Clone> Edit<'_, V> {
    /// Stores a variant of a resource, beside the others that the name has (TP2). When the edit ends, who wants the name
    /// gets the one that it selects; where that is another one than before, the two change in one step.
    ///
    /// The [plain](Variant::plain) variant is what [`put`](Self::put) stores, too: it is for everybody, so that it overlaps
    /// with all others. A name that has variants has no aliases. Equal contents of one name are kept once, as far as a clone
    /// shares what it is a clone of.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xds_matcher::DynamicParameters;
    /// use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource, Selector, Variant};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse()?;
    /// let [stable, canary] = ["env=prod", "env=canary"].map(|text| Variant::Constraints(text.parse().unwrap()));
    /// let mut cache = Cache::new(Options::default());
    /// let mut edit = cache.edit(Instant::now());
    /// edit.put_variant(&clusters, &cart, &stable, Resource::unversioned(1, "stable"));
    /// edit.put_variant(&clusters, &cart, &canary, Resource::unversioned(2, "canary"));
    /// let _ = edit.finish();
    ///
    /// let parameters = DynamicParameters::from_iter([("env", "canary")]);
    /// let subscriber = cache.open_selecting(&clusters, &Selector::Parameters(parameters));
    /// cache.subscribe(subscriber, &Interest::Name(cart));
    /// cache.pull(subscriber, Removals::Include, &mut |pull| {
    ///     let Pull::Put { variant, resource, .. } = pull else { unreachable!() };
    ///     assert_eq!((variant.map(|variant| &**variant), resource.value), (Some(&canary), "canary"));
    ///     ControlFlow::Continue(())
    /// });
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn put_variant(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        variant: &Variant,
        mut resource: Resource<V>,
    ) -> Outcome {
        self.change(|cache, now, woken| {
            if let Some(shared) = cache.same_content(type_url, name, resource.digest()) {
                resource.value = shared.clone();
            }
            cache.change_type(type_url, now, |cache, type_key| {
                let slot = cache.store.slot_of(type_key, name);
                if variant.is_plain() && slot.is_none_or(|at| cache.store[at].state.varied().is_none()) {
                    return cache.store(type_key, name, resource, now, woken);
                }
                cache.store_variant(type_key, name, variant, resource, now, woken)
            })
        })
    }
}

impl<V> Edit<'_, V> {
    /// Records that a variant of a name does not exist (any more); with its last one the name does not.
    pub fn remove_variant(&mut self, type_url: &TypeUrl, name: &ResourceName, variant: &Variant) {
        self.change(|cache, now, woken| cache.drop_variant(type_url, name, variant, now, woken));
    }
}

impl<V> Cache<V> {
    fn same_content(&self, type_url: &TypeUrl, name: &ResourceName, digest: u128) -> Option<&V> {
        let varied = self.store[self.store.find(type_url, name)?].state.varied()?;
        varied.with_content(digest).map(|resource| &resource.value)
    }

    /// An upsert of a variant, that is not settled.
    pub(crate) fn store_variant(
        &mut self,
        type_key: TypeKey,
        name: &ResourceName,
        variant: &Variant,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        if name.is_glob() || name.as_str() == "*" {
            return Outcome::Unchanged;
        }
        let at = self.store.slot(type_key, name);
        let was_present = self.store[at].state.is_present();
        self.drop_aliases(at, woken);
        self.store.vary(at);
        if !was_present {
            self.end_alias(type_key, name);
            self.store.enter_lists(at);
            self.remember_plain(at);
        }
        let seq = self.store.next_seq();
        let before = self.store[at].state.count();
        let Some(varied) = self.store[at].state.varied_mut() else { return Outcome::Unchanged };
        let mut outcome = varied.put(variant, resource, seq);
        let after = varied.len();
        self.store.present = self.store.present + after - before;
        if self.store[type_key].errors.contains_key(name) && outcome == Outcome::Unchanged {
            outcome = Outcome::Recovered;
        }
        self.totals.count(outcome);
        if outcome != Outcome::Unchanged {
            self.has_variant(at, seq, was_present, now, woken);
        }
        self.await_settling(at);
        outcome
    }

    /// Who was away when a name went that had no variants may hold that, now that it has some.
    fn remember_plain(&mut self, at: SlotKey) {
        let slot = &self.store[at];
        let Some(list) = slot.directory().map(|list| &self.store[list]) else { return };
        let gone = list.gone.iter().rev().find(|gone| gone.plain && gone.name == slot.name);
        let went = gone.map(|gone| {
            let variant = Arc::new(Variant::plain().clone());
            Turn { variant, seq: gone.seq, at: gone.at }
        });
        if let (Some(went), Some(varied)) = (went, self.store[at].state.varied_mut()) {
            varied.went.note(went);
        }
    }

    /// A variant came, or changed.
    fn has_variant(&mut self, at: SlotKey, seq: Seq, was_present: bool, now: Instant, woken: &mut Vec<SubscriberId>) {
        let moment = self.store.moments.of(now);
        let slot = &mut self.store[at];
        slot.changed_at = Some(moment);
        if !was_present {
            slot.born = seq;
        }
        let (type_key, name) = (slot.type_key, slot.name.clone());
        if self.store[type_key].errors.is_empty() {
            return;
        }
        let recovers = self.store.clear_error(type_key, &name).is_some();
        if let Some(varied) = self.store[at].state.varied_mut() {
            // That the error is over is told by sending the resource again, to each its own.
            varied.touched |= recovers;
            varied.recovered |= recovers;
        }
        if let Some(glob) = name.glob_parent() {
            self.recover(type_key, glob, woken);
        }
    }

    fn await_settling(&mut self, at: SlotKey) {
        if let Some(varied) = self.store[at].state.varied_mut()
            && !std::mem::replace(&mut varied.unsettled, true)
        {
            self.store.unsettled.push(at);
        }
    }

    /// An upsert, without saying of which variant, of a name that has variants.
    pub(crate) fn store_beside(
        &mut self,
        at: SlotKey,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        let Slot { type_key, ref name, .. } = self.store[at];
        let name = name.clone();
        let outcome = self.store_variant(type_key, &name, Variant::plain(), resource, now, woken);
        self.settle_slot(at, woken);
        outcome
    }

    /// A snapshot has the name without variants, and nothing else of it.
    pub(crate) fn remove_others(&mut self, at: SlotKey, now: Instant, woken: &mut Vec<SubscriberId>) {
        let Some(varied) = self.store[at].state.varied() else { return };
        let others: Vec<_> = varied.iter().map(|(variant, _)| variant.clone()).filter(|one| !one.is_plain()).collect();
        let Slot { type_key, ref name, .. } = self.store[at];
        let (type_url, name) = (self.store[type_key].url.clone(), name.clone());
        for variant in others {
            self.drop_variant(&type_url, &name, &variant, now, woken);
        }
        self.settle_slot(at, woken);
    }

    fn drop_variant(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        variant: &Variant,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.expire(now);
        let Some(at) = self.store.find(type_url, name) else { return };
        match &mut self.store[at].state {
            State::Varied(varied) => {
                if varied.remove(variant) {
                    self.store.present -= 1;
                    self.totals.removed += 1;
                    self.await_settling(at);
                }
            }
            State::Present(_) if variant.is_plain() => self.remove(type_url, name, now, woken),
            State::Present(_) | State::Absent | State::Unknown => {}
        }
    }

    /// Settles what an edit changed of variants.
    pub(crate) fn settle(&mut self, woken: &mut Vec<SubscriberId>) {
        if self.store.unsettled.is_empty() {
            return;
        }
        for at in std::mem::take(&mut self.store.unsettled) {
            // What is there may have been removed, and come back, since.
            let varied = self.store.slots().get(at).and_then(|slot| slot.state.varied());
            if varied.is_some_and(|varied| varied.unsettled) {
                self.settle_slot(at, woken);
            }
        }
        self.make_room();
    }

    /// Makes the selections of a name anew, if that has variants: those have something to pull for whom one changed.
    pub(crate) fn settle_slot(&mut self, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        let Some(slot) = self.store.slots().get(at) else { return };
        let Some(varied) = slot.state.varied() else { return };
        let (type_key, name, lived) = (slot.type_key, slot.name.clone(), slot.born..self.store.seq + 1);
        if varied.len() == 0 {
            let type_url = self.store[type_key].url.clone();
            let now = self.store.now;
            return now.into_iter().for_each(|now| self.remove(&type_url, &name, now, woken));
        }
        let Some(Settled { overlaps, lost, .. }) = self.store.settle(at) else { return };
        self.totals.overlapping += overlaps;
        let lists: Vec<_> = self.store[at].lists().collect();
        for list in &lists {
            self.store.leave_list(*list, at);
            self.store.append(*list, at);
        }
        if let Some(now) = self.store.now {
            self.depart_variants(type_key, &name, lost, lived, now);
        }
        self.mark_affected(Target::Slot(at), at, woken);
        lists.into_iter().for_each(|list| self.mark_affected(Target::List(list), at, woken));
        self.store.renew(at);
    }
}
