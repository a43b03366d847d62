//! What tombstones are left, for how long, and to whom they are owed.

use std::time::{Duration, Instant};

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{ListKey, Target, TypeKey};
use crate::moments::{NEVER, Seq};
use crate::resource_error::Failure;
use crate::store::{Answer, Gone, List};

/// As an age of tombstones: a century.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl<V> Cache<V> {
    /// Leaves a tombstone in the collections of a name.
    ///
    /// A name nobody here has seen may still be held by a subscriber that reconnected (rule 100): they are told of it
    /// once. Where it has an error, those are told who said that they hold it.
    pub(crate) fn bury_in_collections(
        &mut self,
        type_key: TypeKey,
        gone: &Gone,
        was_present: bool,
        failed: Option<&Failure>,
        woken: &mut Vec<SubscriberId>,
    ) {
        let collections = self.store.collections_of(type_key, &gone.name);
        for list in collections.into_iter().flatten() {
            let members = &self.store[list];
            // Before that, only those who saw it go are.
            let complete = members.answer == Answer::Complete;
            let told = || complete && members.gone.iter().rev().any(|before| before.name == gone.name);
            // Nobody who comes to a wildcard later is told of its tombstones.
            let told_later = was_present && members.glob.is_some();
            // Whoever was told of its error is told that it is over; a wildcard has no errors.
            let recovers = failed.is_some_and(|failure| failure.listed) && members.glob.is_some();
            // Whoever asks for names that are not there decides how many these are.
            let too_many = gone.unseen && members.unseen >= self.store.options.tombstones;
            if told_later || members.watchers.count > 0 && (was_present || recovers || !too_many && !told()) {
                // Beyond what there may be of the unseen, it takes the place of others.
                self.bury(list, Gone { unseen: gone.unseen && !too_many, ..gone.clone() }, woken);
            } else {
                // An error spared what they hold of it until now.
                if too_many || failed.is_some() {
                    self.tell_who_brought(list, &gone.name, woken);
                }
            }
            self.store.drop_list_if_unused(list);
        }
    }

    pub(crate) fn bury(&mut self, list: ListKey, gone: Gone, woken: &mut Vec<SubscriberId>) {
        self.mark(Target::List(list), woken);
        if self.store[list].glob.is_some() {
            self.store.note_name(self.store[list].type_key, &gone.name);
        }
        self.store[list].gone.push_back(gone);
        let oldest = self.store[list].gone.front().map(|gone| gone.at);
        self.store.buried.extend(oldest.map(|at| (at, list)));
        let List { gone, unseen, .. } = &mut self.store[list];
        *unseen += usize::from(gone.back().is_some_and(|gone| gone.unseen));
        // Those of names that were here do not make room for the others.
        let mut excess = (gone.len() - *unseen).saturating_sub(self.store.options.tombstones);
        self.trim(list, |gone| {
            let drops = excess > 0;
            excess -= usize::from(drops && !gone.unseen);
            drops
        });
    }

    /// Leaves a tombstone of what is forgotten: the next answer of the list says whether it is gone, and is waited for.
    pub(crate) fn bury_forgotten(&mut self, list: ListKey, name: &ResourceName) {
        let List { glob, watched, .. } = &self.store[list];
        if let Some(at) = self.store.now.filter(|_| glob.is_some() && *watched) {
            let seq = self.store.next_seq();
            self.bury(
                list,
                Gone { name: name.clone(), seq, at, born: NEVER, unseen: false, plain: false },
                &mut Vec::new(),
            );
        }
    }

    /// When the oldest tombstone is as old as it may be: `None` if there is none.
    ///
    /// As long as there is one, a cache that is dropped forgets a removal that a client who is away does not know of
    /// (rule 100); nothing else of a cache that nobody is subscribed to is worth keeping it for.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Resource};
    ///
    /// let (now, options) = (Instant::now(), Options::default());
    /// let age = options.tombstone_age;
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "xdstp://authority/envoy.config.cluster.v3.Cluster/shop/cart".parse().unwrap();
    /// let mut cache = Cache::new(options);
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, ()));
    /// let _ = edit.finish();
    /// assert_eq!(cache.next_expiry(), None);
    ///
    /// let mut edit = cache.edit(now);
    /// edit.remove(&clusters, &cart);
    /// let _ = edit.finish();
    /// assert_eq!(cache.next_expiry(), Some(now + age));
    /// cache.expire(now + age);
    /// assert_eq!(cache.next_expiry(), None);
    /// ```
    pub fn next_expiry(&self) -> Option<Instant> {
        let (oldest, _) = self.store.buried.first()?;
        Some(oldest.checked_add(self.store.options.tombstone_age.min(FOR_EVER)).unwrap_or(*oldest))
    }

    /// Drops the tombstones that are as old as they may be. Every change does so too: this is for a cache in which
    /// nothing changes any more, at [`next_expiry`](Self::next_expiry).
    pub fn expire(&mut self, now: Instant) {
        self.store.now = Some(now);
        if let Some(before) = now.checked_sub(self.store.options.departed_age) {
            self.store.expire_departures(before);
        }
        let age = self.store.options.tombstone_age;
        while let Some((oldest, list)) = self.store.buried.first().copied()
            && now.saturating_duration_since(oldest) >= age
        {
            self.trim(list, |gone| now.saturating_duration_since(gone.at) >= age);
            let type_key = self.store[list].type_key;
            self.store.drop_list_if_unused(list);
            self.store.drop_type_if_unused(type_key);
        }
    }

    /// Drops the oldest tombstones of a list, as long as `drops` says so: but not those that a link has yet to pass,
    /// which is owed them however many there are (rule 155).
    pub(crate) fn trim(&mut self, at: ListKey, mut drops: impl FnMut(&Gone) -> bool) {
        self.store.with_tombstones(at, |list| {
            let slowest = list.passed.first_key_value().map_or(Seq::MAX, |(cursor, _)| *cursor);
            while list.gone.front().is_some_and(&mut drops) {
                let gone = list.gone.pop_front();
                list.unseen -= usize::from(gone.as_ref().is_some_and(|gone| gone.unseen));
                list.owed.extend(gone.filter(|gone| gone.seq > slowest));
            }
        });
        let List { owed, needed, .. } = &self.store[at];
        if owed.len() > 2 * needed + self.store.options.tombstones {
            self.drop_unneeded(at);
        }
    }
}
