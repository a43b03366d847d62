//! What an earlier cache knew, brought back into one that is in use: it proves that something was there, and is stale until
//! the origin says otherwise, or the same.

use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::edit::Edit;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{ListKey, SlotKey, TypeKey};
use crate::moments::NEVER;
use crate::resource_error::Cause;
use crate::snapshot::Known;
use crate::store::{Answer, Gone, List, State, Store};
use crate::text::TypeUrl;

impl<V> Edit<'_, V> {
    /// Brings back what an earlier cache knew, as it comes out of its [`snapshot`](Cache::snapshot): what nothing newer is
    /// known of is [stale](Cache::is_stale) from now on. It tells nobody that something is not there, and who holds a stale
    /// resource at another version is not sent it: that may be the newer one. A cache that has [all there is](Edit::fill) recalls
    /// nothing. Whether a resource is there because of this.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Known, Options, Resource};
    ///
    /// let (now, mut options) = (Instant::now(), Options::default());
    /// options.authoritative = false;
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse().unwrap();
    /// let mut before = Cache::new(options.clone());
    /// let mut edit = before.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, "body"));
    /// let _ = edit.finish();
    ///
    /// let mut cache = Cache::new(options);
    /// let mut edit = cache.edit(now);
    /// before.snapshot(now).for_each(|known| _ = edit.recall(known.map(|body| *body)));
    /// let _ = edit.finish();
    /// assert!(cache.is_stale(&clusters, &cart));
    ///
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, "body"));
    /// let _ = edit.finish();
    /// assert!(!cache.is_stale(&clusters, &cart));
    /// ```
    pub fn recall(&mut self, known: Known<V>) -> bool {
        self.change(|cache, now, woken| cache.recall(known, now, woken))
    }

    /// The origin says the same of what is stale: of a name, or of what is in a collection.
    pub fn confirm(&mut self, type_url: &TypeUrl, interest: &Interest) {
        self.change(|cache, _, woken| cache.confirm(type_url, interest, woken));
    }

    /// And of all that is.
    pub fn confirm_all(&mut self) {
        self.change(|cache, _, woken| {
            let stale: Vec<_> = cache.store.stale.keys().copied().collect();
            stale.into_iter().for_each(|at| cache.confirm_slot(at, woken));
        });
    }
}

impl<V> Cache<V> {
    /// Whether what is there of a name was [recalled](Edit::recall), and the origin has said nothing of it since.
    pub fn is_stale(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        !self.store.stale.is_empty() && self.store.find(type_url, name).is_some_and(|at| self.store.is_stale(at))
    }

    /// How many resources are.
    pub fn stale_count(&self) -> usize {
        self.store.stale.len()
    }

    fn recall(&mut self, known: Known<V>, now: Instant, woken: &mut Vec<SubscriberId>) -> bool {
        if self.store.has_all() {
            return false;
        }
        match known {
            // Which variants there are is asked for anew.
            Known::Present { variant: Some(_), .. } | Known::WentVariant { .. } | Known::CameVariant { .. } => false,
            Known::Present { type_url, name, variant: None, aliases, resource } => {
                let type_key = self.store.type_key(&type_url);
                if self.is_said(type_key, &name) {
                    self.store.drop_type_if_unused(type_key);
                    return false;
                }
                self.upsert_raw_with_aliases(&type_url, &name, aliases, resource, now, woken);
                let at = self.store.find(&type_url, &name);
                at.inspect(|at| _ = self.store.stale.insert(*at, false)).is_some()
            }
            Known::Gone { type_url, glob, name, ago, seen } => {
                if let Some(at) = now.checked_sub(ago).filter(|_| glob.is_glob()) {
                    self.recall_gone(
                        &type_url,
                        glob,
                        Gone { name, seq: 0, at, born: NEVER, unseen: !seen, plain: false },
                    );
                }
                false
            }
            // However much of it there was, more may be there now.
            Known::Answered { type_url, collection, .. } => {
                self.begin_answer(&type_url, &collection, woken);
                false
            }
            Known::TypeVersion { type_url, version } => {
                let type_key = self.store.type_key(&type_url);
                self.store[type_key].version.get_or_insert(version);
                self.store.drop_type_if_unused(type_key);
                false
            }
            Known::Failed { .. } => false,
        }
    }

    /// Whether anything is known of a name, so that nothing older counts.
    fn is_said(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        let slot = self.store.slot_of(type_key, name).map(|at| &self.store[at]);
        let complete = |list: ListKey| self.store[list].answer == Answer::Complete;
        let error = self.store[type_key].errors.get(name).map(|failure| &failure.error.cause);
        // Of what it was not asked for the origin said nothing.
        let is_unasked = error == Some(&Cause::Unasked);
        slot.is_some_and(|slot| !matches!(slot.state, State::Unknown) && !is_unasked)
            || error.is_some() && !is_unasked
            || self.store[type_key].aliases.canonical(name).is_some()
            || self.store.collections_of(type_key, name).into_iter().flatten().any(complete)
    }

    /// What went before anybody came: the next complete answer tells it to who was away.
    fn recall_gone(&mut self, type_url: &TypeUrl, glob: ResourceName, gone: Gone) {
        let type_key = self.store.type_key(type_url);
        let list = self.store.list(type_key, &Interest::Name(glob));
        let most = self.store.options.tombstones;
        let List { gone: tombstones, unseen, watched, .. } = &mut self.store[list];
        if tombstones.len() < most {
            *watched = true;
            *unseen += usize::from(gone.unseen);
            let before = tombstones.front().map(|oldest| oldest.at);
            // Behind what was recalled before: it comes oldest first.
            let behind = tombstones.partition_point(|other| other.seq == 0);
            tombstones.insert(behind, gone);
            let oldest = tombstones.front().map(|oldest| oldest.at);
            self.store.buried.retain(|buried| before.is_none_or(|at| *buried != (at, list)));
            self.store.buried.extend(oldest.map(|at| (at, list)));
        }
        self.store.drop_list_if_unused(list);
        self.store.drop_type_if_unused(type_key);
    }

    fn confirm(&mut self, type_url: &TypeUrl, interest: &Interest, woken: &mut Vec<SubscriberId>) {
        if self.store.stale.is_empty() {
            return;
        }
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return };
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                let at = self.store.slot_of(type_key, name);
                at.into_iter().for_each(|at| self.confirm_slot(at, woken));
            }
            collection => {
                let Some(list) = self.store.list_of(type_key, collection) else { return };
                let within = |at: &SlotKey| self.store[*at].lists().any(|of| of == list);
                let members: Vec<_> = self.store.stale.keys().copied().filter(within).collect();
                members.into_iter().for_each(|at| self.confirm_slot(at, woken));
            }
        }
    }
}

impl<V> Store<V> {
    pub(crate) fn is_stale(&self, at: SlotKey) -> bool {
        self.stale.contains_key(&at)
    }

    /// Somebody holds it at another version. Whether he keeps that because this one is stale.
    pub(crate) fn spares(&mut self, at: SlotKey) -> bool {
        if self.stale.is_empty() {
            return false;
        }
        let Some(spared) = self.stale.get_mut(&at) else { return false };
        *spared = true;
        true
    }
}
