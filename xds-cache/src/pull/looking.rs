//! What a subscriber sees of a name, and what it has looked at.

use std::sync::Arc;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, Target};
use crate::resource::Resource;
use crate::store::View;
use crate::subscribers::{Debt, Look, Subscriber};
use crate::variant::Variant;

impl<V> Cache<V> {
    /// What a subscriber sees of a slot.
    #[inline]
    pub(crate) fn seen(&self, id: SubscriberId, at: SlotKey) -> Option<&Resource<V>> {
        self.store.select(at, self.subscribers[id].selector).map(|(_, resource)| resource)
    }

    /// The same, if a subscriber sees anything of the name in it.
    pub(crate) fn seen_by_name(&self, id: SubscriberId, name: &ResourceName) -> Option<&Resource<V>> {
        self.seen(id, self.store.slot_of(self.subscribers[id].type_key, name)?)
    }

    /// Whether it is known that there is nothing in a slot for a subscriber.
    pub(crate) fn is_absent_for(&self, id: SubscriberId, at: SlotKey) -> bool {
        self.store.is_absent_for(at, self.subscribers[id].selector)
    }

    /// Whether a name has variants, and none for a subscriber.
    pub(crate) fn lacks_all_variants(&self, id: SubscriberId, at: SlotKey) -> bool {
        self.store[at].state.varied().is_some() && self.seen(id, at).is_none()
    }

    /// Whether a collection has nothing for a subscriber.
    pub(crate) fn is_empty_for(&self, id: SubscriberId, list: ListKey) -> bool {
        self.store[list].live == 0 || !self.store.members(list).any(|at| self.seen(id, at).is_some())
    }

    /// The same, and nothing in it is unreadable.
    pub(crate) fn is_known_empty(&self, id: SubscriberId, list: ListKey) -> bool {
        self.is_empty_for(id, list) && !self.store.lacks_unreadable(list)
    }

    /// A subscriber looks at a name that has variants. What it sees, what it holds of the name, and whether it looked at
    /// that already.
    pub(crate) fn look_at(&mut self, id: SubscriberId, at: SlotKey) -> Option<(View, Vec<Arc<Variant>>, bool)> {
        let Self { store, subscribers, .. } = self;
        let Subscriber { selector, looked, .. } = &mut subscribers[id];
        let name = store[at].name.clone();
        let before = looked.get(&name).map(|look| look.of);
        let view = store.look(at, *selector, before)?;
        let look = looked.entry(&name);
        let seen = (look.of, look.seq) == (view.of, view.seq);
        (look.of, look.seq) = (view.of, view.seq);
        let held = look.held.clone();
        self.totals.overlapping += u64::from(view.chosen.is_some() && view.overlaps);
        Some((view, held, seen))
    }

    /// What a subscriber looked at of a name, as long as that has the variants that it had.
    pub(crate) fn look_of(&self, id: SubscriberId, name: &ResourceName) -> Option<&Look> {
        let Subscriber { looked, type_key, .. } = &self.subscribers[id];
        if looked.is_empty() {
            return None;
        }
        let look = looked.get(name)?;
        let varied = self.store[self.store.slot_of(*type_key, name)?].state.varied()?;
        Some(look).filter(|look| look.of == varied.since)
    }

    /// Whether a subscriber was told that there is no variant of a name for it: that the name is gone is no news then.
    pub(crate) fn knows_absent(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let Subscriber { looked, owed, .. } = &self.subscribers[id];
        !looked.is_empty() && looked.knows_absent(name) && !owed.owes(Debt::Removal, name)
    }

    /// A subscriber is told that it has nothing of a name any more. The variants that it may have held.
    pub(crate) fn take_held(&mut self, id: SubscriberId, name: &ResourceName) -> Vec<Arc<Variant>> {
        let Subscriber { looked, type_key, .. } = &mut self.subscribers[id];
        let type_key = *type_key;
        let look = if looked.is_empty() { None } else { looked.get_mut(name) };
        let Some(held) = look.map(|look| std::mem::take(&mut look.held)) else { return Vec::new() };
        if self.look_of(id, name).is_none() || !self.is_wanted(id, type_key, name) {
            self.forget_look(id, name);
        }
        held
    }

