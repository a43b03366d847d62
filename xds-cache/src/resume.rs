//! What a subscriber held when it connected: rules 48, 83 and 84.

mod along;
mod disclaim;

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{ListKey, SlotKey, Target, TypeKey};
use crate::store::{Answer, State};
use crate::subscribers::{Debt, Subscriber};
use crate::text::{TypeUrl, Version};

/// What a subscriber was told of a name.
enum Told {
    /// What is there.
    Sent,
    /// That it is gone, if it holds it.
    Gone,
}

impl<V> Cache<V> {
    /// What the subscriber held when it connected: equal versions are not sent, and names that are
    /// gone, or that it did not subscribe to, are told as removed (rules 83, 84).
    ///
    /// A client says so once, in the first request of a type, and what that asks for is subscribed to before. Who
    /// learns it later may say it later: after a pull, too, or after further interests, and not all at once. It is about
    /// what was not sent yet. Of a name that was, at the version it has, the subscriber holds that; and what has been
    /// answered as gone is told to be gone then, because only now it is known to be held.
    pub fn resume(&mut self, id: SubscriberId, held: impl IntoIterator<Item = (ResourceName, Version)>) {
        if !self.is_open(id) {
            return;
        }
        let Subscriber { type_key, resumes, .. } = &mut self.subscribers[id];
        let type_key = *type_key;
        *resumes = resumes.wrapping_add(1);
        for (name, version) in held {
            match self.was_told(id, type_key, &name) {
                Some(Told::Sent) => continue,
                Some(Told::Gone) => _ = self.subscribers[id].owed.gone(name.clone()),
                None => {}
            }
            let by_alias = !self.is_wanted_itself(id, type_key, &name);
            let subscriber = &mut self.subscribers[id];
            // It may have it, whatever it asked for before.
            subscriber.owed.clear(Debt::Missing, &name);
            if by_alias {
                subscriber.claims.insert(name.clone());
            }
            self.subscribers.bring(id, name, Some(version));
        }
        self.disclaim_anew(id);
    }

    /// A subscriber holds nothing of a name any more: a relay may have kept the error of that only to spare it.
    pub(crate) fn drop_brought(&mut self, id: SubscriberId, name: &ResourceName) {
        let Subscriber { type_key, ref mut owed, .. } = self.subscribers[id];
        if owed.clear(Debt::Comparison, name) && !self.store.options.authoritative {
            self.forget_error(type_key, name);
        }
    }

    /// What a subscriber was told of a name already, by whatever it asked for.
    fn was_told(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> Option<Told> {
        let slot = self.store.slot_of(type_key, name);
        let named = slot.into_iter().flat_map(|at| self.links_to(id, at));
        let mut links = named.chain(self.covering(id, type_key, name));
        if slot.is_some_and(|at| self.store[at].state.varied().is_some()) {
            let look = self.look_of(id, name).filter(|look| look.seq > 0)?;
            return Some(if look.held.is_empty() { Told::Gone } else { Told::Sent });
        }
        match slot.map(|at| &self.store[at]).filter(|slot| slot.state.is_present()) {
            Some(slot) => links.any(|link| self.subscribers[link].cursor() >= slot.seq).then_some(Told::Sent),
            None => {
                let told = |link| match self.subscribers.target(link) {
                    Target::Slot(at) => {
                        self.subscribers[link].cursor() > 0 && matches!(self.store[at].state, State::Absent)
                    }
                    Target::List(_) => self.subscribers.walk(link).is_some_and(|walk| walk.complete),
                };
                links.any(told).then_some(Told::Gone)
            }
        }
    }

    /// Whether some of what a subscriber brought along was not compared yet.
    pub fn brings(&self, id: SubscriberId) -> bool {
        self.is_open(id) && self.subscribers[id].owed.owes_any(Debt::Comparison)
    }

    /// Whether a subscriber of a type brought a name along that is not here.
    pub fn is_brought_along(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return false };
        !self.store.is_here(type_key, name) && self.subscribers.who_brought_it(type_key, name).next().is_some()
    }

    /// Of what is [brought along](Self::is_brought_along), what only the answer to a collection decides, and that is not
    /// complete. A relay asks its origin for the fate of these (rule 151).
    ///
    /// O(what was brought along of collections that are not complete, and their number).
    pub fn undecided(&self, type_url: &TypeUrl) -> BTreeSet<ResourceName> {
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return BTreeSet::new() };
        let mut undecided = BTreeSet::new();
        for (id, subscriber) in self.subscribers.who_brought(type_key) {
            let wildcard = self.subscribers.link_of(id, Target::List(self.store[type_key].wildcard));
            for (glob, names) in subscriber.owed.brought().by_glob() {
                let list = glob.and_then(|glob| self.store[type_key].globs.get(glob));
                let directory = list.and_then(|list| self.subscribers.link_of(id, Target::List(*list)));
                let wildcard = wildcard.filter(|_| glob.is_none_or(|glob| self.store.is_in_wildcard(glob)));
                let mut covering = directory.into_iter().chain(wildcard).peekable();
                if covering.peek().is_none() || covering.any(|link| self.is_complete(link)) {
                    continue;
                }
                let waits = |name: &&ResourceName| {
                    let covered = glob.is_some() || self.store.is_in_wildcard(name);
                    covered && !self.is_asked_for(id, type_key, name) && !self.store.is_here(type_key, name)
                };
                undecided.extend(names.filter(waits).cloned());
            }
        }
        undecided
    }

    /// What was to be told as gone because nobody wanted it, and belongs to a collection that is wanted
    /// now, waits until that one is answered.
    pub(crate) fn wait_for(&mut self, id: SubscriberId, list: ListKey) {
        let Subscriber { type_key, ref mut owed, .. } = self.subscribers[id];
        if self.store[list].answer == Answer::Complete || !owed.owes_any(Debt::Removal) {
            return;
        }
        owed.expect_globs();
        let within = self.names_within(self.subscribers[id].owed.removals(), list);
        let waiting: Vec<_> = within.into_iter().filter(|name| !self.is_wanted(id, type_key, name)).collect();
        waiting.into_iter().for_each(|name| self.wait_with(id, name));
    }

    /// What was to be told as gone is to be compared instead, when what covers it is answered: nobody knows whether it is gone.
    pub(crate) fn wait_with(&mut self, id: SubscriberId, name: ResourceName) {
        if self.subscribers[id].owed.clear(Debt::Removal, &name) {
            self.forget_gone_look(id.key(), &name);
            self.subscribers.bring(id, name, None);
        }
    }

    /// What the subscriber said it holds of a name does not count once it asks for the name, or for an alias of it.
    /// Whether it may hold the name.
    pub(crate) fn ask_by_name(&mut self, id: SubscriberId, slot: SlotKey) -> bool {
        if !self.subscribers[id].owed.minds_asking() {
            return false;
        }
        let sends = self.store.resolve(slot);
        self.subscribers[id].owed.asked(&self.store[slot].name, &self.store[sends].name)
    }

    /// What the subscriber said it holds of a collection does not count once it asks for the collection (rule 48): what
    /// the first request asks for is asked before anything is said (rule 49).
    pub(crate) fn send_resumed_again(&mut self, id: SubscriberId, list: ListKey) {
        let brought = self.names_within(self.subscribers[id].owed.brought(), list);
        let owed = &mut self.subscribers[id].owed;
        brought.iter().for_each(|name| _ = owed.lapse(name));
    }
}
