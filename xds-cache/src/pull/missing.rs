//! What a subscriber asked for and cannot have: told at once, whatever else waits (rule 158).

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::Pull;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, Target};
use crate::store::{Answer, State};
use crate::subscribers::{Debt, Names as _};

impl<V> Cache<V> {
    /// Whether a pull that defers removals would visit anything, or a pull of errors that defers those: what other types
    /// may have to wait for.
    ///
    /// O(1) when there is something; otherwise O(names to be told as removed).
    pub fn has_additions(&self, id: SubscriberId) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let subscriber = &self.subscribers[id];
        if !subscriber.has_work() {
            return false;
        }
        subscriber.owed.owes_any(Debt::Answer)
            || self.subscribers.chain(subscriber.slots).any(|link| self.is_addition(id, link))
            || self.subscribers.chain(subscriber.lists).any(|link| self.is_addition(id, link))
            || subscriber.owed.tells_missing()
            || subscriber.owed.errors().any(|name| self.breaks_nothing(id, name))
    }

    fn is_addition(&self, id: SubscriberId, link: LinkKey) -> bool {
        let of = &self.subscribers[link];
        let (cursor, sent) = (of.cursor(), of.sent());
        let owed = &self.subscribers[id].owed;
        match self.subscribers.target(link) {
            Target::Slot(at) => {
                let slot = &self.store[at];
                let missing =
                    || !sent && !owed.owes(Debt::Comparison, &slot.name) && !owed.owes(Debt::Removal, &slot.name);
                cursor < slot.seq
                    && match self.store[self.store.resolve(at)].state {
                        State::Present(_) => true,
                        State::Absent => missing(),
                        State::Varied(_) if self.is_absent_for(id, at) => missing(),
                        State::Varied(_) => true,
                        State::Unknown => false,
                    }
            }
            Target::List(list) => {
                let members = &self.store[list];
                let walk = self.subscribers.walk(link);
                let answers = members.answer != Answer::None && walk.is_some_and(|walk| !walk.answered);
                let completes = members.answer == Answer::Complete && walk.is_some_and(|walk| !walk.complete);
                answers || completes || self.store.newest_seq(list) > cursor
            }
        }
    }

    /// Tells what is missing before anything else is told as removed.
    pub(crate) fn pull_missing(
        &mut self,
        id: SubscriberId,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.subscribers[id].owed.owes_any(Debt::Missing) {
            return ControlFlow::Continue(());
        }
        self.pull_parting(id);
        let mut waiting = Vec::new();
        let mut visited = ControlFlow::Continue(());
        while visited.is_continue()
            && let Some(name) = self.subscribers[id].owed.next_missing()
        {
            if self.waits_for_error(id, &name) {
                waiting.push(name);
            } else if self.takes_members(id, &name) {
                self.subscribers[id].owed.clear(Debt::Missing, &name);
            } else if self.subscribers[id].owed.clear(Debt::Removal, &name) && self.is_gone(id, &name) {
                let held = self.take_held(id, &name);
                visited = visitor(Pull::Removed { name: &name, variants: &held });
            }
        }
        self.subscribers[id].owed.defer_missing(waiting);
        visited
    }

    /// Whether to tell that a glob is empty takes members from the subscriber that it holds, by whatever it asked for them: then
    /// that is a removal, and goes where removals go (rule 122).
    fn takes_members(&mut self, id: SubscriberId, glob: &ResourceName) -> bool {
        if !glob.is_glob() {
            return false;
        }
        let owed = &mut self.subscribers[id].owed;
        owed.expect_globs();
        owed.removals().of_glob(glob).any(|member| owed.is_leaving(member))
            || owed.brought().of_glob(glob).next().is_some()
    }

    /// What has an error is told with it.
    pub(crate) fn waits_for_error(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.subscribers[id].owed.owes(Debt::Error, name) && self.owes_error(id, name)
    }

    /// Whether to tell the error of a name takes nothing from the subscriber.
    pub(crate) fn breaks_nothing(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let subscriber = &self.subscribers[id];
        // A collection that was not pulled to its end may be what the subscriber has it of, and loses it.
        let is_pulled = subscriber.lists.is_none() && subscriber.parting.is_empty();
        is_pulled && subscriber.owed.owes(Debt::Missing, name) || self.is_there(id, name) || self.spares(id, name)
    }
}
