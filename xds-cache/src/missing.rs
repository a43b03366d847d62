//! What a subscriber asked for and cannot have: told at once, whatever else waits (rule 158).

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::links::{Answer, Link, NONE, State, Target, Walk};
use crate::pull::Pull;
use crate::subscribe::{Subscriber, SubscriberId};

impl<V> Cache<V> {
    /// Whether a pull that defers removals would visit anything, or a pull of errors that defers those: what other types
    /// may have to wait for.
    ///
    /// O(1) when there is something; otherwise O(names to be told as removed).
    pub fn has_additions(&self, id: SubscriberId) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let subscriber = &self.subscribers[id.index()];
        if !subscriber.has_work() {
            return false;
        }
        !subscriber.forced.is_empty()
            || self.chain(subscriber.slots).any(|link| self.is_addition(id, link))
            || self.chain(subscriber.lists).any(|link| self.is_addition(id, link))
            || subscriber.missing.iter().any(|name| subscriber.leaving.contains(name))
            || subscriber.failing.iter().any(|name| self.breaks_nothing(id, name))
    }

    pub(crate) fn chain(&self, head: u32) -> impl Iterator<Item = u32> {
        let link = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(link(head), move |at| link(self.links[*at as usize].next))
    }

    fn is_addition(&self, id: SubscriberId, link: u32) -> bool {
        let Link { target, cursor, walk, sent, .. } = self.links[link as usize];
        let Subscriber { resumed, leaving, .. } = &self.subscribers[id.index()];
        match target {
            Target::Slot(at) => {
                let slot = &self.slots[at as usize];
                let missing = || !sent && !resumed.contains(&slot.name) && !leaving.contains(&slot.name);
                cursor < slot.seq
                    && match self.slots[self.resolve(at) as usize].state {
                        State::Present(_) => true,
                        State::Absent => missing(),
                        State::Unknown => false,
                    }
            }
            Target::List(list) => {
                let members = &self.lists[list as usize];
                let Walk { answered, complete, .. } = self.walks[walk as usize];
                let answers = members.answer != Answer::None && !answered;
                let completes = members.answer == Answer::Complete && !complete;
                answers || completes || members.newest_seq(&self.slots) > cursor
            }
        }
    }

    /// Tells what is missing before anything else is told as removed.
    pub(crate) fn pull_missing(
        &mut self,
        id: SubscriberId,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.subscribers[id.index()].missing.is_empty() {
            return ControlFlow::Continue(());
        }
        self.pull_parting(id);
        let mut waiting = Vec::new();
        let mut visited = ControlFlow::Continue(());
        while visited.is_continue()
            && let Some(name) = self.subscribers[id.index()].missing.pop_first()
        {
            if self.waits_for_error(id, &name) {
                waiting.push(name);
            } else if self.subscribers[id.index()].leaving.remove(&name) && self.is_gone(id, &name) {
                visited = visitor(Pull::Removed { name: &name });
            }
        }
        self.subscribers[id.index()].missing.extend(waiting);
        visited
    }

    /// What has an error is told with it.
    pub(crate) fn waits_for_error(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.subscribers[id.index()].failing.contains(name) && self.owes_error(id, name)
    }

    /// Whether to tell the error of a name takes nothing from the subscriber.
    pub(crate) fn breaks_nothing(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let missing = &self.subscribers[id.index()].missing;
        missing.contains(name) || self.is_there(id, name) || self.spares(id, name)
    }
}
