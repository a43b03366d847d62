//! What is gone, and belongs to full states still.

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::{Pulled, Removals};
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey, SubscriberKey, Target, TypeKey};
use crate::resource::Resource;
use crate::store::{Departed, State};
use crate::subscribers::{Debt, FullState, Subscriber};

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
    /// let now = Instant::now();
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse().unwrap();
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &cart, Resource::unversioned(7, "body"));
    /// let _ = edit.finish();
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
    /// let mut edit = cache.edit(now);
    /// edit.remove(&clusters, &cart);
    /// let _ = edit.finish();
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
        let type_key = self.subscribers[id].type_key;
        let mut state = FullState { of: self.store.seq, ..FullState::default() };
        if removals == Removals::Defer {
            self.pull_parting(id);
            let last = self.subscribers[id].full_state.as_deref();
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
        self.store[type_key].departures.readers.insert(id.key());
        self.subscribers[id].full_state = Some(Box::new(state));
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
            let Departed { name, born, gone, by, .. } = departed;
            let selector = self.subscribers[id].selector;
            let born = match by {
                Some(by) => by.iter().find(|(key, _)| *key == selector).map(|(_, since)| since),
                None => Some(born),
            };
            let Some(born) = born else { return false };
            if !(*born..*gone).contains(&last.of) && last.leaving.get(name) != Some(gone) {
                return false;
            }
            let by_name = self.store.slot_of(type_key, name).into_iter().flat_map(|at| self.links_to(id, at));
            let mut links = by_name.chain(self.covering(id, type_key, name));
            links.any(|link| !last.later.contains(&link) || last.others.contains(name))
        };
        self.store[type_key].departures.departed.iter().filter(was_in)
    }

    /// The names that the last full state has because of a link, or had.
    pub(crate) fn in_full_state_by(&self, id: SubscriberId, link: LinkKey) -> Vec<ResourceName> {
        let Subscriber { full_state, type_key, .. } = &self.subscribers[id];
        if full_state.as_ref().is_none_or(|last| last.later.contains(&link)) {
            return Vec::new();
        }
        match self.subscribers.target(link) {
            Target::Slot(slot) => vec![self.store[slot].name.clone()],
            Target::List(list) => {
                let members = self.store.members(list);
                let departed = self.store[*type_key].departures.departed.iter().map(|departed| &departed.name);
                let departed = departed.filter(|name| self.store.collections_of(*type_key, name).contains(&Some(list)));
                members.map(|at| &self.store[at].name).chain(departed).cloned().collect()
            }
        }
    }

    /// The link that had these names in the last full state is gone.
    pub(crate) fn leave_in_full_state(&mut self, id: SubscriberId, names: Vec<ResourceName>) {
        let subscriber = &mut self.subscribers[id];
        let type_key = subscriber.type_key;
        let Some(mut last) = subscriber.full_state.take() else { return };
        last.others.extend(names);
        last.others.retain(|name| self.is_wanted(id, type_key, name));
        self.subscribers[id].full_state = Some(last);
    }

    /// Whether a name is to be told as gone to a subscriber, or may yet be, and is not back.
    fn is_leaving(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        let owed = &self.subscribers[id].owed;
        let slot = self.store.slot_of(type_key, name);
        match slot.map(|at| (at, &self.store[at].state)) {
            Some((at, _)) if self.seen(id, at).is_some() => false,
            // It asked for it anew, and is not answered.
            Some((at, State::Unknown)) if self.was_sent(id, at) => true,
            // Of what it left by name, a collection of its that was not answered may say something else.
            _ => owed.is_leaving(name) || owed.owes(Debt::Comparison, name),
        }
    }

    /// Whether a subscriber holds what it asks for by this name, for all that it was told.
    fn was_sent(&self, id: SubscriberId, slot: SlotKey) -> bool {
        self.subscribers.link_of(id, Target::Slot(slot)).is_some_and(|link| self.subscribers[link].sent())
    }

    /// A subscriber was told what there is, or is gone.
    fn drop_departed(&mut self, type_key: TypeKey) {
        let Self { store, subscribers, .. } = self;
        let departures = &mut store[type_key].departures;
        if !departures.departed.is_empty() {
            let repeats = |last: &Option<Box<FullState>>| last.as_ref().is_some_and(|last| !last.leaving.is_empty());
            let behind = |one: &Subscriber| one.has_changes() || one.has_removals() || repeats(&one.full_state);
            if !departures.readers.any_behind(|reader| behind(&subscribers[reader])) {
                departures.clear();
            }
        }
    }

    /// A subscriber is closed.
    pub(crate) fn end_full_states(&mut self, type_key: TypeKey, subscriber: SubscriberKey) {
        if self.store[type_key].departures.readers.remove(subscriber) {
            self.drop_departed(type_key);
        }
    }
}
