//! What a cache holds, and what changing it does.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use slab::Slab;
use xdstp_uri::{NameKey, ResourceName};

use crate::index::{self, Index};
use crate::interest::Interest;
use crate::links::{self, Chain, Gone, Link, List, NONE, Place, Seq, Slot, State, Target};
use crate::resource::{Resource, TypeUrl, Version};
use crate::subscribe::{Subscriber, SubscriberId};

/// What kind of cache it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Whether a name that is not in the cache does not exist. A control plane's cache is authoritative;
    /// a relay's is not: there a missing name was not answered yet.
    pub authoritative: bool,
    /// Whether a wildcard also covers `xdstp:` names. It does where everything in the cache is the
    /// answer to one node's wildcard; elsewhere those names have collections of their own.
    pub wildcard_covers_xdstp: bool,
    /// How many tombstones a collection keeps.
    pub tombstones: usize,
    /// How long a tombstone is kept.
    pub tombstone_age: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            authoritative: true,
            wildcard_covers_xdstp: false,
            tombstones: 1000,
            tombstone_age: Duration::from_secs(3600),
        }
    }
}

/// What an [`upsert`](Cache::upsert) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The name was not there.
    Added,
    /// The content changed.
    Changed,
    /// The same content at a new version.
    Reversioned,
    /// New content at an old version: an origin's fault. It is passed on.
    ChangedAtSameVersion,
    /// Nothing changed, and nobody is told.
    Unchanged,
}

/// One resource, as [`Cache::resources`] lists it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stored<'a, V> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// Its name.
    pub name: &'a ResourceName,
    /// The resource; `None` when the name is known not to exist.
    pub resource: Option<&'a Resource<V>>,
    /// When its content last changed, by the caller's clock.
    pub changed_at: Option<Instant>,
    /// How many subscribers asked for it by name.
    pub watchers: u32,
}

/// The resources of one scope: by type, by name.
///
/// Plain data: no lock, no clock, no task. Every change appends the subscribers who have something
/// to pull to `woken`; the change itself is stored once, whoever is interested.
///
/// ```
/// use std::time::Instant;
/// use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource};
/// use std::ops::ControlFlow;
///
/// let now = Instant::now();
/// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// let mut cache = Cache::new(Options::default());
/// let subscriber = cache.open(&clusters);
/// cache.subscribe(subscriber, &Interest::Wildcard);
///
/// let mut woken = Vec::new();
/// cache.upsert(&clusters, &"backend".parse().unwrap(), Resource::new("1".into(), 7, "body"), now, &mut woken);
///
/// let mut names = Vec::new();
/// cache.pull(subscriber, Removals::Include, &mut |pull| {
///     if let Pull::Put { name, .. } = pull {
///         names.push(name.to_string());
///     }
///     ControlFlow::Continue(())
/// });
/// assert_eq!(names, ["backend"]);
/// ```
pub struct Cache<V> {
    pub(crate) options: Options,
    pub(crate) seq: Seq,
    pub(crate) types: Slab<Type<V>>,
    type_index: HashMap<TypeUrl, u32>,
    pub(crate) slots: Slab<Slot<V>>,
    pub(crate) lists: Slab<List>,
    pub(crate) links: Slab<Link>,
    /// Which link a subscriber has to a target.
    pub(crate) held: Index<Link>,
    pub(crate) subscribers: Slab<Subscriber>,
    /// The lists that have tombstones, by the age of the oldest.
    buried: BTreeSet<(Instant, u32)>,
}

pub(crate) struct Type<V> {
    pub(crate) url: TypeUrl,
    version: Option<Version>,
    pub(crate) names: Index<Slot<V>>,
    pub(crate) wildcard: u32,
    pub(crate) globs: HashMap<ResourceName, u32>,
    pub(crate) subscribers: u32,
}

