//! What is gone, as it was: for subscribers that are sent full states, and are yet to be told.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::arena::Key;
use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey, SubscriberKey, Target, TypeKey};
use crate::links::{Seq, State};
use crate::pull::{Pulled, Removals};
use crate::resource::Resource;
use crate::subscribe::Subscriber;

/// How much of what is gone is kept of one type.
const MOST: usize = 1000;

/// What is gone of one type, and for whom it is kept.
pub(crate) struct Departures<V> {
    /// Oldest first.
    departed: VecDeque<Departed<V>>,
    /// The subscribers that are sent full states.
    readers: BTreeSet<SubscriberKey>,
    /// The one that was the last found to have something to hear.
    behind: Option<SubscriberKey>,
}

struct Departed<V> {
    name: ResourceName,
    resource: Resource<V>,
    born: Seq,
    gone: Seq,
    at: Instant,
}

/// The last full state of a subscriber.
#[derive(Default)]
pub(crate) struct FullState {
    /// What was there then, was in it.
    of: Seq,
    /// What was gone, and was in it all the same, by when it went.
    leaving: HashMap<ResourceName, Seq>,
    /// Links that were not there yet.
    later: BTreeSet<LinkKey>,
    /// What was in it because of links that are not there any more, and is wanted still.
    others: BTreeSet<ResourceName>,
}

impl FullState {
    /// The subscriber has one more link.
    pub(crate) fn came(&mut self, link: LinkKey) {
        self.later.insert(link);
    }
}

impl<V> Default for Departures<V> {
    fn default() -> Self {
        Self { departed: VecDeque::new(), readers: BTreeSet::new(), behind: None }
    }
}

impl<V> Departures<V> {
    /// The subscribers it is kept for, and how much that is.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (&BTreeSet<SubscriberKey>, usize) {
        (&self.readers, self.departed.len())
    }

    /// A resource is gone, after all that is in here.
    pub(crate) fn push(
        &mut self,
        name: &ResourceName,
        resource: Resource<V>,
        lived: std::ops::Range<Seq>,
        at: Instant,
    ) {
        if self.readers.is_empty() {
            return;
        }
        self.departed.push_back(Departed { name: name.clone(), resource, born: lived.start, gone: lived.end, at });
        self.departed.drain(..self.departed.len().saturating_sub(MOST));
    }

    /// Drops what went before a moment.
    pub(crate) fn expire(&mut self, before: Instant) {
        let old = self.departed.partition_point(|departed| departed.at <= before);
        self.departed.drain(..old);
    }

    /// Drops what all have been told, if they have.
    fn drop_told(&mut self, is_behind: impl Fn(SubscriberKey) -> bool) {
        let there = self.behind.unwrap_or(SubscriberKey::FIRST);
        let from_there = self.readers.range(there..).chain(self.readers.range(..there));
        match from_there.copied().find(|reader| is_behind(*reader)) {
            Some(reader) => self.behind = Some(reader),
            None => self.departed = VecDeque::new(),
        }
    }
}

