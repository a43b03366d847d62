//! Subscribers and what they are interested in.

use std::collections::HashMap;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::interest::Interest;
use crate::links::{self, Chain, Link, NONE, Target};
use crate::resource::{TypeUrl, Version};

/// One subscriber: one type of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u32);

impl SubscriberId {
    /// A small number, unique among the open subscribers of a source: an index for a table beside it.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The subscriber with an index, for sources that number their own.
    pub fn from_index(index: u32) -> Self {
        Self(index)
    }
}

/// What a [`subscribe`](Cache::subscribe) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// Nobody was interested in this before: a relay asks upstream now.
    First,
    /// Somebody else was interested already.
    Joined,
    /// The subscriber was interested already: it will be sent everything again (rule 48).
    Again,
}

pub(crate) struct Subscriber {
    pub(crate) type_index: u32,
    slots: u32,
    lists: u32,
    leaving: u32,
    pub(crate) links: Vec<u32>,
    /// Whether it was named in a `woken` since its last pull.
    pub(crate) signalled: bool,
    /// Names that must be answered once although they are not subscribed any more (rules 52, 53).
    pub(crate) forced: Vec<ResourceName>,
    /// Names to be told as removed whatever the cache holds.
    pub(crate) forced_removals: Vec<ResourceName>,
    /// What it said it holds when it connected, as far as not compared yet (rules 83, 84).
    pub(crate) resumed: HashMap<ResourceName, Version>,
}

impl Subscriber {
    fn new(type_index: u32) -> Self {
        Self {
            type_index,
            slots: NONE,
            lists: NONE,
            leaving: NONE,
            links: Vec::new(),
            signalled: false,
            forced: Vec::new(),
            forced_removals: Vec::new(),
            resumed: HashMap::new(),
        }
    }

    /// The first link of one of its chains of work.
    pub(crate) fn head(&mut self, chain: Chain) -> &mut u32 {
        match chain {
            Chain::Slots | Chain::Clean => &mut self.slots,
            Chain::Lists => &mut self.lists,
            Chain::Leaving => &mut self.leaving,
        }
    }

    pub(crate) fn first(&self, chain: Chain) -> Option<u32> {
        let head = match chain {
            Chain::Slots | Chain::Clean => self.slots,
            Chain::Lists => self.lists,
            Chain::Leaving => self.leaving,
        };
        (head != NONE).then_some(head)
    }

    pub(crate) fn has_work(&self) -> bool {
        self.slots != NONE || self.lists != NONE || self.has_removals() || !self.forced.is_empty()
    }

    pub(crate) fn has_removals(&self) -> bool {
        self.leaving != NONE || !self.forced_removals.is_empty()
    }
}

