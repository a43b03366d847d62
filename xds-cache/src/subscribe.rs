//! Subscribers and what they are interested in.

use std::collections::{BTreeSet, HashMap};

use xdstp_uri::{CanonicalText, ResourceName};

use crate::arena::Arena;
use crate::brought::Brought;
use crate::cache::Cache;
use crate::departed::FullState;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, Target, TypeKey};
use crate::links::{self, Answer, Chain, Ends, Link, List, Slot, Walk};
use crate::name_set::NameSet;
use crate::resource::TypeUrl;

/// What a [`subscribe`](Cache::subscribe) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// Nobody was interested in this before: a relay asks upstream now.
    First,
    /// Somebody else was interested already.
    Joined,
    /// The subscriber was interested already: it will be sent everything again (rule 48). Or it is closed, and nothing
    /// is to be done.
    Again,
}

pub(crate) struct Subscriber {
    pub(crate) generation: u32,
    pub(crate) type_key: TypeKey,
    /// The chain of links to names that changed.
    pub(crate) slots: Option<LinkKey>,
    /// The chain of links to collections that changed.
    pub(crate) lists: Option<LinkKey>,
    pub(crate) links: Vec<LinkKey>,
    /// Links to collections that have tombstones to tell.
    pub(crate) parting: BTreeSet<LinkKey>,
    /// Names to tell as removed, unless they are back by then.
    pub(crate) leaving: NameSet,
    /// Those of them that the subscriber cannot have: nobody waits for anything to tell of these (rule 158).
    pub(crate) missing: BTreeSet<ResourceName>,
    /// Names that must be answered once although they are not subscribed any more (rules 52, 53).
    pub(crate) forced: NameSet,
    /// Names and globs whose error is to be told, unless that is over by then.
    pub(crate) failing: BTreeSet<ResourceName>,
    /// What it brought along, and was not sent when it was compared, because it had it: nor was it told of its aliases.
    pub(crate) unsent: BTreeSet<ResourceName>,
    /// The names in `resumed` that it can only have by an alias.
    pub(crate) unclaimed: BTreeSet<ResourceName>,
    /// They are being looked at, and were up to this one.
    pub(crate) disclaimed: Option<ResourceName>,
    /// None of them counts with its version any more.
    pub(crate) unclaimed_lapsed: bool,
    /// No link before this one is to a name that was not answered.
    pub(crate) first_unanswered: usize,
    /// What was sent for an alias, by its link.
    pub(crate) aliased: HashMap<LinkKey, ResourceName>,
    /// What it said it holds when it connected.
    pub(crate) resumed: Brought,
    /// How often it said so.
    pub(crate) resumes: u32,
    /// What it brought along and a complete answer lacks: told as gone, before anybody said so of the name itself.
    pub(crate) concluded: BTreeSet<ResourceName>,
    /// The last full state it was sent, if it is sent any.
    pub(crate) full_state: Option<Box<FullState>>,
    /// A part of it is closed.
    closing: bool,
}

impl Subscriber {
    fn new(type_key: TypeKey, generation: u32) -> Self {
        Self {
            generation,
            type_key,
            slots: None,
            lists: None,
            links: Vec::new(),
            parting: BTreeSet::new(),
            leaving: NameSet::default(),
            missing: BTreeSet::new(),
            forced: NameSet::default(),
            failing: BTreeSet::new(),
            unsent: BTreeSet::new(),
            unclaimed: BTreeSet::new(),
            disclaimed: None,
            unclaimed_lapsed: false,
            first_unanswered: 0,
            aliased: HashMap::new(),
            resumed: Brought::default(),
            resumes: 0,
            concluded: BTreeSet::new(),
            full_state: None,
            closing: false,
        }
    }

    /// Whether something changed that it has not looked at. Removals and errors that it has looked at may wait for
    /// others, and what changes meanwhile has to wake.
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.is_some() || self.lists.is_some() || !self.forced.is_empty()
    }

    pub(crate) fn has_work(&self) -> bool {
        self.has_changes() || self.has_removals() || !self.failing.is_empty() || self.disclaimed.is_some()
    }

    pub(crate) fn has_removals(&self) -> bool {
        !self.parting.is_empty() || !self.leaving.is_empty()
    }
}

