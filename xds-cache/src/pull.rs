//! The change set of one subscriber: visited by a pull, never stored.

mod alike;
mod by_alias;
mod collection;
mod elsewhere;
mod errors;
mod looking;
mod missing;
mod removals;
mod varied;
mod waiting;
mod within;

use std::ops::ControlFlow;

pub use alike::Place;
use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::{Pull, Pulled, Removals};
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey, Target};
use crate::store::State;
use crate::subscribers::{Chain, Debt};

impl<V> Cache<V> {
    /// Visits what changed for a subscriber since its last pull, additions first, newest state only.
    /// A visitor that returns `Break` has taken that entry and stops before the next.
    ///
    /// Errors are visited by [`pull_errors`](Self::pull_errors), when this has nothing to visit. A name that is gone
    /// and has one is left to it.
    ///
    /// O(changes), whatever the size of the cache; and where most of what changed is not to be visited, it
    /// [pauses](Pulled::paused).
    pub fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> Pulled {
        let mut pulled = Pulled::default();
        if !self.is_open(id) {
            return pulled;
        }
        let subscriber = &self.subscribers[id];
        pulled.refused = subscriber.collections > 0 && self.store[subscriber.type_key].refused > 0;
        // Where nothing changed, what it may not have is as it was.
        if !subscriber.claims.is_empty() && subscriber.has_work() && !self.disclaim(id) {
            (pulled.more, pulled.paused) = (true, true);
            return pulled;
        }
        let visits = self.visits;
        let mut visited = self.pull_additions(id, &mut pulled, visitor);
        if visited.is_break() {
            // Who pauses before there is anything to say has not begun.
            if self.visits > visits {
                self.has_begun(id);
            }
        } else if self.subscribers[id].has_removals() {
            visited = match removals {
                Removals::Include => self.pull_removals(id, |_| false, &mut pulled, visitor),
                Removals::Defer => self.pull_missing(id, visitor),
            };
        }
        pulled.more = visited.is_break();
        pulled
    }

    /// Whether a pull would do anything.
    pub fn has_work(&self, id: SubscriberId) -> bool {
        self.is_open(id) && self.subscribers[id].has_work()
    }

