//! The tables of a cache: types, slots and lists, made when they are first named and dropped when nobody uses them.

use std::collections::HashMap;

use xdstp_uri::{NameKey, ResourceName};

use crate::aliases::Aliases;
use crate::cache::Cache;
use crate::departed::Departures;
use crate::id::SubscriberId;
use crate::index::Index;
use crate::interest::Interest;
use crate::keys::{ListKey, SlotKey, Target, TypeKey};
use crate::links::{self, Answer, Chain, Link, List, Place, Seq, Slot, State};
use crate::resource::{TypeUrl, Version};
use crate::resource_error::Failure;

pub(crate) struct Type<V> {
    pub(crate) url: TypeUrl,
    pub(crate) version: Option<Version>,
    pub(crate) names: Index<SlotKey, Slot<V>>,
    pub(crate) wildcard: ListKey,
    pub(crate) globs: HashMap<ResourceName, ListKey>,
    pub(crate) subscribers: u32,
    /// Of names and of globs.
    pub(crate) errors: HashMap<ResourceName, Failure>,
    pub(crate) aliases: Aliases,
    /// Whether a resource of it ever had one.
    pub(crate) had_aliases: bool,
    pub(crate) departures: Departures<V>,
}

impl<V> Cache<V> {
    pub(crate) fn next_seq(&mut self) -> Seq {
        self.seq += 1;
        self.seq
    }