impl<V> Cache<V> {
    /// A new subscriber to resources of one type, interested in nothing yet.
    pub fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let type_key = self.type_key(type_url);
        self.types[type_key].subscribers += 1;
        // After four thousand million others, what was forgotten that long may come again: but never 0.
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        let generation = self.generation;
        SubscriberId::of(self.subscribers.add(Subscriber::new(type_key, generation)), generation)
    }

    /// Whether a subscriber was opened here, and is not closed.
    pub fn is_open(&self, id: SubscriberId) -> bool {
        self.subscribers.get(id.key()).is_some_and(|subscriber| subscriber.generation == id.generation())
    }

    /// The subscriber at an index.
    pub(crate) fn id_of(&self, key: SubscriberKey) -> SubscriberId {
        SubscriberId::of(key, self.subscribers[key].generation)
    }

    /// Ends a subscriber. Returns what nobody is interested in any more.
    pub fn close(&mut self, id: SubscriberId) -> Vec<Interest> {
        self.close_part(id, usize::MAX).0
    }

    /// Does what [`close`](Self::close) does, of not more than `most` interests at once: for who must not keep others from
    /// the cache for as long as all of it takes. Whether the subscriber is closed comes with what nobody is interested in
    /// any more. Nothing else may be done with it meanwhile.
    ///
    /// ```
    /// use xdstp_cache::{Cache, Interest, Options};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// for name in ["a", "b", "c"] {
    ///     cache.subscribe(subscriber, &Interest::Name(name.parse().unwrap()));
    /// }
    /// let (left, closed) = cache.close_part(subscriber, 2);
    /// assert!(left.len() == 2 && !closed);
    /// let (left, closed) = cache.close_part(subscriber, 2);
    /// assert!(left.len() == 1 && closed && !cache.is_open(subscriber));
    /// ```
    pub fn close_part(&mut self, id: SubscriberId, most: usize) -> (Vec<Interest>, bool) {
        if !self.is_open(id) {
            return (Vec::new(), true);
        }
        let Subscriber { links: held, closing, .. } = &mut self.subscribers[id.key()];
        if !std::mem::replace(closing, true) {
            // Collections first: a name is left with all that it is in, or that would seem to have been left before it.
            held.sort_by_key(|at| matches!(self.links[*at].target, Target::Slot(_)));
        }
        let part: Vec<_> = held.drain(..most.min(held.len())).collect();
        let is_last = held.is_empty();
        let mut left = Vec::new();
        for at in part {
            let target = self.links[at].target;
            let interest = self.interest_of(target);
            if self.drop_link(at) {
                left.push(interest);
            }
        }
        if !is_last {
            return (left, false);
        }
        let Subscriber { type_key, resumed, .. } = self.subscribers.remove(id.key());
        self.bringing.remove(&id.key());
        if !self.options.authoritative {
            resumed.names().for_each(|name| self.forget_error(type_key, name));
        }
        self.end_full_states(type_key, id.key());
        self.types[type_key].subscribers -= 1;
        self.drop_type_if_unused(type_key);
        self.make_room();
        (left, true)
    }

    /// Adds an interest; a repeated one is sent again in full (rule 48).
    pub fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> Subscribed {
        if !self.is_open(id) {
            return Subscribed::Again;
        }
        let target = self.target(self.subscribers[id.key()].type_key, interest);
        self.subscribe_to(id, target)
    }

    /// The same, to the name that a text is the canonical form of, if that is known: the text need not be parsed then.
    /// The name comes with what was done.
    ///
    /// ```
    /// use xdstp_cache::{Cache, Interest, Options, Subscribed};
    /// use xdstp_uri::CanonicalText;
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let (one, other) = (cache.open(&clusters), cache.open(&clusters));
    /// let cart = CanonicalText::new("cart");
    /// assert!(cache.subscribe_known(one, &cart).is_none());
    /// cache.subscribe(one, &Interest::Name("cart".parse().unwrap()));
    /// let (subscribed, name) = cache.subscribe_known(other, &cart).unwrap();
    /// assert_eq!((subscribed, name.as_str()), (Subscribed::Joined, "cart"));
    /// ```
    pub fn subscribe_known(
        &mut self,
        id: SubscriberId,
        text: &CanonicalText<'_>,
    ) -> Option<(Subscribed, &ResourceName)> {
        let slot = self.known(id, text)?;
        let subscribed = self.subscribe_to(id, Target::Slot(slot));
        Some((subscribed, &self.slots[slot].name))
    }

    fn subscribe_to(&mut self, id: SubscriberId, target: Target) -> Subscribed {
        if let Some(at) = self.link_of(id, target) {
            self.rewind(at);
            return Subscribed::Again;
        }
        let holds = match target {
            // Only the first request of a type may both subscribe to a name and hold it (rule 49).
            Target::Slot(slot) => self.ask_by_name(id, slot),
            Target::List(list) => {
                self.wait_for(id, list);
                self.send_resumed_again(id, list);
                false
            }
        };
        let (watchers, walk) = match target {
            Target::Slot(at) => {
                let slot = &mut self.slots[at];
                slot.watchers += 1;
                (slot.watchers, None)
            }
            Target::List(at) => {
                let seq = self.seq;
                let list = &mut self.lists[at];
                list.watchers += 1;
                list.watched = true;
                let watchers = list.watchers;
                // Envoy lists no glob members when it reconnects (rule 100); what it holds of a wildcard it does list.
                let since = if list.glob.is_some() { seq } else { 0 };
                self.pass(at, None, Some(seq));
                let walk = Walk {
                    opened: seq,
                    gone_cursor: seq,
                    since,
                    sent: 0,
                    at: None,
                    lapsed: self.subscribers[id.key()].resumes,
                    answered: false,
                    spoken: false,
                    complete: false,
                };
                (watchers, Some(self.walks.add(walk)))
            }
        };
        let subscriber = &mut self.subscribers[id.key()];
        let mut link = Link::new(target, id.key(), subscriber.links.len() as u32, walk);
        link.sent = holds;
        let at = self.links.add(link);
        subscriber.links.push(at);
        if let Some(last) = &mut subscriber.full_state {
            last.came(at);
        }
        self.push(at, Chain::Work);
        self.held.insert(&self.links, at);
        if let Target::Slot(slot) = target {
            let sends = self.resolve(slot);
            // It may have what that stands for, and know so.
            self.follow_alias(at, slot, sends);
        }
        self.restart_other_names(at);
        if let Target::List(list) = target {
            self.restart_within(id, list);
            self.repeat_errors_within(at, list);
        }
        if watchers == 1 {
            self.idle.remove(target);
        }
        if watchers == 1 { Subscribed::First } else { Subscribed::Joined }
    }

    /// Ends an interest. True when nobody is interested in it any more.
    ///
    /// A name that a wildcard or glob of the same subscriber still covers is answered once more
    /// (rules 52, 53). To the client its wildcard covers every name: one that is not in it is told as removed.
    pub fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let type_key = self.subscribers[id.key()].type_key;
        let Some(target) = self.existing_target(type_key, interest) else { return false };
        let Some(at) = self.link_of(id, target) else { return false };
        let position = self.links[at].position;
        self.take_link(id, position as usize);
        let names = match target {
            Target::Slot(slot) => self.names_of(at, slot),
            Target::List(_) => BTreeSet::new(),
        };
        if let Target::Slot(_) = target {
            // Whether the name is an alias by which it holds what it brought along, only it can tell.
            let Subscriber { resumed, unclaimed, unclaimed_lapsed, .. } = &mut self.subscribers[id.key()];
            if !std::mem::replace(unclaimed_lapsed, true) {
                unclaimed.iter().for_each(|name| _ = resumed.version_mut(name).map(Option::take));
            }
        }
        // Another collection of the subscriber may cover what they name, and have none of its own.
        self.pull_tombstones(at);
        self.hand_over(at);
        let wildcard = Target::List(self.types[type_key].wildcard);
        let keeps = target != wildcard && self.holds(id, wildcard);
        let Subscriber { leaving, forced, .. } = &mut self.subscribers[id.key()];
        if let Target::List(_) = target {
            leaving.expect_globs();
            forced.expect_globs();
        }
        let mut pending = self.pending_within(id, target);
        if let (true, Target::List(list)) = (keeps, target) {
            let members = self.lists[list].members(&self.slots);
            pending.extend(members.map(|at| self.slots[at].name.clone()));
            pending.extend(self.lists[list].gone.iter().map(|gone| gone.name.clone()));
        }
        let in_full_state = self.in_full_state_by(id, at);
        let last = self.drop_link(at);
        self.leave_in_full_state(id, in_full_state);
        // Rule 54: what it held of what it left, it holds no more.
        for name in names {
            // Whether it knows what it brought along by this alias, only it can tell.
            let Subscriber { resumed, leaving, unsent, .. } = &mut self.subscribers[id.key()];
            let unsent = unsent.remove(&name);
            let brought = unsent || resumed.contains(&name) || leaving.contains(&name);
            let by_alias = name.as_str() != interest.as_str();
            if unsent {
                self.restart_links_to(id, &name);
            }
            self.leave(id, name, keeps || brought && by_alias);
        }
        if let Target::List(list) = target {
            self.send_unsent(id, list);
        }
        for name in pending {
            let by_alias = !self.is_wanted_itself(id, type_key, &name);
            let wanted = self.is_wanted(id, type_key, &name);
            let waits = self.covered(id, type_key, &name) && !self.is_answered(id, type_key, &name);
            if waits && self.subscribers[id.key()].leaving.remove(&name) {
                self.bring(id, name.clone(), None);
            }
            let Subscriber { resumed, leaving, forced, .. } = &mut self.subscribers[id.key()];
            if let (true, Some(held)) = (by_alias, resumed.version_mut(&name)) {
                // It may not know yet that it wants this by an alias.
                *held = None;
            }
            if !wanted {
                forced.remove(&name);
                if keeps {
                    leaving.insert(name.clone());
                } else {
                    leaving.remove(&name);
                }
                self.drop_brought(id, &name);
            }
        }
        self.disclaim_anew(id);
        self.make_room();
        last
    }

    /// What the subscriber brought along, and knows to be of the collection that it left: whether it knows an alias too,
    /// by which it wants it still, only it can tell.
    fn send_unsent(&mut self, id: SubscriberId, list: ListKey) {
        let type_key = self.subscribers[id.key()].type_key;
        let unsent = std::mem::take(&mut self.subscribers[id.key()].unsent);
        let (left, unsent): (BTreeSet<_>, _) = unsent.into_iter().partition(|name| {
            self.collections_of(type_key, name).contains(&Some(list)) && !self.is_wanted_itself(id, type_key, name)
        });
        self.subscribers[id.key()].unsent = unsent;
        left.iter().for_each(|name| self.restart_links_to(id, name));
    }

    /// All that asks for a name, by whatever it is called, is to be sent it again.
    fn restart_links_to(&mut self, id: SubscriberId, name: &ResourceName) {
        let type_key = self.subscribers[id.key()].type_key;
        let Some(slot) = self.slot_of(type_key, name) else { return };
        let links: Vec<_> = self.links_to(id, slot).collect();
        links.into_iter().for_each(|link| self.restart(link));
    }

    /// What a collection that is left has sent counts as sent by the others that may cover it: that it is gone is for
    /// them to tell.
    fn hand_over(&mut self, link: LinkKey) {
        let Link { cursor, subscriber, .. } = self.links[link];
        let Some((list, walk)) = self.links[link].to_list() else { return };
        let sent = cursor.max(self.walks[walk].sent);
        let id = self.id_of(subscriber);
        let wildcard = Target::List(self.types[self.lists[list].type_key].wildcard);
        // What has a glob's members beside it is their names, and the wildcard.
        let (others, wildcard) = match self.lists[list].glob {
            Some(_) => (self.links_within(id, list), self.link_of(id, wildcard)),
            None => (self.subscribers[id.key()].links.clone(), None),
        };
        for other in others.into_iter().chain(wildcard) {
            let Link { target, walk, .. } = self.links[other];
            if let Some(walk) = walk {
                let walk = &mut self.walks[walk];
                walk.sent = walk.sent.max(sent);
            } else if let Target::Slot(at) = target
                && self.is_within(target, list)
            {
                let Slot { born, ref state, .. } = self.slots[self.resolve(at)];
                self.links[other].sent |= state.resource().is_some() && born <= sent;
            }
        }
    }

    /// What a link to a name is about: the name, and if it is an alias what it stands for, and stood for.
    pub(crate) fn names_of(&self, link: LinkKey, at: SlotKey) -> BTreeSet<ResourceName> {
        let Link { subscriber, .. } = self.links[link];
        let sent = self.subscribers[subscriber].aliased.get(&link).cloned();
        let names = [at, self.resolve(at)].map(|at| self.slots[at].name.clone());
        names.into_iter().chain(sent).collect()
    }

    /// The subscriber left a name, and may have dropped it though a collection covers it (rules 52, 53). By another
    /// name of the resource it keeps it: it was told of its aliases.
    fn leave(&mut self, id: SubscriberId, name: ResourceName, keeps: bool) {
        let type_key = self.subscribers[id.key()].type_key;
        let other_name = self.is_asked_for(id, type_key, &name);
        let covered = self.covered(id, type_key, &name);
        match self.subscribers[id.key()].resumed.version_mut(&name) {
            // That is about to be sent for the other name, unless this stops being one.
            Some(held) if other_name => *held = None,
            Some(_) => self.drop_brought(id, &name),
            None => {}
        }
        let subscriber = &mut self.subscribers[id.key()];
        if keeps && !other_name && !covered {
            subscriber.leaving.insert(name);
            return;
        }
        if self.types[type_key].had_aliases && !other_name && !covered && subscriber.leaving.contains(&name) {
            // By an alias that it had, it may not have left it.
            return;
        }
        // Whether it is gone is for what else covers it to say now.
        subscriber.leaving.remove(&name);
        subscriber.missing.remove(&name);
        // Not while it is asked for by another name.
        if covered {
            subscriber.forced.insert(name);
        }
    }

    /// What is still to be said about names of a collection: not that a glob is empty, which is said of the glob.
    pub(crate) fn pending_within(&self, id: SubscriberId, target: Target) -> Vec<ResourceName> {
        let Target::List(list) = target else { return Vec::new() };
        let Subscriber { leaving, forced, .. } = &self.subscribers[id.key()];
        let mut pending = self.names_within(id, leaving, list);
        pending.extend(self.names_within(id, forced, list));
        pending.extend(self.brought_within(id, list));
        pending.retain(|name| !name.is_glob());
        pending
    }

    /// Those of a subscriber's names that belong to a collection.
    pub(crate) fn names_within(&self, id: SubscriberId, names: &NameSet, list: ListKey) -> Vec<ResourceName> {
        let type_key = self.subscribers[id.key()].type_key;
        match &self.lists[list].glob {
            Some(glob) => names.of_glob(glob).cloned().collect(),
            None => {
                let within = |name: &&ResourceName| self.collections_of(type_key, name).contains(&Some(list));
                names.iter().filter(within).cloned().collect()
            }
        }
    }

    /// What a subscriber is interested in.
    pub fn interests(&self, id: SubscriberId) -> impl Iterator<Item = Interest> {
        let subscriber = self.subscribers.get(id.key()).filter(|subscriber| subscriber.generation == id.generation());
        subscriber
            .into_iter()
            .flat_map(|subscriber| &subscriber.links)
            .map(|at| self.interest_of(self.links[*at].target))
    }

    /// Whether a subscriber asked for this name or collection itself.
    pub fn is_subscribed(&self, id: SubscriberId, interest: &Interest) -> bool {
        self.is_open(id)
            && self
                .existing_target(self.subscribers[id.key()].type_key, interest)
                .is_some_and(|target| self.holds(id, target))
    }

    /// How many subscribers there are.
    pub fn subscriber_count(&self) -> usize {
        self.subscribers.len()
    }

    /// The subscriber's link to a target.
    pub(crate) fn link_of(&self, id: SubscriberId, target: Target) -> Option<LinkKey> {
        self.held.find(&self.links, Ends(id.key(), target))
    }

    pub(crate) fn holds(&self, id: SubscriberId, target: Target) -> bool {
        self.link_of(id, target).is_some()
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
        match self.links[link].target {
            Target::List(list) => self.lists[list].answer == Answer::Complete,
            Target::Slot(_) => false,
        }
    }

    /// Whether one of the subscriber's collections holds, or would hold, the name.
    pub(crate) fn covered(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.covering(id, type_key, name).next().is_some()
    }

    /// The links to the subscriber's collections that hold, or would hold, the name: the narrowest first.
    pub(crate) fn covering(
        &self,
        id: SubscriberId,
        type_key: TypeKey,
        name: &ResourceName,
    ) -> impl Iterator<Item = LinkKey> {
        let [wildcard, directory] = self.collections_of(type_key, name);
        [directory, wildcard].into_iter().flatten().filter_map(move |list| self.link_of(id, Target::List(list)))
    }

    fn target(&mut self, type_key: TypeKey, interest: &Interest) -> Target {
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

    fn interest_of(&self, target: Target) -> Interest {
        match target {
            Target::Slot(at) => Interest::Name(self.slots[at].name.clone()),
            Target::List(at) => self.lists[at].glob.clone().map_or(Interest::Wildcard, Interest::Name),
        }
    }

    /// Everything of the link's target is to be sent again.
    fn rewind(&mut self, at: LinkKey) {
        let Link { target, subscriber, .. } = self.links[at];
        self.restart(at);
        match target {
            Target::Slot(slot) => {
                self.links[at].sent |= self.ask_by_name(self.id_of(subscriber), slot);
                self.restart_other_names(at);
            }
            Target::List(list) => {
                let resumes = self.subscribers[subscriber].resumes;
                let walk = self.links[at].walk.map(|walk| &mut self.walks[walk]);
                let lapsed = walk.is_some_and(|walk| walk.repeat(resumes) == resumes);
                self.subscribers[subscriber].resumed.take_sweep(at);
                self.restart_within(self.id_of(subscriber), list);
                if !lapsed {
                    self.send_resumed_again(self.id_of(subscriber), list);
                }
                self.repeat_errors_within(at, list);
            }
        }
    }

    pub(crate) fn restart(&mut self, at: LinkKey) {
        let Link { cursor, walk, .. } = self.links[at];
        self.links[at].cursor = 0;
        if let Some(walk) = walk {
            let walk = &mut self.walks[walk];
            (walk.at, walk.sent) = (None, walk.sent.max(cursor));
        }
        // Who waits already keeps the place in the line.
        if self.links[at].chain != Chain::Work {
            self.rechain(at, Chain::Work);
        }
    }

    /// What narrower links of the subscriber have sent counts as sent when the list is walked: who asks for the
    /// list is sent it again (rule 48).
    fn restart_within(&mut self, id: SubscriberId, list: ListKey) {
        for at in self.links_within(id, list) {
            if self.links[at].cursor > 0 {
                self.restart(at);
            }
        }
    }

    /// The subscriber's narrower links to members of a list.
    ///
    /// A list may be long, and so may the interests be: a pull walks the list anyway.
    fn links_within(&self, id: SubscriberId, list: ListKey) -> Vec<LinkKey> {
        let links = &self.subscribers[id.key()].links;
        let members = &self.lists[list];
        if links.len() <= members.live as usize {
            links.iter().copied().filter(|at| self.is_within(self.links[*at].target, list)).collect()
        } else {
            members.members(&self.slots).flat_map(|at| self.narrower(id, at, list)).collect()
        }
    }

    /// Whether all of a target belongs to a list too.
    fn is_within(&self, target: Target, list: ListKey) -> bool {
        match target {
            Target::Slot(slot) => self.slots[self.resolve(slot)].places.iter().any(|place| place.list == Some(list)),
            Target::List(other) => {
                other != list && self.lists[list].glob.is_none() && self.options.wildcard_covers_xdstp
            }
        }
    }

    /// Moves a link to another chain.
    pub(crate) fn rechain(&mut self, at: LinkKey, chain: Chain) {
        self.unchain(at);
        self.push(at, chain);
    }

    fn push(&mut self, at: LinkKey, chain: Chain) {
        let Self { links, slots, lists, subscribers, .. } = self;
        links::push(links, head(slots, lists, subscribers, &links[at], chain), at, chain);
    }

    fn unchain(&mut self, at: LinkKey) {
        let Self { links, slots, lists, subscribers, .. } = self;
        let chain = links[at].chain;
        links::unlink(links, head(slots, lists, subscribers, &links[at], chain), at);
    }

    /// A link stands no longer among those of its subscriber.
    fn take_link(&mut self, id: SubscriberId, position: usize) {
        let Subscriber { links: held, first_unanswered, .. } = &mut self.subscribers[id.key()];
        // The last of the answered takes its place, so that the unanswered one behind them need not be looked for anew.
        let hole = if position < *first_unanswered { *first_unanswered - 1 } else { position };
        *first_unanswered = hole.min(*first_unanswered);
        held.swap(position, hole);
        held.swap_remove(hole);
        for at in [position, hole] {
            if let Some(moved) = held.get(at) {
                self.links[*moved].position = at as u32;
            }
        }
    }

    /// Frees a link. True when its target has no watcher left.
    fn drop_link(&mut self, at: LinkKey) -> bool {
        self.unchain(at);
        self.held.remove(&self.links, at);
        let Link { target, subscriber, walk, .. } = self.links.remove(at);
        let walk = walk.map(|walk| self.walks.remove(walk));
        let subscriber = &mut self.subscribers[subscriber];
        subscriber.parting.remove(&at);
        // A map hashes what is to be removed though it is empty.
        if !subscriber.aliased.is_empty() {
            subscriber.aliased.remove(&at);
        }
        subscriber.resumed.take_sweep(at);
        match target {
            Target::Slot(slot) => {
                self.slots[slot].watchers -= 1;
                let last = self.slots[slot].watchers == 0;
                if last {
                    self.renew(slot);
                }
                self.drop_slot_if_unused(slot);
                last
            }
            Target::List(list) => {
                self.pass(list, walk.map(|walk| walk.gone_cursor), None);
                self.lists[list].watchers -= 1;
                let last = self.lists[list].watchers == 0;
                if last {
                    if self.lists[list].glob.is_none() {
                        self.trim(list, |_| true);
                    }
                    self.renew_list(list);
                }
                self.drop_list_if_unused(list);
                last
            }
        }
    }
}

/// Where a chain that a link may stand on begins.
fn head<'a, V>(
    slots: &'a mut Arena<SlotKey, Slot<V>>,
    lists: &'a mut Arena<ListKey, List>,
    subscribers: &'a mut Arena<SubscriberKey, Subscriber>,
    link: &Link,
    chain: Chain,
) -> &'a mut Option<LinkKey> {
    match (chain, link.target) {
        (Chain::Clean, Target::Slot(slot)) => &mut slots[slot].clean,
        (Chain::Clean, Target::List(list)) => &mut lists[list].clean,
        (Chain::Work, Target::Slot(_)) => &mut subscribers[link.subscriber].slots,
        (Chain::Work, Target::List(_)) => &mut subscribers[link.subscriber].lists,
    }
}