    fn pull_additions(
        &mut self,
        id: SubscriberId,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.looks = self.visits;
        while let Some(link) = self.subscribers.oldest(self.subscribers[id].slots) {
            self.look(pulled)?;
            self.pull_slot(id, link, visitor)?;
        }
        // What is asked for by another name is sent for that by now.
        while self.subscribers[id].owed.owes_any(Debt::Answer) {
            self.look(pulled)?;
            let name = self.subscribers[id].owed.next_answer();
            name.map_or(ControlFlow::Continue(()), |name| self.pull_forced(id, name, visitor))?;
        }
        while let Some(link) = self.next_list(id) {
            self.pull_list(id, link, pulled, visitor)?;
            if self.subscribers[id].lists.is_some() {
                self.look(pulled)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// One more look, unless too many were not visits.
    fn look(&mut self, pulled: &mut Pulled) -> ControlFlow<()> {
        if self.looks.saturating_sub(self.visits) >= self.store.options.looks as u64 {
            pulled.paused = true;
            return ControlFlow::Break(());
        }
        self.looks += 1;
        ControlFlow::Continue(())
    }

    /// A name that the subscriber left, and that a collection of its still covers, is answered once more.
    fn pull_forced(
        &mut self,
        id: SubscriberId,
        name: ResourceName,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let type_key = self.subscribers[id].type_key;
        if self.is_asked_for(id, type_key, &name) {
            return ControlFlow::Continue(());
        }
        let Some(narrowest) = self.covering(id, type_key, &name).next() else { return ControlFlow::Continue(()) };
        let slot = self.store.slot_of(type_key, &name);
        if let Some(at) = slot.filter(|at| self.store[*at].state.varied().is_some() && self.seen(id, *at).is_some()) {
            if let Some(look) = self.subscribers[id].looked.get_mut(&name) {
                look.seq = 0;
            }
            return self.pull_varied(id, at, None, visitor);
        }
        if let Some(slot) = slot.map(|at| &self.store[at])
            && let Some(resource) = slot.state.resource()
        {
            // Otherwise the collection is about to send it.
            let sent = self.subscribers[narrowest].cursor() >= slot.seq;
            if sent {
                if self.owes_error(id, &name) {
                    self.subscribers[id].owed.fail(name.clone());
                }
                self.visits += 1;
                return visitor(Pull::put(&name, resource));
            }
            // If it goes before that, the collection does not know that the name was sent.
            self.subscribers[id].owed.gone(name);
            return ControlFlow::Continue(());
        }
        let known = self.is_answered(id, type_key, &name);
        let subscriber = &mut self.subscribers[id];
        if known {
            subscriber.owed.gone(name);
        } else {
            self.subscribers.bring(id, name, None);
        }
        ControlFlow::Continue(())
    }

    pub(crate) fn pull_slot(
        &mut self,
        id: SubscriberId,
        link: LinkKey,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Target::Slot(at) = self.subscribers.target(link) else { return ControlFlow::Continue(()) };
        let seq = self.store[at].seq;
        let passed = self.subscribers[link].cursor();
        self.note_error(link, at);
        // It may have passed an error that is newer than the state.
        let of = &mut self.subscribers[link];
        of.set_cursor(seq.max(of.cursor()));
        self.rechain(link, Target::Slot(at), Chain::Clean);
        if passed >= seq {
            return ControlFlow::Continue(());
        }
        let sends = if self.has_aliases(link) { self.send_by_alias(link, at) } else { at };
        match self.store[sends].state {
            State::Present(_) => {
                self.subscribers[link].set_sent(true);
                self.put(id, sends, visitor)
            }
            State::Varied(_) => self.pull_varied(id, sends, Some((link, passed)), visitor),
            State::Absent => {
                let name = self.store[at].name.clone();
                if self.knows_absent(id, &name) {
                    self.forget_look(id, &name);
                    return ControlFlow::Continue(());
                }
                let sent = self.subscribers[link].take_sent();
                self.subscribers[id].owed.absent(name, sent);
                ControlFlow::Continue(())
            }
            State::Unknown => ControlFlow::Continue(()),
        }
    }

    fn put(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.subscribers[id].owed.minds_additions() && self.is_held(id, at) {
            return ControlFlow::Continue(());
        }
        if !self.subscribers[id].looked.is_empty() {
            return self.put_over(id, at, visitor);
        }
        let slot = &self.store[at];
        let resource = match &slot.state {
            State::Present(resource) => resource,
            State::Varied(_) => return self.pull_varied(id, at, None, visitor),
            State::Absent | State::Unknown => return ControlFlow::Continue(()),
        };
        // To its client, a resource that comes ends the error of its name: one that stays beside it is told again.
        if self.owes_error(id, &slot.name) {
            self.subscribers[id].owed.fail(slot.name.clone());
        }
        self.visits += 1;
        visitor(Pull::put(&slot.name, resource))
    }

    /// Whether the subscriber brought along what is there; what else was noted of it is over with this.
    #[inline(never)]
    fn is_held(&mut self, id: SubscriberId, at: SlotKey) -> bool {
        let slot = &self.store[at];
        let Some(resource) = slot.state.resource() else { return false };
        let owed = &mut self.subscribers[id].owed;
        let brought = owed.came(&slot.name);
        let compared = brought.is_some();
        let held = brought.flatten();
        let is_held = held.as_ref().is_some_and(|held| *held == resource.version);
        let held = held.filter(|held| !is_held && !held.as_str().is_empty() && !held.wants_again(&resource.version));
        if let Some(version) = held.filter(|_| self.store.spares(at)) {
            // Of two versions a stale one may be the older: it is compared when the origin has said which counts.
            let name = self.store[at].name.clone();
            self.subscribers.bring(id, name, Some(version));
            return true;
        }
        let slot = &self.store[at];
        let owed = &mut self.subscribers[id].owed;
        let aliases = self.store[slot.type_key].aliases.of(&slot.name);
        if !is_held {
            // With this it sees that what it held under an alias itself is over.
            aliases.iter().for_each(|alias| _ = owed.clear(Debt::Comparison, alias));
        } else if !aliases.is_empty() {
            owed.spare(slot.name.clone());
        }
        if compared {
            self.subscribers.has_compared(id);
        }
        is_held
    }
}
