//! What a subscriber held when it connected: rules 48, 83 and 84.

use std::collections::BTreeSet;
use std::ops::Bound;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, ListKey, SlotKey, Target, TypeKey};
use crate::links::{Answer, Link, State};
use crate::resource::{TypeUrl, Version};
use crate::subscribe::Subscriber;

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
        let Subscriber { type_key, resumes, .. } = &mut self.subscribers[id.key()];
        let type_key = *type_key;
        *resumes = resumes.wrapping_add(1);
        for (name, version) in held {
            match self.was_told(id, type_key, &name) {
                Some(Told::Sent) => continue,
                Some(Told::Gone) => _ = self.subscribers[id.key()].leaving.insert(name.clone()),
                None => {}
            }
            let by_alias = !self.is_wanted_itself(id, type_key, &name);
            let subscriber = &mut self.subscribers[id.key()];
            // It may have it, whatever it asked for before.
            subscriber.missing.remove(&name);
            if by_alias {
                subscriber.unclaimed.insert(name.clone());
                subscriber.unclaimed_lapsed = false;
            }
            self.bring(id, name, Some(version));
        }
        self.disclaim_anew(id);
    }

    /// What a subscriber may hold of a name is yet to be compared.
    pub(crate) fn bring(&mut self, id: SubscriberId, name: ResourceName, version: Option<Version>) {
        self.subscribers[id.key()].resumed.insert(name, version);
        self.bringing.insert(id.key());
    }

    /// A subscriber holds nothing of a name any more: a relay may have kept the error of that only to spare it.
    pub(crate) fn drop_brought(&mut self, id: SubscriberId, name: &ResourceName) {
        let Subscriber { type_key, ref mut resumed, .. } = self.subscribers[id.key()];
        if resumed.remove(name).is_some() && !self.options.authoritative {
            self.forget_error(type_key, name);
        }
    }

    /// Some of what a subscriber brought along was compared: it may have been the last.
    pub(crate) fn has_compared(&mut self, id: SubscriberId) {
        if self.subscribers[id.key()].resumed.is_empty() {
            self.bringing.remove(&id.key());
        }
    }

    /// What a subscriber brought along of a collection.
    pub(crate) fn brought_within(&self, id: SubscriberId, list: ListKey) -> Vec<ResourceName> {
        let Subscriber { ref resumed, .. } = self.subscribers[id.key()];
        match &self.lists[list].glob {
            Some(glob) => resumed.of_glob(glob).cloned().collect(),
            None => resumed.names().filter(|name| self.is_in_wildcard(name)).cloned().collect(),
        }
    }

    /// What a subscriber was told of a name already, by whatever it asked for.
    fn was_told(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> Option<Told> {
        let slot = self.slot_of(type_key, name);
        let named = slot.into_iter().flat_map(|at| self.links_to(id, at));
        let mut links = named.chain(self.covering(id, type_key, name)).map(|link| &self.links[link]);
        match slot.map(|at| &self.slots[at]).filter(|slot| slot.state.resource().is_some()) {
            Some(slot) => links.any(|link| link.cursor >= slot.seq).then_some(Told::Sent),
            None => {
                let told = |link: &Link| match link.target {
                    Target::Slot(at) => link.cursor > 0 && matches!(self.slots[at].state, State::Absent),
                    Target::List(_) => link.walk.is_some_and(|walk| self.walks[walk].complete),
                };
                links.any(told).then_some(Told::Gone)
            }
        }
    }

    /// Whether some of what a subscriber brought along was not compared yet.
    pub fn brings(&self, id: SubscriberId) -> bool {
        self.is_open(id) && !self.subscribers[id.key()].resumed.is_empty()
    }

    /// Whether a subscriber of a type brought a name along that is not here.
    pub fn is_brought_along(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        let Some(type_key) = self.type_keys.get(type_url).copied() else { return false };
        !self.is_here(type_key, name) && self.who_brought_it(type_key, name).next().is_some()
    }

    /// Of what is [brought along](Self::is_brought_along), what only the answer to a collection decides, and that is not
    /// complete. A relay asks its origin for the fate of these (rule 151).
    ///
    /// O(what was brought along of collections that are not complete, and their number).
    pub fn undecided(&self, type_url: &TypeUrl) -> BTreeSet<ResourceName> {
        let Some(type_key) = self.type_keys.get(type_url).copied() else { return BTreeSet::new() };
        let mut undecided = BTreeSet::new();
        for (id, subscriber) in self.who_brought(type_key) {
            let wildcard = self.link_of(id, Target::List(self.types[type_key].wildcard));
            for (glob, names) in subscriber.resumed.by_glob() {
                let list = glob.and_then(|glob| self.types[type_key].globs.get(glob));
                let directory = list.and_then(|list| self.link_of(id, Target::List(*list)));
                let wildcard = wildcard.filter(|_| glob.is_none_or(|glob| self.is_in_wildcard(glob)));
                let mut covering = directory.into_iter().chain(wildcard).peekable();
                if covering.peek().is_none() || covering.any(|link| self.is_complete(link)) {
                    continue;
                }
                let waits = |name: &&ResourceName| {
                    let covered = glob.is_some() || self.is_in_wildcard(name);
                    covered && !self.is_asked_for(id, type_key, name) && !self.is_here(type_key, name)
                };
                undecided.extend(names.filter(waits).cloned());
            }
        }
        undecided
    }

    fn who_brought(&self, type_key: TypeKey) -> impl Iterator<Item = (SubscriberId, &Subscriber)> {
        let all = self.bringing.iter().map(|index| (self.id_of(*index), &self.subscribers[*index]));
        all.filter(move |(_, subscriber)| subscriber.type_key == type_key)
    }

    /// Who said that they hold a name, and have not been told what became of it.
    pub(crate) fn who_brought_it(&self, type_key: TypeKey, name: &ResourceName) -> impl Iterator<Item = SubscriberId> {
        let who_brought = self.who_brought(type_key).filter(|(_, of)| of.resumed.contains(name));
        who_brought.map(|(id, _)| id)
    }

    pub(crate) fn is_here(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        self.slot_of(type_key, name).is_some_and(|at| self.slots[at].state.resource().is_some())
    }

    /// What a subscriber holds and did not ask for, it may have by an alias: it is gone once every name it asked for
    /// was answered, and none of them stands for it. False where there is more to look at than a pull looks at: then it
    /// goes on there.
    pub(crate) fn disclaim(&mut self, id: SubscriberId) -> bool {
        let from = self.subscribers[id.key()].disclaimed.take();
        if self.subscribers[id.key()].unclaimed.is_empty() || self.awaits_names(id) {
            return true;
        }
        let Subscriber { type_key, ref unclaimed, .. } = self.subscribers[id.key()];
        let after = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let part: Vec<_> =
            unclaimed.range::<ResourceName, _>((after, Bound::Unbounded)).take(self.options.looks).cloned().collect();
        for name in &part {
            let wanted = self.is_wanted(id, type_key, name);
            let Subscriber { resumed, leaving, unclaimed, .. } = &mut self.subscribers[id.key()];
            if !resumed.contains(name) {
                unclaimed.remove(name);
            } else if !wanted {
                unclaimed.remove(name);
                leaving.insert(name.clone());
                self.drop_brought(id, name);
            }
            // What is wanted stays until it is compared: its alias may yet go.
        }
        self.has_compared(id);
        let subscriber = &mut self.subscribers[id.key()];
        let last = part.into_iter().nth(self.options.looks - 1);
        subscriber.disclaimed = last.filter(|_| !subscriber.unclaimed.is_empty());
        subscriber.disclaimed.is_none()
    }

    /// The same, when what was looked at may have another answer by now.
    pub(crate) fn disclaim_anew(&mut self, id: SubscriberId) {
        self.subscribers[id.key()].disclaimed = None;
        self.disclaim(id);
    }

    /// An alias stands for a resource no longer: who is looking at what it may hold by one, and was past the resource, goes
    /// on before it.
    pub(crate) fn look_again(&mut self, type_key: TypeKey, name: &ResourceName) {
        for id in self.who_brought_it(type_key, name).collect::<Vec<_>>() {
            let Subscriber { unclaimed, disclaimed, .. } = &mut self.subscribers[id.key()];
            if disclaimed.as_ref().is_some_and(|up_to| up_to >= name) {
                *disclaimed =
                    unclaimed.range::<ResourceName, _>((Bound::Unbounded, Bound::Excluded(name))).next_back().cloned();
            }
        }
    }

    /// Whether a name that a subscriber asked for was not answered: it may be an alias of what the subscriber holds.
    pub fn awaits_names(&mut self, id: SubscriberId) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let Subscriber { ref links, first_unanswered, .. } = self.subscribers[id.key()];
        let is_unanswered = |at: &LinkKey| match self.links[*at].target {
            Target::Slot(slot) => matches!(self.slots[slot].state, State::Unknown),
            Target::List(_) => false,
        };
        // What was answered stays so: each link is looked at once.
        let unanswered = links.iter().skip(first_unanswered).position(is_unanswered);
        let first = unanswered.map_or(links.len(), |further| first_unanswered + further);
        self.subscribers[id.key()].first_unanswered = first;
        unanswered.is_some()
    }

    /// What was to be told as gone because nobody wanted it, and belongs to a collection that is wanted
    /// now, waits until that one is answered.
    pub(crate) fn wait_for(&mut self, id: SubscriberId, list: ListKey) {
        let Subscriber { type_key, ref mut leaving, .. } = self.subscribers[id.key()];
        if self.lists[list].answer == Answer::Complete || leaving.is_empty() {
            return;
        }
        leaving.expect_globs();
        let within = self.names_within(id, &self.subscribers[id.key()].leaving, list);
        let waiting: Vec<_> = within.into_iter().filter(|name| !self.is_wanted(id, type_key, name)).collect();
        for name in waiting {
            self.subscribers[id.key()].leaving.remove(&name);
            self.bring(id, name, None);
        }
    }

    /// What the subscriber said it holds of a name does not count once it asks for the name, or for an alias of it.
    /// Whether it may hold the name.
    pub(crate) fn ask_by_name(&mut self, id: SubscriberId, slot: SlotKey) -> bool {
        let sends = self.resolve(slot);
        let Subscriber { resumed, leaving, missing, forced, .. } = &mut self.subscribers[id.key()];
        // Mostly it said nothing. A map hashes what is to be removed though it is empty.
        if resumed.is_empty() && leaving.is_empty() && forced.is_empty() {
            return false;
        }
        let name = &self.slots[slot].name;
        // What was to be told as gone, because nothing asked for it, is not gone any more. And what it left a moment
        // before, it may have by what else covers it.
        let may_be_gone = leaving.contains(name) && !missing.contains(name);
        let held_itself = resumed.remove(name).is_some() || may_be_gone || forced.contains(name);
        if let Some(held) = resumed.version_mut(&self.slots[sends].name) {
            *held = None;
        }
        held_itself
    }

    /// What the subscriber said it holds of a collection does not count once it asks for the collection (rule 48): what
    /// the first request asks for is asked before anything is said (rule 49).
    pub(crate) fn send_resumed_again(&mut self, id: SubscriberId, list: ListKey) {
        let brought = self.brought_within(id, list);
        let resumed = &mut self.subscribers[id.key()].resumed;
        brought.iter().for_each(|name| _ = resumed.version_mut(name).map(Option::take));
    }
}