    /// A subscriber is told why it has nothing of a name: that there is nothing is news once that is over.
    pub(crate) fn unlook(&mut self, id: SubscriberId, name: &ResourceName) {
        let looked = &mut self.subscribers[id].looked;
        if !looked.is_empty()
            && let Some(look) = looked.get_mut(name)
        {
            look.seq = 0;
        }
    }

    /// A subscriber is sent the resource of a name that has no variants: it holds no variant any more.
    pub(crate) fn replace_held(&mut self, id: SubscriberId, name: &ResourceName) -> Vec<Arc<Variant>> {
        let look = self.subscribers[id].looked.remove(name);
        let mut held = look.map_or_else(Vec::new, |look| look.held);
        held.retain(|held| !held.is_plain());
        held
    }

    /// What a link is to is to be sent again, whatever was looked at. Of the members of a collection, that there is nothing for
    /// the subscriber is no part of what is sent.
    #[inline]
    pub(crate) fn look_anew(&mut self, link: LinkKey) {
        let subscriber = self.subscribers[link].subscriber;
        if self.subscribers[subscriber].looked.is_empty() {
            return;
        }
        let target = self.subscribers.target(link);
        let names = self.looked_at(self.subscribers.id_of(subscriber), target);
        let looked = &mut self.subscribers[subscriber].looked;
        for name in names {
            if let Some(look) = looked.get_mut(&name)
                && (matches!(target, Target::Slot(_)) || !look.held.is_empty())
            {
                look.seq = 0;
            }
        }
    }

    /// The names of what a subscriber looked at by a target.
    pub(crate) fn looked_at(&self, id: SubscriberId, target: Target) -> Vec<ResourceName> {
        let looked = &self.subscribers[id].looked;
        match target {
            _ if looked.is_empty() => Vec::new(),
            Target::Slot(at) => vec![self.store[at].name.clone()],
            Target::List(list) => self.names_within(looked, list),
        }
    }

    /// A subscriber leaves a target. Of variants that it did not look at, only that says what it may hold, which something else
    /// of its may cover.
    pub(crate) fn look_back(&mut self, id: SubscriberId, link: LinkKey) {
        if self.subscribers[id].links.as_slice().is_empty() {
            return;
        }
        let (target, sent) = (self.subscribers.target(link), self.subscribers[link].sent());
        let is_new = |at: &SlotKey| {
            let slot = &self.store[*at];
            slot.state.varied().is_some() && self.subscribers[id].looked.get(&slot.name).is_none()
        };
        let slots: Vec<_> = match target {
            Target::Slot(at) => Some(at).filter(is_new).into_iter().collect(),
            Target::List(list) => self.store.members(list).filter(is_new).collect(),
        };
        for at in slots {
            let name = self.store[at].name.clone();
            let Some((view, ..)) = self.look_at(id, at) else { continue };
            let held = self.may_hold_variants(id, at, &name, sent, &view);
            if held.is_empty() {
                self.forget_look(id, &name);
            } else {
                let look = self.subscribers[id].looked.entry(&name);
                (look.held, look.seq) = (held, 0);
            }
        }
    }

    /// What a subscriber may not want any more: where it does not, and is not to be told of it, it looks at it no more.
    pub(crate) fn look_away(&mut self, id: SubscriberId, names: Vec<ResourceName>) {
        for name in names {
            let Subscriber { owed, type_key, .. } = &self.subscribers[id];
            if !owed.owes(Debt::Removal, &name) && !self.is_wanted(id, *type_key, &name) {
                self.forget_look(id, &name);
            }
        }
    }

    /// What a subscriber knows to be absent needs no look any more, once there are no variants of it.
    pub(crate) fn forget_gone_look(&mut self, subscriber: SubscriberKey, name: &ResourceName) {
        let Subscriber { looked, type_key, .. } = &mut self.subscribers[subscriber];
        let is_varied = |at: SlotKey| self.store[at].state.varied().is_some();
        if looked.knows_absent(name) && !self.store.slot_of(*type_key, name).is_some_and(is_varied) {
            looked.remove(name);
        }
    }

    pub(crate) fn forget_look(&mut self, id: SubscriberId, name: &ResourceName) {
        let Self { store, subscribers, .. } = self;
        let Subscriber { looked, selector, type_key, .. } = &mut subscribers[id];
        if let Some(look) = looked.remove(name)
            && let Some(at) = store.slot_of(*type_key, name)
        {
            store.look_away(at, *selector, look.of);
        }
    }
}
