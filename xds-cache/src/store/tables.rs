//! Types, slots and lists: made when they are first named, and dropped when nobody uses them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use xdstp_uri::{CanonicalText, NameKey, ResourceName};

use crate::arena::{Arena, indexed};
use crate::index::Index;
use crate::interest::Interest;
use crate::keys::{ListKey, SlotKey, Target, TypeKey};
use crate::moments::{Moments, Seq};
use crate::options::Options;
use crate::resource::Resource;
use crate::resource_error::{Cause, Failure};
use crate::store::aliases::Aliases;
use crate::store::departures::Departures;
use crate::store::idle::Idle;
use crate::store::list::{Answer, List};
use crate::store::notes::Notes;
use crate::store::selectors::Selectors;
use crate::store::slot::{Places, Slot, State, Text};
use crate::text::{TypeUrl, Version};
use crate::watchers::Watchers;

/// What a cache stores.
pub(crate) struct Store<V> {
    pub(crate) options: Options,
    pub(crate) seq: Seq,
    /// When the origin was lost.
    pub(crate) lost: Seq,
    pub(super) types: Arena<TypeKey, Type<V>>,
    pub(crate) type_keys: HashMap<TypeUrl, TypeKey>,
    pub(super) slots: Arena<SlotKey, Slot<V>>,
    pub(super) lists: Arena<ListKey, List>,
    pub(crate) selectors: Selectors,
    /// Names whose variants changed, and are to be settled.
    pub(crate) unsettled: Vec<SlotKey>,
    /// How many selections were made anew because variants changed.
    pub(crate) selected: u64,
    /// The lists that have tombstones, by the age of the oldest.
    pub(crate) buried: BTreeSet<(Instant, ListKey)>,
    pub(crate) moments: Moments,
    /// How many resources there are.
    pub(crate) present: usize,
    /// What may be evicted.
    pub(crate) idle: Idle,
    /// The last time anybody told.
    pub(crate) now: Option<Instant>,
    /// What changed, where that is noted.
    pub(crate) notes: Option<Box<Notes>>,
    /// What was recalled and not said since, and whether anybody was spared it.
    pub(crate) stale: BTreeMap<SlotKey, bool>,
}

/// One type of resources, and where in the cache they are.
pub(crate) struct Type<V> {
    pub(crate) url: TypeUrl,
    pub(crate) version: Option<Version>,
    pub(crate) names: Index<SlotKey, Slot<V>>,
    pub(crate) wildcard: ListKey,
    pub(crate) globs: HashMap<ResourceName, ListKey>,
    /// How many want resources of it.
    pub(crate) subscriber_count: u32,
    /// Of names and of globs.
    pub(crate) errors: HashMap<ResourceName, Failure>,
    /// How many of these are why a collection is not sent.
    pub(crate) refused: usize,
    /// Of these errors, how many leave it unknown whether there is anything of a name.
    pub(crate) unreadable: usize,
    pub(crate) aliases: Aliases,
    /// Whether a resource of it ever had one.
    pub(crate) had_aliases: bool,
    pub(crate) departures: Departures<V>,
}

impl<V> Store<V> {
    pub(crate) fn new(options: Options) -> Self {
        let looks = options.looks.max(1);
        Self {
            options: Options { looks, ..options },
            seq: 0,
            lost: 0,
            types: Arena::default(),
            type_keys: HashMap::new(),
            slots: Arena::default(),
            lists: Arena::default(),
            selectors: Selectors::default(),
            unsettled: Vec::new(),
            selected: 0,
            buried: BTreeSet::new(),
            moments: Moments::default(),
            present: 0,
            idle: Idle::default(),
            now: None,
            notes: None,
            stale: BTreeMap::new(),
        }
    }

    pub(crate) fn types(&self) -> &Arena<TypeKey, Type<V>> {
        &self.types
    }

    pub(crate) fn slots(&self) -> &Arena<SlotKey, Slot<V>> {
        &self.slots
    }

    pub(crate) fn lists(&self) -> &Arena<ListKey, List> {
        &self.lists
    }