impl<V> Cache<V> {
    /// Says that a subscriber is sent a full state now, and visits what belongs to that beside what a
    /// [`visit`](Self::visit) finds: if removals are deferred, what its last one had and is gone since, as it was. The
    /// visitor says whether it has it; what no state has is told as gone by it.
    ///
    /// Absence from a full state is removal, so that one which adds something cannot but take away what is gone, unless
    /// that is in it still (rule 122). From the first of these calls on what goes is kept, until all subscribers that
    /// are sent full states were told: a thousand of a type, and for
    /// [a while](crate::Options::departed_age).
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource};
    ///
    /// let (now, mut woken) = (Instant::now(), Vec::new());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse().unwrap();
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// cache.upsert_raw(&clusters, &cart, Resource::unversioned(7, "body"), now, &mut woken);
    /// let mut leaving = |cache: &mut Cache<&'static str>, removals| {
    ///     let mut bodies = Vec::new();
    ///     cache.pull(subscriber, removals, &mut |_| ControlFlow::Continue(()));
    ///     cache.visit_leaving(subscriber, removals, &mut |_, resource| {
    ///         bodies.push(resource.value);
    ///         true
    ///     });
    ///     bodies
    /// };
    /// assert!(leaving(&mut cache, Removals::Defer).is_empty());
    ///
    /// cache.remove(&clusters, &cart, now, &mut woken);
    /// assert_eq!(leaving(&mut cache, Removals::Defer), ["body"]);
    /// assert!(leaving(&mut cache, Removals::Include).is_empty());
    /// ```
    pub fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<V>) -> bool,
    ) {
        if !self.is_open(id) {
            return;
        }
        let type_key = self.subscribers[id.key()].type_key;
        let mut state = FullState { of: self.seq, ..FullState::default() };
        if removals == Removals::Defer {
            self.pull_parting(id);
            let last = self.subscribers[id.key()].full_state.as_deref();
            for departed in last.iter().flat_map(|last| self.in_full_state(id, type_key, last)) {
                if self.is_leaving(id, type_key, &departed.name) && visitor(&departed.name, &departed.resource) {
                    state.leaving.insert(departed.name.clone(), departed.gone);
                }
            }
            // What else is gone, this state says.
            let stays = |name: &ResourceName| state.leaving.contains_key(name);
            let mut pulled = Pulled { paused: true, ..Pulled::default() };
            while std::mem::take(&mut pulled.paused) {
                self.looks = self.visits;
                let _ = self.pull_removals(id, stays, &mut pulled, &mut |_| ControlFlow::Continue(()));
            }
        }
        self.types[type_key].departures.readers.insert(id.key());
        self.subscribers[id.key()].full_state = Some(Box::new(state));
        self.drop_departed(type_key);
    }

    /// What a subscriber had in its last full state, because of what it still wants, and is gone.
    fn in_full_state<'a>(
        &'a self,
        id: SubscriberId,
        type_key: TypeKey,
        last: &'a FullState,
    ) -> impl Iterator<Item = &'a Departed<V>> {
        let was_in = move |departed: &&Departed<V>| {
            let Departed { name, born, gone, .. } = departed;
            if !(*born..*gone).contains(&last.of) && last.leaving.get(name) != Some(gone) {
                return false;
            }
            let by_name = self.slot_of(type_key, name).into_iter().flat_map(|at| self.links_to(id, at));
            let mut links = by_name.chain(self.covering(id, type_key, name));
            links.any(|link| !last.later.contains(&link) || last.others.contains(name))
        };
        self.types[type_key].departures.departed.iter().filter(was_in)
    }

    /// The names that the last full state has because of a link, or had.
    pub(crate) fn in_full_state_by(&self, id: SubscriberId, link: LinkKey) -> Vec<ResourceName> {
        let Subscriber { full_state, type_key, .. } = &self.subscribers[id.key()];
        if full_state.as_ref().is_none_or(|last| last.later.contains(&link)) {
            return Vec::new();
        }
        match self.links[link].target {
            Target::Slot(slot) => vec![self.slots[slot].name.clone()],
            Target::List(list) => {
                let members = self.lists[list].members(&self.slots);
                let departed = self.types[*type_key].departures.departed.iter().map(|departed| &departed.name);
                let departed = departed.filter(|name| self.collections_of(*type_key, name).contains(&Some(list)));
                members.map(|at| &self.slots[at].name).chain(departed).cloned().collect()
            }
        }
    }

    /// The link that had these names in the last full state is gone.
    pub(crate) fn leave_in_full_state(&mut self, id: SubscriberId, names: Vec<ResourceName>) {
        let subscriber = &mut self.subscribers[id.key()];
        let type_key = subscriber.type_key;
        let Some(mut last) = subscriber.full_state.take() else { return };
        last.others.extend(names);
        last.others.retain(|name| self.is_wanted(id, type_key, name));
        self.subscribers[id.key()].full_state = Some(last);
    }

    /// Whether a name is to be told as gone to a subscriber, or may yet be, and is not back.
    fn is_leaving(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        let Subscriber { leaving, missing, resumed, .. } = &self.subscribers[id.key()];
        let slot = self.slot_of(type_key, name);
        match slot.map(|at| (at, &self.slots[at].state)) {
            Some((_, State::Present(_))) => false,
            // It asked for it anew, and is not answered.
            Some((at, State::Unknown)) if self.was_sent(id, at) => true,
            // Of what it left by name, a collection of its that was not answered may say something else.
            _ => leaving.contains(name) && !missing.contains(name) || resumed.contains(name),
        }
    }

    /// Whether a subscriber holds what it asks for by this name, for all that it was told.
    fn was_sent(&self, id: SubscriberId, slot: SlotKey) -> bool {
        self.link_of(id, Target::Slot(slot)).is_some_and(|link| self.links[link].sent)
    }

    /// A subscriber was told what there is, or is gone.
    fn drop_departed(&mut self, type_key: TypeKey) {
        let Self { types, subscribers, .. } = self;
        let departures = &mut types[type_key].departures;
        if !departures.departed.is_empty() {
            let repeats = |last: &Option<Box<FullState>>| last.as_ref().is_some_and(|last| !last.leaving.is_empty());
            let behind = |one: &Subscriber| one.has_changes() || one.has_removals() || repeats(&one.full_state);
            departures.drop_told(|reader| behind(&subscribers[reader]));
        }
    }

    /// A subscriber is closed.
    pub(crate) fn end_full_states(&mut self, type_key: TypeKey, subscriber: SubscriberKey) {
        if self.types[type_key].departures.readers.remove(&subscriber) {
            self.drop_departed(type_key);
        }
    }
}
