//! By which links a subscriber wants a name.

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, SlotKey, Target, TypeKey};
use crate::store::Answer;
use crate::subscribers::Link;

impl<V> Cache<V> {
    /// The links by which a subscriber asked for what is in a slot: by its name, and by its aliases.
    pub(crate) fn links_to(&self, id: SubscriberId, at: SlotKey) -> impl Iterator<Item = LinkKey> {
        std::iter::once(at)
            .chain(self.store.alias_slots(at))
            .filter_map(move |at| self.subscribers.link_of(id, Target::Slot(at)))
    }

    /// Whether a subscriber asked for a resource that is there, by its name or by an alias.
    pub(crate) fn is_asked_for(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.store.slot_of(type_key, name).is_some_and(|at| self.links_to(id, at).next().is_some())
    }

    /// The links to the subscriber's collections that hold, or would hold, the name: the narrowest first.
    pub(crate) fn covering(
        &self,
        id: SubscriberId,
        type_key: TypeKey,
        name: &ResourceName,
    ) -> impl Iterator<Item = LinkKey> {
        let [wildcard, directory] = self.store.collections_of(type_key, name);
        [directory, wildcard]
            .into_iter()
            .flatten()
            .filter_map(move |list| self.subscribers.link_of(id, Target::List(list)))
    }

    /// Whether one of the subscriber's collections holds, or would hold, the name.
    pub(crate) fn covered(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.covering(id, type_key, name).next().is_some()
    }

    pub(crate) fn is_wanted(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.is_asked_for(id, type_key, name) || self.covered(id, type_key, name)
    }

    /// The same, but for aliases.
    pub(crate) fn is_wanted_itself(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.is_subscribed(id, &Interest::Name(name.clone())) || self.covered(id, type_key, name)
    }

    /// Whether the subscriber asked for the name itself, or one of its collections that covers it was answered.
    pub(crate) fn is_answered(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.is_asked_for(id, type_key, name) || self.covering(id, type_key, name).any(|link| self.is_complete(link))
    }

    /// Whether a link is to a collection of which all there is has come.
    pub(crate) fn is_complete(&self, link: LinkKey) -> bool {
        match self.subscribers.target(link) {
            Target::List(list) => self.store[list].answer == Answer::Complete,
            Target::Slot(_) => false,
        }
    }

    /// The subscriber's other links that are sent this slot before `list` is walked: the name itself, its aliases,
    /// and its glob when `list` is the wildcard (rule 103).
    pub(crate) fn narrower(&self, id: SubscriberId, at: SlotKey, list: ListKey) -> impl Iterator<Item = LinkKey> {
        let several = self.subscribers[id].links.may_be_several();
        let by_glob = move || {
            let glob = self.store[at].directory();
            glob.filter(|glob| *glob != list).and_then(|glob| self.subscribers.link_of(id, Target::List(glob)))
        };
        let links = move || self.links_to(id, at).chain(std::iter::once_with(by_glob).flatten());
        several.then(links).into_iter().flatten()
    }

    /// The subscriber's narrower links to members of a list.
    ///
    /// A list may be long, and so may the interests be: a pull walks the list anyway.
    pub(crate) fn links_within(&self, id: SubscriberId, list: ListKey) -> Vec<LinkKey> {
        let links = self.subscribers[id].links.as_slice();
        let members = &self.store[list];
        if links.len() <= members.live as usize {
            links.iter().copied().filter(|at| self.is_within(self.subscribers.target(*at), list)).collect()
        } else {
            self.store.members(list).flat_map(|at| self.narrower(id, at, list)).collect()
        }
    }

    /// Whether all of a target belongs to a list too.
    pub(crate) fn is_within(&self, target: Target, list: ListKey) -> bool {
        match target {
            Target::Slot(slot) => self.store[self.store.resolve(slot)].lists().any(|other| other == list),
            Target::List(other) => {
                other != list && self.store[list].glob.is_none() && self.store.options.wildcard_covers_xdstp
            }
        }
    }

    /// What a link to a name is about: the name, and if it is an alias what it stands for, and stood for.
    pub(crate) fn names_of(&self, link: LinkKey, at: SlotKey) -> BTreeSet<ResourceName> {
        let Link { subscriber, .. } = self.subscribers[link];
        let sent = self.subscribers[subscriber].aliased.get(link).cloned();
        let names = [at, self.store.resolve(at)].map(|at| self.store[at].name.clone());
        names.into_iter().chain(sent).collect()
    }
}
