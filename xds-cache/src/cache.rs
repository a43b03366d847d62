//! What a cache holds, and what changing it does.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use xdstp_uri::ResourceName;

use crate::arena::Arena;
use crate::id::SubscriberId;
use crate::idle::Idle;
use crate::index::Index;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, Target, TypeKey, WalkKey};
use crate::links::{Answer, Gone, Link, List, NEVER, Seq, Slot, State, Walk};
use crate::moments::Moments;
use crate::outcome::{Outcome, Outcomes};
use crate::resource::{Resource, TypeUrl, Version};
use crate::subscribe::Subscriber;
use crate::table::Type;

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
    /// How many tombstones a collection keeps for those who were away. It is also how many names that were never here it
    /// tells as gone, in the time that these are kept, to who does not say what it holds.
    pub tombstones: usize,
    /// How long it keeps them.
    pub tombstone_age: Duration,
    /// How long it keeps the content of what is gone, for [who is sent full states](Cache::visit_leaving) and is not told
    /// yet. It should be longer than a removal is deferred.
    pub departed_age: Duration,
    /// How many resources a relay's cache holds before it evicts what nobody is subscribed to, the one least
    /// recently wanted or changed first; see [`evict`](Cache::evict). Without one it evicts nothing of its own accord.
    ///
    /// What somebody is subscribed to is never evicted, and counts. An authoritative cache has no capacity: what
    /// is not in it does not exist, so that to evict would be to delete.
    pub capacity: Option<usize>,
    /// How many names that it does not visit a pull looks at before it [pauses](crate::Pulled::paused): at least one.
    pub looks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            authoritative: true,
            wildcard_covers_xdstp: false,
            tombstones: 1000,
            tombstone_age: Duration::from_secs(3600),
            departed_age: Duration::from_secs(30),
            capacity: None,
            // Some milliseconds' worth.
            looks: 4096,
        }
    }
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
    /// When its content last changed, by the caller's clock, to a tenth of a second.
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
/// cache.upsert_raw(&clusters, &"backend".parse().unwrap(), Resource::new("1".into(), 7, "body"), now, &mut woken);
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
    /// When the origin was lost.
    pub(crate) lost: Seq,
    pub(crate) types: Arena<TypeKey, Type<V>>,
    pub(crate) type_keys: HashMap<TypeUrl, TypeKey>,
    pub(crate) slots: Arena<SlotKey, Slot<V>>,
    pub(crate) lists: Arena<ListKey, List>,
    pub(crate) links: Arena<LinkKey, Link>,
    pub(crate) walks: Arena<WalkKey, Walk>,
    /// Which link a subscriber has to a target.
    pub(crate) held: Index<LinkKey, Link>,
    pub(crate) subscribers: Arena<SubscriberKey, Subscriber>,
    /// Those that brought something along, by key: all of which not everything was compared.
    pub(crate) bringing: BTreeSet<SubscriberKey>,
    /// How many subscribers there were.
    pub(crate) generation: u32,
    /// The lists that have tombstones, by the age of the oldest.
    pub(crate) buried: BTreeSet<(Instant, ListKey)>,
    pub(crate) moments: Moments,
    /// How many resources there are.
    pub(crate) present: usize,
    /// What may be evicted.
    pub(crate) idle: Idle,
    /// The last time anybody told.
    pub(crate) now: Option<Instant>,
    pub(crate) totals: Outcomes,
    /// How many additions were visited.
    pub(crate) visits: u64,
    /// The same before the pull that goes on, and how many names that has looked at.
    pub(crate) looks: u64,
}

impl<V> Cache<V> {
    /// An empty cache.
    pub fn new(options: Options) -> Self {
        let looks = options.looks.max(1);
        Self {
            options: Options { looks, ..options },
            seq: 0,
            lost: 0,
            types: Arena::default(),
            type_keys: HashMap::new(),
            slots: Arena::default(),
            lists: Arena::default(),
            links: Arena::default(),
            walks: Arena::default(),
            held: Index::default(),
            subscribers: Arena::default(),
            bringing: BTreeSet::new(),
            generation: 0,
            buried: BTreeSet::new(),
            moments: Moments::default(),
            present: 0,
            idle: Idle::default(),
            now: None,
            totals: Outcomes::default(),
            visits: 0,
            looks: 0,
        }
    }