impl<V> Cache<V> {
    /// An empty cache.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            seq: 0,
            types: Slab::new(),
            type_index: HashMap::new(),
            slots: Slab::new(),
            lists: Slab::new(),
            links: Slab::new(),
            held: Index::default(),
            subscribers: Slab::new(),
            buried: BTreeSet::new(),
        }
    }

    /// Stores a resource and appends to `woken` who must be told. A subscriber that has something
    /// to pull already is not named again.
    ///
    /// A glob and `*` name no resource: what comes under such a name is ignored.
    pub fn upsert(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        self.expire(now);
        if name.is_glob() || name.as_str() == "*" {
            return Outcome::Unchanged;
        }
        let type_index = self.type_index(type_url);
        let at = self.slot(type_index, name);
        let slot = &mut self.slots[at as usize];
        let outcome = match &slot.state {
            State::Unknown | State::Absent => Outcome::Added,
            State::Present(old) => match (old.version == resource.version, old.digest == resource.digest) {
                (true, true) => return Outcome::Unchanged,
                (true, false) => Outcome::ChangedAtSameVersion,
                (false, true) => Outcome::Reversioned,
                (false, false) => Outcome::Changed,
            },
        };
        slot.state = State::Present(resource);
        slot.changed_at = Some(now);
        if outcome == Outcome::Added {
            self.enter_lists(at);
        }
        self.changed(at, woken);
        outcome
    }

    /// Has everybody interested sent the resource again although it did not change: the origin did so too.
    pub fn touch(&mut self, type_url: &TypeUrl, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        if let Some(at) = self.find(type_url, name)
            && self.slots[at as usize].state.resource().is_some()
        {
            self.changed(at, woken);
        }
    }

    /// Records that a name does not exist. A tombstone is left for the collections it belongs to.
    pub fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant, woken: &mut Vec<SubscriberId>) {
        self.expire(now);
        let Some(type_index) = self.type_index.get(type_url).copied() else { return };
        let seq = self.next_seq();
        let found = self.slot_of(type_index, name);
        let mut was_present = false;
        if let Some(at) = found {
            let slot = &mut self.slots[at as usize];
            was_present = slot.state.resource().is_some();
            if matches!(slot.state, State::Absent) {
                return;
            }
            (slot.state, slot.seq) = (State::Absent, seq);
            let places = slot.places;
            for place in places.into_iter().filter(|place| place.list != NONE) {
                self.lists[place.list as usize].unlink(&mut self.slots, at);
            }
            self.mark(Target::Slot(at), woken);
            self.drop_slot_if_unused(at);
        }
        let collections = self.collections_of(type_index, name);
        for list in collections.into_iter().filter(|list| *list != NONE) {
            // A name nobody here has seen may still be held by a subscriber that reconnected (rule 100).
            if was_present || self.lists[list as usize].watchers > 0 {
                self.bury(list, Gone { name: name.clone(), seq, at: now });
                self.mark(Target::List(list), woken);
            }
            self.drop_list_if_unused(list);
        }
        self.drop_type_if_unused(type_index);
    }

    /// Records that a collection holds all there is: who waits for an empty one is told so (rules 86, 99).
    pub fn answered(&mut self, type_url: &TypeUrl, collection: &Interest, woken: &mut Vec<SubscriberId>) {
        let type_index = self.type_index(type_url);
        if let Some(list) = self.list_of(type_index, collection)
            && !self.lists[list as usize].known
        {
            self.lists[list as usize].known = true;
            self.mark(Target::List(list), woken);
        }
    }

    /// Whether a name, or a collection, has been answered.
    pub fn is_known(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        let Some(type_index) = self.type_index.get(type_url) else { return self.options.authoritative };
        match interest {
            Interest::Name(name) if !name.is_glob() => match self.slot_of(*type_index, name) {
                Some(at) => !matches!(self.slots[at as usize].state, State::Unknown),
                None => self.options.authoritative,
            },
            collection => self
                .list_of(*type_index, collection)
                .map_or(self.options.authoritative, |list| self.lists[list as usize].known),
        }
    }

    /// Records the version an origin gave to a whole type, as SotW does, to be passed on unchanged (rule 146).
    pub fn set_type_version(&mut self, type_url: &TypeUrl, version: Option<Version>) {
        let type_index = self.type_index(type_url);
        self.types[type_index as usize].version = version;
    }

    /// The version an origin gave to the whole type of a subscriber.
    pub fn type_version(&self, id: SubscriberId) -> Option<&Version> {
        self.types[self.subscribers[id.index()].type_index as usize].version.as_ref()
    }

    /// The resource of a name.
    pub fn resource(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Resource<V>> {
        self.slots[self.find(type_url, name)? as usize].state.resource()
    }

    /// Every name the cache knows something about.
    pub fn resources(&self) -> impl Iterator<Item = Stored<'_, V>> {
        self.slots.iter().filter(|(_, slot)| !matches!(slot.state, State::Unknown)).map(|(_, slot)| Stored {
            type_url: &self.types[slot.type_index as usize].url,
            name: &slot.name,
            resource: slot.state.resource(),
            changed_at: slot.changed_at,
            watchers: slot.watchers,
        })
    }

    /// Forgets what only `interest` kept: nobody is subscribed to it any more, so nobody is told.
    /// What others are subscribed to stays, and so does what belongs to an answered collection.
    ///
    /// An authoritative cache forgets nothing: there, what is not in it does not exist.
    pub fn evict(&mut self, type_url: &TypeUrl, interest: &Interest) {
        if self.options.authoritative {
            return;
        }
        let Some(type_index) = self.type_index.get(type_url).copied() else { return };
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                if let Some(at) = self.slot_of(type_index, name) {
                    self.evict_slot(at);
                }
            }
            collection => {
                let Some(list) = self.list_of(type_index, collection) else { return };
                if self.lists[list as usize].watchers > 0 {
                    return;
                }
                self.lists[list as usize].known = false;
                self.trim(list, |_| true);
                let members: Vec<_> = self.lists[list as usize].members(&self.slots).collect();
                for at in members {
                    self.evict_slot(at);
                }
                if self.lists.contains(list as usize) {
                    self.drop_list_if_unused(list);
                }
            }
        }
        self.drop_type_if_unused(type_index);
    }

    fn evict_slot(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        let mut lists =
            slot.places.iter().filter(|place| place.list != NONE).map(|place| &self.lists[place.list as usize]);
        if slot.watchers > 0 || lists.any(|list| list.watchers > 0 || list.known) {
            return;
        }
        let (places, name) = (slot.places, slot.name.clone());
        self.slots[at as usize].state = State::Absent;
        for place in places.into_iter().filter(|place| place.list != NONE) {
            self.lists[place.list as usize].unlink(&mut self.slots, at);
            self.unbury(place.list, &name);
            self.drop_list_if_unused(place.list);
        }
        self.drop_slot_if_unused(at);
    }

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
        let wildcard = self.lists.insert(List::new(None, index, self.options.authoritative)) as u32;
        self.types.insert(Type {
            url: type_url.clone(),
            version: None,
            names: Index::default(),
            wildcard,
            globs: HashMap::new(),
            subscribers: 0,
        });
        self.type_index.insert(type_url.clone(), index);
        index
    }

    /// The slot of a name, made if missing.
    pub(crate) fn slot(&mut self, type_index: u32, name: &ResourceName) -> u32 {
        if let Some(at) = self.slot_of(type_index, name) {
            return at;
        }
        let (state, seq) =
            if self.options.authoritative { (State::Absent, self.next_seq()) } else { (State::Unknown, 0) };
        let slot = Slot {
            name: name.clone(),
            type_index,
            state,
            seq,
            changed_at: None,
            clean: NONE,
            watchers: 0,
            places: [Place::NOWHERE; 2],
        };
        let at = index::add(&mut self.slots, slot);
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
        let list = List::new(Some(glob.clone()), type_index, self.options.authoritative);
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

    /// The lists a name belongs to, as far as they exist: wildcard, directory.
    pub(crate) fn collections_of(&self, type_index: u32, name: &ResourceName) -> [u32; 2] {
        let resources = &self.types[type_index as usize];
        let wildcard = if name.is_opaque() || self.options.wildcard_covers_xdstp { resources.wildcard } else { NONE };
        let directory = name.glob_parent_key().and_then(|glob| resources.globs.get(&glob as &dyn NameKey).copied());
        [wildcard, directory.unwrap_or(NONE)]
    }

    fn enter_lists(&mut self, at: u32) {
        let Slot { type_index, name, .. } = &self.slots[at as usize];
        let (type_index, name) = (*type_index, name.clone());
        if let Some(glob) = name.glob_parent() {
            self.list(type_index, &Interest::Name(glob));
        }
        for list in self.collections_of(type_index, &name).into_iter().filter(|list| *list != NONE) {
            self.lists[list as usize].append(list, &mut self.slots, at);
        }
    }

    /// The slot changed now: it is the newest of its lists, and its watchers have something to pull.
    fn changed(&mut self, at: u32, woken: &mut Vec<SubscriberId>) {
        let seq = self.next_seq();
        let slot = &mut self.slots[at as usize];
        slot.seq = seq;
        let places = slot.places;
        self.mark(Target::Slot(at), woken);
        for Place { list, .. } in places.into_iter().filter(|place| place.list != NONE) {
            let members = &mut self.lists[list as usize];
            members.unlink(&mut self.slots, at);
            members.append(list, &mut self.slots, at);
            self.mark(Target::List(list), woken);
        }
    }

    /// Moves the up-to-date links of a target to the chains of work of their subscribers.
    fn mark(&mut self, target: Target, woken: &mut Vec<SubscriberId>) {
        let clean = match target {
            Target::Slot(at) => &mut self.slots[at as usize].clean,
            Target::List(at) => &mut self.lists[at as usize].clean,
        };
        while *clean != NONE {
            let at = *clean;
            links::unlink(&mut self.links, clean, at);
            let id = self.links[at as usize].subscriber;
            let subscriber = &mut self.subscribers[id as usize];
            if !subscriber.has_work() {
                woken.push(SubscriberId(id));
            }
            let head = match target {
                Target::Slot(_) => &mut subscriber.slots,
                Target::List(_) => &mut subscriber.lists,
            };
            links::push(&mut self.links, head, at, Chain::Work);
        }
    }

    fn bury(&mut self, list: u32, gone: Gone) {
        self.lists[list as usize].gone.push_back(gone);
        let oldest = self.lists[list as usize].gone.front().map(|gone| gone.at);
        self.buried.extend(oldest.map(|at| (at, list)));
        let excess = self.lists[list as usize].gone.len().saturating_sub(self.options.tombstones);
        let mut dropped = 0;
        self.trim(list, |_| {
            dropped += 1;
            dropped <= excess
        });
    }

    /// Drops the tombstones that are older than they may be.
    fn expire(&mut self, now: Instant) {
        let age = self.options.tombstone_age;
        while let Some((oldest, list)) = self.buried.first().copied()
            && now.saturating_duration_since(oldest) > age
        {
            self.trim(list, |gone| now.saturating_duration_since(gone.at) > age);
            let type_index = self.lists[list as usize].type_index;
            self.drop_list_if_unused(list);
            self.drop_type_if_unused(type_index);
        }
    }

    /// Drops the oldest tombstones of a list, as long as `drops` says so.
    fn trim(&mut self, index: u32, mut drops: impl FnMut(&Gone) -> bool) {
        self.with_tombstones(index, |list| {
            while let Some(oldest) = list.gone.front()
                && drops(oldest)
            {
                list.trimmed = oldest.seq;
                list.gone.pop_front();
            }
        });
    }

    /// A name that is forgotten is not known to be gone.
    fn unbury(&mut self, index: u32, name: &ResourceName) {
        self.with_tombstones(index, |list| list.gone.retain(|gone| gone.name != *name));
    }

    fn with_tombstones(&mut self, index: u32, change: impl FnOnce(&mut List)) {
        let list = &mut self.lists[index as usize];
        let Some(was) = list.gone.front().map(|gone| gone.at) else { return };
        change(list);
        let is = list.gone.front().map(|gone| gone.at);
        if is != Some(was) {
            self.buried.remove(&(was, index));
            self.buried.extend(is.map(|at| (at, index)));
        }
    }

    pub(crate) fn drop_slot_if_unused(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        if slot.watchers == 0 && slot.state.resource().is_none() {
            self.types[slot.type_index as usize].names.remove(&self.slots, at);
            self.slots.remove(at as usize);
        }
    }

    pub(crate) fn drop_list_if_unused(&mut self, index: u32) {
        let list = &self.lists[index as usize];
        if let Some(glob) = &list.glob
            && list.watchers == 0
            && list.live == 0
            && list.gone.is_empty()
        {
            self.types[list.type_index as usize].globs.remove(glob);
            self.lists.remove(index as usize);
        }
    }

    /// Types are named by clients: one that nobody uses leaves nothing behind.
    pub(crate) fn drop_type_if_unused(&mut self, index: u32) {
        let Some(of) = self.types.get(index as usize) else { return };
        let wildcard = &self.lists[of.wildcard as usize];
        let fresh = wildcard.gone.is_empty() && wildcard.known == self.options.authoritative;
        if of.subscribers == 0 && of.names.len() == 0 && of.globs.is_empty() && of.version.is_none() && fresh {
            let of = self.types.remove(index as usize);
            self.lists.remove(of.wildcard as usize);
            self.type_index.remove(&of.url);
        }
    }
}
