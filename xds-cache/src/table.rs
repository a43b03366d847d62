//! The tables of a cache: types, slots and lists, made when they are first named and dropped when nobody uses them.

use std::collections::HashMap;

use xdstp_uri::{NameKey, ResourceName};

use crate::aliases::Aliases;
use crate::cache::Cache;
use crate::departed::Departures;
use crate::index::Index;
use crate::interest::Interest;
use crate::links::{self, Answer, Chain, Link, List, NONE, Place, Seq, Slot, State, Target};
use crate::resource::{TypeUrl, Version};
use crate::resource_error::Failure;
use crate::subscribe::SubscriberId;

pub(crate) struct Type<V> {
    pub(crate) url: TypeUrl,
    pub(crate) version: Option<Version>,
    pub(crate) names: Index<Slot<V>>,
    pub(crate) wildcard: u32,
    pub(crate) globs: HashMap<ResourceName, u32>,
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

    pub(crate) fn find(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<u32> {
        self.slot_of(*self.type_index.get(type_url)?, name)
    }

    pub(crate) fn type_index(&mut self, type_url: &TypeUrl) -> u32 {
        if let Some(index) = self.type_index.get(type_url) {
            return *index;
        }
        let index = self.types.vacant_key() as u32;
        let wildcard = self.lists.insert(List::new(None, index, self.first_answer())) as u32;
        self.types.insert(Type {
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
        self.type_index.insert(type_url.clone(), index);
        index
    }

    /// What a new list starts from: all that is in an authoritative cache is all there is.
    fn first_answer(&self) -> Answer {
        if self.options.authoritative { Answer::Complete } else { Answer::None }
    }

    /// The slot of a name, made if missing.
    pub(crate) fn slot(&mut self, type_index: u32, name: &ResourceName) -> u32 {
        if let Some(at) = self.slot_of(type_index, name) {
            return at;
        }
        let of = &self.types[type_index as usize];
        let answered = self.options.authoritative || of.errors.contains_key(name);
        let canonical = of.aliases.canonical(name).and_then(|canonical| self.slot_of(type_index, canonical));
        let (state, seq) = match canonical {
            Some(canonical) => (State::Absent, self.slots[canonical as usize].seq),
            None if answered => (State::Absent, self.next_seq()),
            None => (State::Unknown, 0),
        };
        let slot = Slot {
            name: name.clone(),
            type_index,
            state,
            seq,
            born: 0,
            changed_at: None,
            clean: NONE,
            watchers: 0,
            places: [Place::NOWHERE; 2],
        };
        let at = self.slots.add(slot);
        self.types[type_index as usize].names.insert(&self.slots, at);
        at
    }

    pub(crate) fn slot_of(&self, type_index: u32, name: &ResourceName) -> Option<u32> {
        self.types[type_index as usize].names.find(&self.slots, name)
    }

    /// The list of a collection, made if missing.
    pub(crate) fn list(&mut self, type_index: u32, collection: &Interest) -> u32 {
        if let Some(list) = self.list_of(type_index, collection) {
            return list;
        }
        let Interest::Name(glob) = collection else { return self.types[type_index as usize].wildcard };
        let list = List::new(Some(glob.clone()), type_index, self.first_answer());
        let index = self.lists.insert(list) as u32;
        self.types[type_index as usize].globs.insert(glob.clone(), index);
        index
    }

    pub(crate) fn list_of(&self, type_index: u32, collection: &Interest) -> Option<u32> {
        let resources = &self.types[type_index as usize];
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
    pub(crate) fn collections_of(&self, type_index: u32, name: &ResourceName) -> [u32; 2] {
        let resources = &self.types[type_index as usize];
        let wildcard = if self.is_in_wildcard(name) { resources.wildcard } else { NONE };
        let directory = name.glob_parent_key().and_then(|glob| resources.globs.get(&glob as &dyn NameKey).copied());
        [wildcard, directory.unwrap_or(NONE)]
    }

    /// Whether a name that is there is one of the wildcard's.
    pub(crate) fn is_in_wildcard(&self, name: &ResourceName) -> bool {
        name.is_opaque() || self.options.wildcard_covers_xdstp
    }

    pub(crate) fn enter_lists(&mut self, at: u32) {
        let Slot { type_index, name, .. } = &self.slots[at as usize];
        let (type_index, name) = (*type_index, name.clone());
        let [wildcard, mut directory] = self.collections_of(type_index, &name);
        if directory == NONE
            && let Some(glob) = name.glob_parent()
        {
            directory = self.list(type_index, &Interest::Name(glob));
        }
        for list in [wildcard, directory].into_iter().filter(|list| *list != NONE) {
            self.lists[list as usize].append(list, &mut self.slots, at);
        }
    }

    /// The slot changed now: it is the newest of its lists, and its watchers have something to pull.
    pub(crate) fn changed(&mut self, at: u32, woken: &mut Vec<SubscriberId>) {
        let seq = self.next_seq();
        let slot = &mut self.slots[at as usize];
        slot.seq = seq;
        let (slot_type, places) = (slot.type_index as usize, slot.places);
        self.mark(Target::Slot(at), woken);
        if !self.types[slot_type].aliases.is_empty() {
            for alias in self.alias_slots(at).collect::<Vec<_>>() {
                let slot = &mut self.slots[alias as usize];
                (slot.state, slot.seq) = (State::Absent, seq);
                self.mark(Target::Slot(alias), woken);
            }
        }
        for Place { list, .. } in places.into_iter().filter(|place| place.list != NONE) {
            let members = &mut self.lists[list as usize];
            members.unlink(&mut self.slots, at);
            members.append(list, &mut self.slots, at);
            self.mark(Target::List(list), woken);
        }
    }

    /// Moves the up-to-date links of a target to the chains of work of their subscribers.
    pub(crate) fn mark(&mut self, target: Target, woken: &mut Vec<SubscriberId>) {
        let clean = match target {
            Target::Slot(at) => &mut self.slots[at as usize].clean,
            Target::List(at) => &mut self.lists[at as usize].clean,
        };
        let mut next = std::mem::replace(clean, NONE);
        while next != NONE {
            let at = next;
            let Link { subscriber: id, next: after, .. } = self.links[at as usize];
            next = after;
            let subscriber = &mut self.subscribers[id as usize];
            if !subscriber.has_changes() {
                woken.push(SubscriberId::of(id, subscriber.generation));
            }
            let head = match target {
                Target::Slot(_) => &mut subscriber.slots,
                Target::List(_) => &mut subscriber.lists,
            };
            links::push(&mut self.links, head, at, Chain::Work);
        }
    }

    pub(crate) fn drop_slot_if_unused(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        if slot.watchers == 0 && slot.state.resource().is_none() {
            self.types[slot.type_index as usize].names.remove(&self.slots, at);
            self.slots.remove(at);
            self.idle.remove(Target::Slot(at));
        }
    }

    pub(crate) fn drop_list_if_unused(&mut self, index: u32) {
        let list = &self.lists[index as usize];
        if let Some(glob) = &list.glob
            && list.watchers == 0
            && list.live == 0
            && list.gone.is_empty()
            && list.failed.is_empty()
            && !(self.keeps_answers() && list.answer != Answer::None)
        {
            self.types[list.type_index as usize].globs.remove(glob);
            self.lists.remove(index as usize);
            self.idle.remove(Target::List(index));
        }
    }

    /// Types are named by clients: one that nobody uses leaves nothing behind.
    pub(crate) fn drop_type_if_unused(&mut self, index: u32) {
        let Some(of) = self.types.get(index as usize) else { return };
        let wildcard = &self.lists[of.wildcard as usize];
        let fresh = wildcard.gone.is_empty() && wildcard.answer == self.first_answer();
        let empty = of.names.len() == 0 && of.globs.is_empty() && of.errors.is_empty();
        if of.subscribers == 0 && empty && of.version.is_none() && fresh {
            let of = self.types.remove(index as usize);
            self.lists.remove(of.wildcard as usize);
            self.idle.remove(Target::List(of.wildcard));
            self.type_index.remove(&of.url);
        }
    }
}