impl<V> Cache<V> {
    /// A new subscriber to resources of one type, interested in nothing yet.
    pub fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let type_index = self.type_index(type_url);
        SubscriberId(self.subscribers.insert(Subscriber::new(type_index)) as u32)
    }

    /// Ends a subscriber. Returns what nobody is interested in any more.
    pub fn close(&mut self, id: SubscriberId) -> Vec<Interest> {
        let held = std::mem::take(&mut self.subscribers[id.index()].links);
        let mut left = Vec::new();
        for at in held {
            let target = self.links[at as usize].target;
            let interest = self.interest_of(target);
            if self.drop_link(at) {
                left.push(interest);
            }
        }
        self.subscribers.remove(id.index());
        left
    }

    /// Adds an interest; a repeated one is sent again in full (rule 48).
    pub fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> Subscribed {
        let type_index = self.subscribers[id.index()].type_index;
        let target = self.target(type_index, interest);
        if let Some(at) = self.held.get(&(id.0, target)).copied() {
            self.rewind(at);
            return Subscribed::Again;
        }
        let (watchers, gone_cursor) = match target {
            Target::Slot(at) => {
                let slot = &mut self.slots[at as usize];
                slot.watchers += 1;
                (slot.watchers, 0)
            }
            Target::List(at) => {
                let seq = self.seq;
                let list = &mut self.lists[at as usize];
                list.watchers += 1;
                // Envoy lists no glob members when it reconnects, so every tombstone is news to it (rule 100);
                // what it holds of a wildcard it does list.
                (list.watchers, if list.glob.is_some() { list.trimmed } else { seq })
            }
        };
        let subscriber = &mut self.subscribers[id.index()];
        let link = Link::new(target, id.0, gone_cursor, subscriber.links.len() as u32);
        let at = self.links.insert(link) as u32;
        subscriber.links.push(at);
        let chain = chain_of(target);
        links::push(&mut self.links, subscriber.head(chain), at, chain);
        self.held.insert((id.0, target), at);
        if watchers == 1 { Subscribed::First } else { Subscribed::Joined }
    }

    /// Ends an interest. True when nobody is interested in it any more.
    ///
    /// A name that a wildcard or glob of the same subscriber still covers is answered once more
    /// (rules 52, 53).
    pub fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        let type_index = self.subscribers[id.index()].type_index;
        let Some(target) = self.existing_target(type_index, interest) else { return false };
        let Some(at) = self.held.get(&(id.0, target)).copied() else { return false };
        let position = self.links[at as usize].position;
        let subscriber = &mut self.subscribers[id.index()];
        subscriber.links.swap_remove(position as usize);
        if let Some(moved) = subscriber.links.get(position as usize) {
            self.links[*moved as usize].position = position;
        }
        if let Target::Slot(slot) = target {
            let name = self.slots[slot as usize].name.clone();
            if self.covered(id, type_index, &name) {
                self.subscribers[id.index()].forced.push(name);
            }
        }
        self.drop_link(at)
    }

    /// What the subscriber held when it connected: equal versions are not sent, and names that are
    /// gone, or that it did not subscribe to, are told as removed (rules 83, 84). To be called once,
    /// after the subscriptions of the first request.
    pub fn resume(&mut self, id: SubscriberId, held: impl IntoIterator<Item = (ResourceName, Version)>) {
        let type_index = self.subscribers[id.index()].type_index;
        for (name, version) in held {
            let wanted = self.is_subscribed_name(id, type_index, &name) || self.covered(id, type_index, &name);
            let subscriber = &mut self.subscribers[id.index()];
            if wanted {
                subscriber.resumed.insert(name, version);
            } else {
                subscriber.forced_removals.push(name);
            }
        }
    }

    /// What a subscriber is interested in.
    pub fn interests(&self, id: SubscriberId) -> impl Iterator<Item = Interest> {
        self.subscribers[id.index()].links.iter().map(|at| self.interest_of(self.links[*at as usize].target))
    }

    /// Whether a subscriber asked for this name or collection itself.
    pub fn is_subscribed(&self, id: SubscriberId, interest: &Interest) -> bool {
        self.existing_target(self.subscribers[id.index()].type_index, interest)
            .is_some_and(|target| self.held.contains_key(&(id.0, target)))
    }

    /// How many subscribers there are.
    pub fn subscriber_count(&self) -> usize {
        self.subscribers.len()
    }

    fn is_subscribed_name(&self, id: SubscriberId, type_index: u32, name: &ResourceName) -> bool {
        let slot = self.types[type_index as usize].names.get(name);
        slot.is_some_and(|slot| self.held.contains_key(&(id.0, Target::Slot(*slot))))
    }

    /// Whether one of the subscriber's collections holds, or would hold, the name.
    pub(crate) fn covered(&self, id: SubscriberId, type_index: u32, name: &ResourceName) -> bool {
        self.collections_of(type_index, name)
            .into_iter()
            .any(|list| list != NONE && self.held.contains_key(&(id.0, Target::List(list))))
    }

    fn target(&mut self, type_index: u32, interest: &Interest) -> Target {
        match interest {
            Interest::Name(name) if !name.is_glob() => Target::Slot(self.slot(type_index, name)),
            collection => Target::List(self.list(type_index, collection)),
        }
    }

    fn existing_target(&self, type_index: u32, interest: &Interest) -> Option<Target> {
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                self.types[type_index as usize].names.get(name).copied().map(Target::Slot)
            }
            collection => self.list_of(type_index, collection).map(Target::List),
        }
    }

    fn interest_of(&self, target: Target) -> Interest {
        match target {
            Target::Slot(at) => Interest::Name(self.slots[at as usize].name.clone()),
            Target::List(at) => self.lists[at as usize].glob.clone().map_or(Interest::Wildcard, Interest::Name),
        }
    }

    /// Everything of the link's target is to be sent again.
    fn rewind(&mut self, at: u32) {
        let Link { target, subscriber, .. } = self.links[at as usize];
        self.links[at as usize].cursor = 0;
        self.links[at as usize].at = NONE;
        self.links[at as usize].answered = false;
        self.rechain(at, chain_of(target));
        if let Target::List(list) = target {
            // Members that were subscribed by name too count as sent by either link.
            for member in self.subscribers[subscriber as usize].links.clone() {
                let Target::Slot(slot) = self.links[member as usize].target else { continue };
                if self.slots[slot as usize].places.iter().any(|place| place.list == list) {
                    self.links[member as usize].cursor = 0;
                    self.rechain(member, Chain::Slots);
                }
            }
        }
    }

    /// Moves a link to another chain.
    pub(crate) fn rechain(&mut self, at: u32, chain: Chain) {
        self.unchain(at);
        let Link { target, subscriber, .. } = self.links[at as usize];
        let head = match (chain, target) {
            (Chain::Clean, Target::Slot(slot)) => &mut self.slots[slot as usize].clean,
            (Chain::Clean, Target::List(list)) => &mut self.lists[list as usize].clean,
            (work, _) => self.subscribers[subscriber as usize].head(work),
        };
        links::push(&mut self.links, head, at, chain);
    }

    fn unchain(&mut self, at: u32) {
        let Link { target, subscriber, chain, .. } = self.links[at as usize];
        let head = match (chain, target) {
            (Chain::Clean, Target::Slot(slot)) => &mut self.slots[slot as usize].clean,
            (Chain::Clean, Target::List(list)) => &mut self.lists[list as usize].clean,
            (work, _) => self.subscribers[subscriber as usize].head(work),
        };
        links::unlink(&mut self.links, head, at);
    }

    /// Frees a link. True when its target has no watcher left.
    fn drop_link(&mut self, at: u32) -> bool {
        self.unchain(at);
        let Link { target, subscriber, .. } = self.links.remove(at as usize);
        self.held.remove(&(subscriber, target));
        match target {
            Target::Slot(slot) => {
                self.slots[slot as usize].watchers -= 1;
                let last = self.slots[slot as usize].watchers == 0;
                self.drop_slot_if_unused(slot);
                last
            }
            Target::List(list) => {
                self.lists[list as usize].watchers -= 1;
                let last = self.lists[list as usize].watchers == 0;
                self.drop_list_if_unused(list);
                last
            }
        }
    }
}

fn chain_of(target: Target) -> Chain {
    match target {
        Target::Slot(_) => Chain::Slots,
        Target::List(_) => Chain::Lists,
    }
}