    /// Stores a resource and appends to `woken` who must be told. A subscriber that has something
    /// to pull already is not named again.
    ///
    /// A glob and `*` name no resource: what comes under such a name is ignored.
    ///
    /// Raw, because the cache cannot know whether the content is what its type and name say; clients refuse a whole
    /// response over one that is not (rules 81, 82). `xds-transport` has a `put` that looks.
    pub fn upsert_raw(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        self.change_type(type_url, now, |cache, type_key| cache.store(type_key, name, resource, now, woken))
    }

    /// Has everybody interested sent the resource again although it did not change: the origin did so too.
    pub fn touch(&mut self, type_url: &TypeUrl, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        if let Some(at) = self.find(type_url, name)
            && self.slots[at].state.resource().is_some()
        {
            self.clear_error(self.slots[at].type_key, name);
            self.changed(at, woken);
            self.renew(at);
        }
    }

    /// Records that a name does not exist. A tombstone is left for the collections it belongs to.
    pub fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant, woken: &mut Vec<SubscriberId>) {
        self.remove_asked(type_url, name, false, now, woken);
    }

    /// Does what [`remove`](Self::remove) does, for the answer to who asked for just this name, though nobody here may ask
    /// for it any more. Of such names that were never here, not more are told to those who want a collection that they
    /// belong to than it keeps [tombstones](Options::tombstones): whoever asks decides how many there are.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals};
    ///
    /// let (now, mut woken) = (Instant::now(), Vec::new());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut options = Options::default();
    /// (options.authoritative, options.tombstones) = (false, 2);
    /// let mut cache = Cache::<()>::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// for name in ["a", "b", "c", "d"] {
    ///     cache.deny(&clusters, &name.parse().unwrap(), now, &mut woken);
    /// }
    /// let mut told = 0;
    /// cache.pull(subscriber, Removals::Include, &mut |_| {
    ///     told += 1;
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(told, 2);
    /// ```
    pub fn deny(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant, woken: &mut Vec<SubscriberId>) {
        self.remove_asked(type_url, name, true, now, woken);
    }

    pub(crate) fn remove_asked(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        asked: bool,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.expire(now);
        let Some(type_key) = self.type_keys.get(type_url).copied() else { return };
        let seq = self.next_seq();
        let failed = self.clear_error(type_key, name);
        let was_alias = self.end_alias(type_key, name);
        let found = self.slot_of(type_key, name);
        let (mut was_present, mut born) = (false, NEVER);
        if let Some(at) = found {
            let slot = &mut self.slots[at];
            was_present = slot.state.resource().is_some();
            if was_present {
                born = slot.born;
            }
            if matches!(slot.state, State::Absent) && failed.is_none() && !was_alias {
                return;
            }
            self.drop_aliases(at, woken);
            let slot = &mut self.slots[at];
            self.present -= usize::from(was_present);
            self.totals.removed += u64::from(was_present);
            if let State::Present(resource) = std::mem::replace(&mut slot.state, State::Absent) {
                let departures = &mut self.types[type_key].departures;
                departures.push(name, resource, born..seq, now);
            }
            slot.seq = seq;
            let places = slot.places;
            for list in places.into_iter().filter_map(|place| place.list) {
                self.lists[list].unlink(&mut self.slots, at);
            }
            self.mark(Target::Slot(at), woken);
            self.drop_slot_if_unused(at);
        }
        let unseen = !was_present && (asked || found.is_some());
        let gone = Gone { name: name.clone(), seq, at: now, born, unseen };
        self.bury_in_collections(type_key, &gone, was_present, failed.as_ref(), woken);
        self.drop_type_if_unused(type_key);
    }

    /// Records that a collection holds all there is: who waits for an empty one is told so (rules 86, 99). That stays known
    /// until it is [evicted](Self::evict), or forgotten for lack of room.
    pub fn answered(&mut self, type_url: &TypeUrl, collection: &Interest, woken: &mut Vec<SubscriberId>) {
        let type_key = self.type_key(type_url);
        let Some(list) = self.answered_list(type_key, collection) else { return };
        // First, for it may be all that keeps the list when its error is over.
        let before = std::mem::replace(&mut self.lists[list].answer, Answer::Complete);
        let failed = self.end_collection_error(list, woken);
        if !self.lists.contains(list) {
            return self.drop_type_if_unused(type_key);
        }
        if before != Answer::Complete {
            self.renew_list(list);
        } else if !failed {
            return;
        }
        self.mark(Target::List(list), woken);
    }

    /// Records that the answer to a collection has begun, and may go on: who holds nothing of it may be served what is
    /// there, and nothing is told to be gone before the answer is complete (rule 151).
    pub fn begun(&mut self, type_url: &TypeUrl, collection: &Interest, woken: &mut Vec<SubscriberId>) {
        let type_key = self.type_key(type_url);
        let Some(list) = self.answered_list(type_key, collection) else { return };
        if self.lists[list].answer == Answer::None {
            self.lists[list].answer = Answer::Begun;
            self.renew_list(list);
            self.mark(Target::List(list), woken);
        }
    }

    /// The list that an answer is about: one that nobody is subscribed to yet, too, where answers are kept.
    fn answered_list(&mut self, type_key: TypeKey, collection: &Interest) -> Option<ListKey> {
        if self.keeps_answers() { Some(self.list(type_key, collection)) } else { self.list_of(type_key, collection) }
    }

    /// The origin is away: what is there is still served, but what is not may be there by now (rule 150). Until a
    /// collection is [answered](Self::answered) anew, nothing that a subscriber brings along is told to be gone.
    pub fn origin_lost(&mut self) {
        if self.options.authoritative {
            return;
        }
        self.lost = self.seq;
        for list in self.lists.values_mut().filter(|list| list.answer == Answer::Complete) {
            list.answer = Answer::Stale;
        }
    }

    /// Whether a name has been answered, with an error too, or something of a collection has.
    pub fn is_known(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        let Some(type_key) = self.type_keys.get(type_url) else { return self.options.authoritative };
        let of = &self.types[*type_key];
        match interest {
            Interest::Name(name) if !name.is_glob() => match self.slot_of(*type_key, name) {
                Some(at) => !matches!(self.slots[at].state, State::Unknown),
                None => {
                    let answered = of.errors.contains_key(name) || of.aliases.canonical(name).is_some();
                    self.options.authoritative || answered
                }
            },
            collection => self
                .list_of(*type_key, collection)
                .map_or(self.options.authoritative, |list| self.lists[list].answer != Answer::None),
        }
    }

    /// Records the version an origin gave to a whole type, as SotW does, to be passed on unchanged (rule 146).
    pub fn set_type_version(&mut self, type_url: &TypeUrl, version: Option<Version>) {
        let type_key = self.type_key(type_url);
        self.types[type_key].version = version;
    }

    /// The version an origin gave to the whole type of a subscriber.
    pub fn type_version(&self, id: SubscriberId) -> Option<&Version> {
        let subscriber = self.is_open(id).then(|| &self.subscribers[id.key()])?;
        self.types[subscriber.type_key].version.as_ref()
    }

    /// The resource of a name, or of what the name is an alias of.
    pub fn resource(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Resource<V>> {
        let type_key = *self.type_keys.get(type_url)?;
        let canonical = self.types[type_key].aliases.canonical(name).unwrap_or(name);
        self.slots[self.slot_of(type_key, canonical)?].state.resource()
    }

    /// Every name the cache knows something about.
    pub fn resources(&self) -> impl Iterator<Item = Stored<'_, V>> {
        self.slots.values().filter_map(|slot| self.stored(slot))
    }

    /// A part of the same, of at most `most`, and where the next part begins if there is one; the first begins at 0. For who
    /// must not keep others from the cache for as long as all of it takes: what comes or goes between two parts may be in
    /// none of them.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Options, Resource};
    ///
    /// let mut cache = Cache::new(Options::default());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// for name in ["a", "b", "c"] {
    ///     cache.upsert_raw(&clusters, &name.parse().unwrap(), Resource::unversioned(7, ()), Instant::now(), &mut Vec::new());
    /// }
    /// let (mut names, mut next) = (Vec::new(), Some(0));
    /// while let Some(from) = next {
    ///     let (part, after) = cache.resources_from(from, 2);
    ///     names.extend(part.map(|stored| stored.name.to_string()));
    ///     next = after;
    /// }
    /// assert_eq!(names, ["a", "b", "c"]);
    /// ```
    pub fn resources_from(&self, from: usize, most: usize) -> (impl Iterator<Item = Stored<'_, V>>, Option<usize>) {
        let (part, next) = self.slots.part(from, most);
        (part.filter_map(|slot| self.stored(slot)), next)
    }

    fn stored<'a>(&'a self, slot: &'a Slot<V>) -> Option<Stored<'a, V>> {
        (!matches!(slot.state, State::Unknown)).then(|| Stored {
            type_url: &self.types[slot.type_key].url,
            name: &slot.name,
            resource: slot.state.resource(),
            changed_at: slot.changed_at.and_then(|at| self.moments.time(at)),
            watchers: slot.watchers,
        })
    }

    /// What was done to the cache since it was made.
    pub fn totals(&self) -> Outcomes {
        self.totals
    }

    /// A call that stores something of a type: what it has no room for goes when all of it is in.
    pub(crate) fn change_type<T>(
        &mut self,
        type_url: &TypeUrl,
        now: Instant,
        change: impl FnOnce(&mut Self, TypeKey) -> T,
    ) -> T {
        self.expire(now);
        let type_key = self.type_key(type_url);
        let result = change(self, type_key);
        self.drop_type_if_unused(type_key);
        self.make_room();
        result
    }

    /// An upsert into a type, but for what is done once per call.
    pub(crate) fn store(
        &mut self,
        type_key: TypeKey,
        name: &ResourceName,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        if name.is_glob() || name.as_str() == "*" {
            return Outcome::Unchanged;
        }
        let at = self.slot(type_key, name);
        let outcome = match self.slots[at].state.resource() {
            None => Outcome::Added,
            Some(old) => match (old.version == resource.version, old.digest() == resource.digest()) {
                (true, true) => Outcome::Unchanged,
                (true, false) => Outcome::ChangedAtSameVersion,
                (false, true) => Outcome::Reversioned,
                (false, false) => Outcome::Changed,
            },
        };
        let failed = self.types[type_key].errors.contains_key(name);
        let outcome = if failed && outcome == Outcome::Unchanged { Outcome::Recovered } else { outcome };
        self.totals.count(outcome);
        if outcome == Outcome::Unchanged {
            return outcome;
        }
        if outcome != Outcome::Recovered {
            let slot = &mut self.slots[at];
            slot.state = State::Present(resource);
            slot.changed_at = Some(self.moments.of(now));
        }
        if outcome == Outcome::Added {
            self.end_alias(type_key, name);
            self.present += 1;
            self.enter_lists(at);
        }
        if !self.types[type_key].errors.is_empty() {
            self.clear_error(type_key, name);
            if let Some(glob) = name.glob_parent() {
                self.recover(type_key, glob, woken);
            }
        }
        self.changed(at, woken);
        if outcome == Outcome::Added {
            self.slots[at].born = self.seq;
        }
        self.renew(at);
        outcome
    }
}