    pub(crate) fn watchers_mut(&mut self, target: Target) -> &mut Watchers {
        match target {
            Target::Slot(slot) => &mut self.slots[slot].watchers,
            Target::List(list) => &mut self.lists[list].watchers,
        }
    }

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
            subscriber_count: 0,
            errors: HashMap::new(),
            refused: 0,
            unreadable: 0,
            aliases: Aliases::default(),
            had_aliases: false,
            departures: Departures::default(),
        });
        self.type_keys.insert(type_url.clone(), type_key);
        type_key
    }

    /// The resource of a slot is this one from now on.
    pub(crate) fn put(&mut self, at: SlotKey, resource: Resource<V>, now: Instant) {
        let slot = &mut self.slots[at];
        let before = std::mem::replace(&mut slot.state, State::Present(resource));
        self.present += usize::from(!before.is_present());
        slot.changed_at = Some(self.moments.of(now));
        self.touched(at);
    }

    /// What is in a slot is not there any more. It is returned.
    pub(crate) fn take(&mut self, at: SlotKey) -> State<V> {
        let before = std::mem::replace(&mut self.slots[at].state, State::Absent);
        self.present -= before.count();
        self.touched(at);
        before
    }

    /// What is known of a slot is not what it was.
    fn touched(&mut self, at: SlotKey) {
        if self.notes.is_some() {
            let (type_key, name) = (self.slots[at].type_key, self.slots[at].name.clone());
            self.note_name(type_key, &name);
        }
        if !self.stale.is_empty() {
            self.stale.remove(&at);
        }
    }

    /// The slot of the name that a text is the canonical form of, if there is one.
    pub(crate) fn known(&self, type_key: TypeKey, text: &CanonicalText<'_>) -> Option<SlotKey> {
        self.types[type_key].names.find(&self.slots, Text(text.as_str()))
    }

    /// No answer of this origin is known to be complete any more.
    pub(crate) fn lose_answers(&mut self) {
        self.lost = self.seq;
        for list in self.lists.values_mut().filter(|list| list.answer == Answer::Complete) {
            list.answer = Answer::Stale;
        }
    }

    /// The same of one type.
    pub(crate) fn lose_answers_of(&mut self, type_url: &TypeUrl) {
        let Some(type_key) = self.type_keys.get(type_url) else { return };
        // Of all types: that something went before this is not told of any, which is to err on the safe side.
        self.lost = self.seq;
        let lists = self.lists.values_mut().filter(|list| list.type_key == *type_key);
        for list in lists.filter(|list| list.answer == Answer::Complete) {
            list.answer = Answer::Stale;
        }
    }

    /// What a new list starts from: all that is in an authoritative cache is all there is.
    fn first_answer(&self) -> Answer {
        if self.has_all() { Answer::Complete } else { Answer::None }
    }

    /// Whether all there is is here.
    pub(crate) fn has_all(&self) -> bool {
        self.options.authoritative && self.options.filled
    }

    /// The slot of a name, made if missing.
    pub(crate) fn slot(&mut self, type_key: TypeKey, name: &ResourceName) -> SlotKey {
        if let Some(at) = self.slot_of(type_key, name) {
            return at;
        }
        let of = &self.types[type_key];
        let answered =
            self.has_all() || of.errors.get(name).is_some_and(|failure| failure.error.cause != Cause::Unasked);
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
            watchers: Watchers::default(),
            places: Places::NOWHERE,
        };
        let at = self.slots.add(slot);
        self.types[type_key].names.insert(&self.slots, at);
        at
    }

    pub(crate) fn slot_of(&self, type_key: TypeKey, name: &ResourceName) -> Option<SlotKey> {
        self.types[type_key].names.find(&self.slots, Text(name.as_str()))
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

    /// The list that an answer is about: one that nobody is subscribed to yet, too, where answers are kept.
    pub(crate) fn answered_list(&mut self, type_key: TypeKey, collection: &Interest) -> Option<ListKey> {
        if self.keeps_answers() { Some(self.list(type_key, collection)) } else { self.list_of(type_key, collection) }
    }

    /// Whether a collection that was answered is known until it is [evicted](crate::Cache::evict), though it is empty and nobody is
    /// subscribed to it: an origin that was asked once does not answer again, and what was recalled is not recalled again.
    pub(crate) fn keeps_answers(&self) -> bool {
        !self.has_all() && (self.options.authoritative || self.options.capacity.is_none())
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

    pub(crate) fn target(&mut self, type_key: TypeKey, interest: &Interest) -> Target {
        match interest {
            Interest::Name(name) if !name.is_glob() => Target::Slot(self.slot(type_key, name)),
            collection => Target::List(self.list(type_key, collection)),
        }
    }

    pub(crate) fn existing_target(&self, type_key: TypeKey, interest: &Interest) -> Option<Target> {
        match interest {
            Interest::Name(name) if !name.is_glob() => self.slot_of(type_key, name).map(Target::Slot),
            collection => self.list_of(type_key, collection).map(Target::List),
        }
    }

    pub(crate) fn interest_of(&self, target: Target) -> Interest {
        match target {
            Target::Slot(at) => Interest::Name(self.slots[at].name.clone()),
            Target::List(at) => self.lists[at].glob.clone().map_or(Interest::Wildcard, Interest::Name),
        }
    }

    pub(crate) fn is_here(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        self.slot_of(type_key, name).is_some_and(|at| self.slots[at].state.is_present())
    }

    pub(crate) fn drop_slot_if_unused(&mut self, at: SlotKey) {
        let slot = &self.slots[at];
        if slot.watchers.count == 0 && !slot.state.is_present() {
            self.types[slot.type_key].names.remove(&self.slots, at);
            self.slots.remove(at);
            self.idle.remove(Target::Slot(at));
        }
    }

    pub(crate) fn drop_list_if_unused(&mut self, at: ListKey) {
        let list = &self.lists[at];
        if let Some(glob) = &list.glob
            && list.watchers.count == 0
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
        if of.subscriber_count == 0 && empty && of.version.is_none() && fresh {
            let of = self.types.remove(type_key);
            self.lists.remove(of.wildcard);
            self.idle.remove(Target::List(of.wildcard));
            self.type_keys.remove(&of.url);
        }
    }
}

indexed!([V] Store<V>: TypeKey => types: Type<V>);
indexed!([V] Store<V>: SlotKey => slots: Slot<V>);
indexed!([V] Store<V>: ListKey => lists: List);