    pub(crate) fn find(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<SlotKey> {
        self.slot_of(*self.type_keys.get(type_url)?, name)
    }

    pub(crate) fn type_key(&mut self, type_url: &TypeUrl) -> TypeKey {
        if let Some(type_key) = self.type_keys.get(type_url) {
            return *type_key;
        }
        let type_key = self.types.next_key();
        let wildcard = self.lists.add(List::new(None, type_key, self.first_answer()));
        self.types.add(Type {
            url: type_url.clone(),
            version: None,
            names: Index::default(),
            wildcard,
            globs: HashMap::new(),
            subscribers: 0,
            errors: HashMap::new(),
            aliases: Aliases::default(),
            had_aliases: false,
            departures: Departures::default(),
        });
        self.type_keys.insert(type_url.clone(), type_key);
        type_key
    }

    /// What a new list starts from: all that is in an authoritative cache is all there is.
    fn first_answer(&self) -> Answer {
        if self.options.authoritative { Answer::Complete } else { Answer::None }
    }

    /// The slot of a name, made if missing.
    pub(crate) fn slot(&mut self, type_key: TypeKey, name: &ResourceName) -> SlotKey {
        if let Some(at) = self.slot_of(type_key, name) {
            return at;
        }
        let of = &self.types[type_key];
        let answered = self.options.authoritative || of.errors.contains_key(name);
        let canonical = of.aliases.canonical(name).and_then(|canonical| self.slot_of(type_key, canonical));
        let (state, seq) = match canonical {
            Some(canonical) => (State::Absent, self.slots[canonical].seq),
            None if answered => (State::Absent, self.next_seq()),
            None => (State::Unknown, 0),
        };
        let slot = Slot {
            name: name.clone(),
            type_key,
            state,
            seq,
            born: 0,
            changed_at: None,
            clean: None,
            watchers: 0,
            places: [Place::NOWHERE; 2],
        };
        let at = self.slots.add(slot);
        self.types[type_key].names.insert(&self.slots, at);
        at
    }

    pub(crate) fn slot_of(&self, type_key: TypeKey, name: &ResourceName) -> Option<SlotKey> {
        self.types[type_key].names.find(&self.slots, name)
    }

    /// The list of a collection, made if missing.
    pub(crate) fn list(&mut self, type_key: TypeKey, collection: &Interest) -> ListKey {
        if let Some(list) = self.list_of(type_key, collection) {
            return list;
        }
        let Interest::Name(glob) = collection else { return self.types[type_key].wildcard };
        let list = self.lists.add(List::new(Some(glob.clone()), type_key, self.first_answer()));
        self.types[type_key].globs.insert(glob.clone(), list);
        list
    }

    pub(crate) fn list_of(&self, type_key: TypeKey, collection: &Interest) -> Option<ListKey> {
        let resources = &self.types[type_key];
        match collection {
            Interest::Wildcard => Some(resources.wildcard),
            Interest::Name(glob) => resources.globs.get(glob).copied(),
        }
    }

    /// Whether a collection that was answered is known until it is [evicted](Self::evict), though it is empty and nobody is
    /// subscribed to it: an origin that was asked once does not answer again.
    pub(crate) fn keeps_answers(&self) -> bool {
        !self.options.authoritative && self.options.capacity.is_none()
    }

    /// The lists a name belongs to, as far as they exist: wildcard, directory.
    pub(crate) fn collections_of(&self, type_key: TypeKey, name: &ResourceName) -> [Option<ListKey>; 2] {
        let resources = &self.types[type_key];
        let wildcard = self.is_in_wildcard(name).then_some(resources.wildcard);
        let directory = name.glob_parent_key().and_then(|glob| resources.globs.get(&glob as &dyn NameKey).copied());
        [wildcard, directory]
    }

    /// Whether a name that is there is one of the wildcard's.
    pub(crate) fn is_in_wildcard(&self, name: &ResourceName) -> bool {
        name.is_opaque() || self.options.wildcard_covers_xdstp
    }

    pub(crate) fn enter_lists(&mut self, at: SlotKey) {
        let Slot { type_key, name, .. } = &self.slots[at];
        let (type_key, name) = (*type_key, name.clone());
        let [wildcard, mut directory] = self.collections_of(type_key, &name);
        if directory.is_none()
            && let Some(glob) = name.glob_parent()
        {
            directory = Some(self.list(type_key, &Interest::Name(glob)));
        }
        for list in [wildcard, directory].into_iter().flatten() {
            self.lists[list].append(list, &mut self.slots, at);
        }
    }

    /// The slot changed now: it is the newest of its lists, and its watchers have something to pull.
    pub(crate) fn changed(&mut self, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        let seq = self.next_seq();
        let slot = &mut self.slots[at];
        slot.seq = seq;
        let (slot_type, places) = (slot.type_key, slot.places);
        self.mark(Target::Slot(at), woken);
        if !self.types[slot_type].aliases.is_empty() {
            for alias in self.alias_slots(at).collect::<Vec<_>>() {
                let slot = &mut self.slots[alias];
                (slot.state, slot.seq) = (State::Absent, seq);
                self.mark(Target::Slot(alias), woken);
            }
        }
        for list in places.into_iter().filter_map(|place| place.list) {
            let members = &mut self.lists[list];
            members.unlink(&mut self.slots, at);
            members.append(list, &mut self.slots, at);
            self.mark(Target::List(list), woken);
        }
    }

    /// Moves the up-to-date links of a target to the chains of work of their subscribers.
    pub(crate) fn mark(&mut self, target: Target, woken: &mut Vec<SubscriberId>) {
        let clean = match target {
            Target::Slot(at) => &mut self.slots[at].clean,
            Target::List(at) => &mut self.lists[at].clean,
        };
        let mut next = clean.take();
        while let Some(at) = next {
            let Link { subscriber: key, next: after, .. } = self.links[at];
            next = after;
            let subscriber = &mut self.subscribers[key];
            if !subscriber.has_changes() {
                woken.push(SubscriberId::of(key, subscriber.generation));
            }
            let head = match target {
                Target::Slot(_) => &mut subscriber.slots,
                Target::List(_) => &mut subscriber.lists,
            };
            links::push(&mut self.links, head, at, Chain::Work);
        }
    }

    pub(crate) fn drop_slot_if_unused(&mut self, at: SlotKey) {
        let slot = &self.slots[at];
        if slot.watchers == 0 && slot.state.resource().is_none() {
            self.types[slot.type_key].names.remove(&self.slots, at);
            self.slots.remove(at);
            self.idle.remove(Target::Slot(at));
        }
    }

    pub(crate) fn drop_list_if_unused(&mut self, at: ListKey) {
        let list = &self.lists[at];
        if let Some(glob) = &list.glob
            && list.watchers == 0
            && list.live == 0
            && list.gone.is_empty()
            && list.failed.is_empty()
            && !(self.keeps_answers() && list.answer != Answer::None)
        {
            self.types[list.type_key].globs.remove(glob);
            self.lists.remove(at);
            self.idle.remove(Target::List(at));
        }
    }

    /// Types are named by clients: one that nobody uses leaves nothing behind.
    pub(crate) fn drop_type_if_unused(&mut self, type_key: TypeKey) {
        let Some(of) = self.types.get(type_key) else { return };
        let wildcard = &self.lists[of.wildcard];
        let fresh = wildcard.gone.is_empty() && wildcard.answer == self.first_answer();
        let empty = of.names.len() == 0 && of.globs.is_empty() && of.errors.is_empty();
        if of.subscribers == 0 && empty && of.version.is_none() && fresh {
            let of = self.types.remove(type_key);
            self.lists.remove(of.wildcard);
            self.idle.remove(Target::List(of.wildcard));
            self.type_keys.remove(&of.url);
        }
    }
}
