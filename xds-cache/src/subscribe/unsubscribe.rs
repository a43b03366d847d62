//! What a subscriber is not interested in any more.

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, Target};
use crate::store::{Slot, State};
use crate::subscribers::{Debt, Link, Subscriber};

impl<V> Cache<V> {
    /// Ends an interest. True when nobody is interested in it any more.
    ///
    /// A name that a wildcard or glob of the same subscriber still covers is answered once more
    /// (rules 52, 53). To the client its wildcard covers every name: one that is not in it is told as removed.
    pub fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let type_key = self.subscribers[id].type_key;
        let Some(target) = self.store.existing_target(type_key, interest) else { return false };
        let Some(at) = self.subscribers.link_of(id, target) else { return false };
        self.subscribers.take_link(id, at);
        self.look_back(id, at);
        let names = match target {
            Target::Slot(slot) => self.names_of(at, slot),
            Target::List(_) => BTreeSet::new(),
        };
        if let Target::Slot(_) = target {
            self.lapse_unclaimed(id);
        }
        // Another collection of the subscriber may cover what they name, and have none of its own.
        self.pull_tombstones(at);
        self.hand_over(at);
        let wildcard = Target::List(self.store[type_key].wildcard);
        let keeps = target != wildcard && self.subscribers.holds(id, wildcard);
        let pending = self.left_within(id, target, keeps);
        let in_full_state = self.in_full_state_by(id, at);
        let looked = self.looked_at(id, target);
        let last = self.drop_link(at);
        self.leave_in_full_state(id, in_full_state);
        // Rule 54: what it held of what it left, it holds no more.
        for name in names {
            let by_alias = name.as_str() != interest.as_str();
            self.leave_name(id, name, by_alias, keeps);
        }
        if let Target::List(list) = target {
            self.send_unsent(id, list);
        }
        for name in pending {
            self.leave_pending(id, name, keeps);
        }
        self.disclaim_anew(id);
        self.look_away(id, looked);
        self.make_room();
        last
    }

    /// Whether a name that is left is an alias by which the subscriber holds what it brought along, only it can tell.
    fn lapse_unclaimed(&mut self, id: SubscriberId) {
        let Subscriber { owed, claims, .. } = &mut self.subscribers[id];
        claims.lapse().for_each(|name| _ = owed.lapse(name));
    }

    /// What is to be looked at when a collection is left: what is still to be said of its members, and if the wildcard
    /// `keeps` them, all that are there or went.
    fn left_within(&mut self, id: SubscriberId, target: Target, keeps: bool) -> Vec<ResourceName> {
        let Target::List(list) = target else { return Vec::new() };
        self.subscribers[id].owed.expect_globs();
        let mut pending = self.pending_within(id, target);
        if keeps {
            let members = self.store.members(list);
            pending.extend(members.map(|at| self.store[at].name.clone()));
            pending.extend(self.store[list].gone.iter().map(|gone| gone.name.clone()));
        }
        pending
    }

    /// One of the names is left that a link to a name was about.
    fn leave_name(&mut self, id: SubscriberId, name: ResourceName, by_alias: bool, keeps: bool) {
        // Whether it knows what it brought along by this alias, only it can tell.
        let owed = &mut self.subscribers[id].owed;
        let unsent = owed.clear(Debt::Unsent, &name);
        let brought = unsent || owed.owes(Debt::Comparison, &name) || owed.owes(Debt::Removal, &name);
        if unsent {
            self.restart_links_to(id, &name);
        }
        self.leave(id, name, keeps || brought && by_alias);
    }

    /// Something was still to be said of a name whose collection is left.
    fn leave_pending(&mut self, id: SubscriberId, name: ResourceName, keeps: bool) {
        let type_key = self.subscribers[id].type_key;
        let by_alias = !self.is_wanted_itself(id, type_key, &name);
        let wanted = self.is_wanted(id, type_key, &name);
        let waits = self.covered(id, type_key, &name) && !self.is_answered(id, type_key, &name);
        if waits {
            self.wait_with(id, name.clone());
        }
        let owed = &mut self.subscribers[id].owed;
        if by_alias {
            // It may not know yet that it wants this by an alias.
            owed.lapse(&name);
        }
        if !wanted {
            owed.unwanted(&name, keeps);
            self.drop_brought(id, &name);
        }
    }

    /// What the subscriber brought along, and knows to be of the collection that it left: whether it knows an alias too,
    /// by which it wants it still, only it can tell.
    fn send_unsent(&mut self, id: SubscriberId, list: ListKey) {
        let type_key = self.subscribers[id].type_key;
        let is_left = |name: &&ResourceName| {
            self.store.collections_of(type_key, name).contains(&Some(list))
                && !self.is_wanted_itself(id, type_key, name)
        };
        let left: Vec<_> = self.subscribers[id].owed.unsent().filter(is_left).cloned().collect();
        left.iter().for_each(|name| _ = self.subscribers[id].owed.clear(Debt::Unsent, name));
        left.iter().for_each(|name| self.restart_links_to(id, name));
    }

    /// What a collection that is left has sent counts as sent by the others that may cover it: that it is gone is for
    /// them to tell.
    fn hand_over(&mut self, link: LinkKey) {
        let Link { subscriber, .. } = self.subscribers[link];
        let Some((list, walk)) = self.subscribers.to_list(link) else { return };
        let sent = self.subscribers[link].cursor().max(self.subscribers[walk].sent);
        let id = self.subscribers.id_of(subscriber);
        let wildcard = Target::List(self.store[self.store[list].type_key].wildcard);
        // What has a glob's members beside it is their names, and the wildcard.
        let (others, wildcard) = match self.store[list].glob {
            Some(_) => (self.links_within(id, list), self.subscribers.link_of(id, wildcard)),
            None => (self.subscribers[id].links.as_slice().to_vec(), None),
        };
        for other in others.into_iter().chain(wildcard) {
            let target = self.subscribers.target(other);
            if let Some(walk) = self.subscribers[other].walk() {
                let walk = &mut self.subscribers[walk];
                walk.sent = walk.sent.max(sent);
            } else if let Target::Slot(at) = target
                && self.is_within(target, list)
            {
                let Slot { born, ref state, ref name, .. } = self.store[self.store.resolve(at)];
                let has_sent = match state {
                    State::Varied(_) => self.look_of(id, name).is_some_and(|look| !look.held.is_empty()),
                    state => state.is_present() && born <= sent,
                };
                if has_sent {
                    self.subscribers[other].set_sent(true);
                }
            }
        }
    }

    /// The subscriber left a name, and may have dropped it though a collection covers it (rules 52, 53). By another
    /// name of the resource it keeps it: it was told of its aliases.
    fn leave(&mut self, id: SubscriberId, name: ResourceName, keeps: bool) {
        let type_key = self.subscribers[id].type_key;
        let other_name = self.is_asked_for(id, type_key, &name);
        let covered = self.covered(id, type_key, &name);
        if other_name {
            // That is about to be sent for the other name, unless this stops being one.
            self.subscribers[id].owed.lapse(&name);
        } else {
            self.drop_brought(id, &name);
        }
        let owed = &mut self.subscribers[id].owed;
        if keeps && !other_name && !covered {
            owed.gone(name);
            return;
        }
        if self.store[type_key].had_aliases && !other_name && !covered && owed.owes(Debt::Removal, &name) {
            // By an alias that it had, it may not have left it.
            return;
        }
        let can_have_it = !owed.clear(Debt::Missing, &name);
        // Whether it is gone is for what else covers it to say now, and until then the subscriber may hold what it could have:
        // but the other name has said so, if it was looked at.
        if !other_name {
            if !covered || !can_have_it {
                owed.clear(Debt::Removal, &name);
            } else if !self.is_answered(id, type_key, &name) {
                self.wait_with(id, name.clone());
            }
        }
        // Not while it is asked for by another name.
        if covered {
            self.subscribers[id].owed.answer(name);
        }
    }

    /// Frees a link. True when its target has no watcher left.
    pub(crate) fn drop_link(&mut self, at: LinkKey) -> bool {
        let target = self.subscribers.target(at);
        let watchers = self.store.watchers_mut(target);
        let walk = self.subscribers.unlink(at, watchers);
        let last = watchers.count == 0;
        match target {
            Target::Slot(slot) => {
                if last {
                    self.store.renew(slot);
                }
                self.store.drop_slot_if_unused(slot);
            }
            Target::List(list) => {
                self.store.pass(list, walk.map(|walk| walk.gone_cursor), None);
                if last {
                    if self.store[list].glob.is_none() {
                        self.trim(list, |_| true);
                    }
                    self.store.renew_list(list);
                }
                self.store.drop_list_if_unused(list);
            }
        }
        last
    }
}
