//! What does not exist.

use std::ops::Range;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{SlotKey, Target, TypeKey};
use crate::moments::{NEVER, Seq};
use crate::store::{Gone, Lost, Slot, State};
use crate::text::TypeUrl;

impl<V> Cache<V> {
    pub(crate) fn remove(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.remove_asked(type_url, name, false, now, woken);
    }

    /// `asked`: see [`Edit::deny`](crate::Edit::deny).
    pub(crate) fn remove_asked(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        asked: bool,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.expire(now);
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return };
        let seq = self.store.next_seq();
        let failed = self.store.clear_error(type_key, name);
        let was_alias = self.end_alias(type_key, name);
        let found = self.store.slot_of(type_key, name);
        let (mut was_present, mut plain, mut born) = (false, false, NEVER);
        if let Some(at) = found {
            let slot = &mut self.store[at];
            was_present = slot.state.is_present();
            if was_present {
                born = slot.born;
            }
            if matches!(slot.state, State::Absent) && failed.is_none() && !was_alias {
                return;
            }
            self.drop_aliases(at, woken);
            let state = self.store.take(at);
            self.totals.removed += state.count() as u64;
            plain = state.was_plain();
            self.depart(type_key, name, state, born..seq, now);
            self.store[at].seq = seq;
            for list in self.store[at].lists() {
                self.store.leave_list(list, at);
            }
            self.mark(Target::Slot(at), woken);
            self.store.drop_slot_if_unused(at);
        }
        let unseen = !was_present && (asked || found.is_some());
        let gone = Gone { name: name.clone(), seq, at: now, born, unseen, plain };
        self.bury_in_collections(type_key, &gone, was_present, failed.as_ref(), woken);
        self.store.drop_type_if_unused(type_key);
    }

    /// See [`Edit::remove_by_name`](crate::Edit::remove_by_name).
    pub(crate) fn remove_by_name(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.expire(now);
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return };
        let Some(at) = self.store.slot_of(type_key, name) else { return };
        let is_unknown = matches!(self.store[at].state, State::Unknown) && self.store.resolve(at) == at;
        if !is_unknown || self.store[type_key].errors.contains_key(name) {
            return self.remove(type_url, name, now, woken);
        }
        self.store.take(at);
        self.store[at].seq = self.store.next_seq();
        self.mark(Target::Slot(at), woken);
        self.store.drop_slot_if_unused(at);
    }

    /// What was there is kept for those who are sent full states, and are yet to be told.
    fn depart(&mut self, type_key: TypeKey, name: &ResourceName, state: State<V>, lived: Range<Seq>, now: Instant) {
        match state {
            State::Present(resource) => self.store[type_key].departures.push(name, resource, lived, now, None),
            State::Varied(varied) => self.depart_variants(type_key, name, varied.into_lost(), lived, now),
            State::Unknown | State::Absent => {}
        }
    }

    /// The same of what somebody selected.
    pub(crate) fn depart_variants(
        &mut self,
        type_key: TypeKey,
        name: &ResourceName,
        lost: Vec<Lost<V>>,
        lived: Range<Seq>,
        now: Instant,
    ) {
        let departures = &mut self.store[type_key].departures;
        for Lost { resource, by, .. } in lost {
            if let Some(resource) = resource {
                departures.push(name, resource, lived.clone(), now, Some(by));
            }
        }
    }

    /// A name stands for nothing but itself from now on. Whether it did.
    pub(crate) fn end_alias(&mut self, type_key: TypeKey, alias: &ResourceName) -> bool {
        let before = self.store[type_key].aliases.remove(alias);
        before.iter().for_each(|before| self.lost_alias(type_key, before));
        before.is_some()
    }

    /// A resource has an alias less.
    pub(crate) fn lost_alias(&mut self, type_key: TypeKey, name: &ResourceName) {
        self.store.note_name(type_key, name);
        self.look_again(type_key, name);
    }

    /// The aliases of a resource stand for nothing from now on: who asked for one of them is told so.
    pub(crate) fn drop_aliases(&mut self, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        let Slot { type_key, ref name, .. } = self.store[at];
        if self.store[type_key].aliases.of(name).is_empty() {
            return;
        }
        let name = name.clone();
        self.look_again(type_key, &name);
        for alias in self.store[type_key].aliases.clear(&name) {
            if let Some(at) = self.store.slot_of(type_key, &alias) {
                self.store[at].seq = self.store.next_seq();
                self.mark(Target::Slot(at), woken);
            }
        }
    }
}
