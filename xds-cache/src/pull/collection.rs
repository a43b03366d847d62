//! Walking a collection, and what its answer says.

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::{Pull, Pulled};
use crate::id::SubscriberId;
use crate::keys::{LinkKey, ListKey, SlotKey, Target, WalkKey};
use crate::moments::Seq;
use crate::store::Answer;
use crate::subscribers::{Chain, Debt, Link, Subscriber, Walk};

impl<V> Cache<V> {
    /// What the next pull visits is the rest of this answer.
    #[inline(never)]
    pub(crate) fn has_begun(&mut self, id: SubscriberId) {
        let waiting: Vec<_> = self.subscribers.chain(self.subscribers[id].lists).collect();
        for link in waiting {
            if let Some((list, walk)) = self.subscribers.to_list(link) {
                self.subscribers[walk].spoken |= self.store[list].answer != Answer::None;
            }
        }
    }

    /// The next collection to walk: the wildcard last, because it passes over what the others sent.
    pub(crate) fn next_list(&self, id: SubscriberId) -> Option<LinkKey> {
        let head = self.subscribers[id].lists;
        let first = self.subscribers.oldest(head);
        if first == head {
            return first;
        }
        let Link { prev: second, .. } = self.subscribers[first?];
        let is_wildcard = self.subscribers.to_list(first?).is_some_and(|(list, _)| self.store[list].glob.is_none());
        if is_wildcard { second } else { first }
    }

    /// Visits what changed of a collection, and takes what is to be said of it.
    pub(crate) fn pull_list(
        &mut self,
        id: SubscriberId,
        link: LinkKey,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let of = &self.subscribers[link];
        let (cursor, Some(walk)) = (of.cursor(), of.walk()) else { return ControlFlow::Continue(()) };
        let Walk { list, at: hint, answered, .. } = self.subscribers[walk];
        let mut next = self.store.first_after(list, cursor, hint);
        let Subscriber { links, owed, .. } = &self.subscribers[id];
        let (several, brought) = (links.may_be_several(), owed.owes_any(Debt::Comparison));
        let mut visited = ControlFlow::Continue(());
        while let Some(at) = next {
            let seq = self.store[at].seq;
            self.subscribers[link].set_cursor(seq);
            self.subscribers[walk].at = Some(at);
            let already = several && self.narrower(id, at, list).any(|other| self.subscribers[other].cursor() >= seq);
            let mut put = |this: &mut Self| {
                if answered { this.put(id, at, visitor) } else { this.put_first(id, at, walk, visitor) }
            };
            let mut put = if already { ControlFlow::Continue(()) } else { put(self) };
            next = self.store.after(list, at);
            if next.is_none() {
                // That was the last: there is no more to say, which others may wait for.
                visited = put;
                break;
            }
            if put.is_continue() {
                put = self.look(pulled);
            }
            if put.is_break() {
                // The others come first now.
                self.rechain(link, Target::List(list), Chain::Work);
                return put;
            }
        }
        if self.end_walk(id, link, (list, walk), brought, pulled).is_break() {
            self.rechain(link, Target::List(list), Chain::Work);
            return ControlFlow::Break(());
        }
        self.rechain(link, Target::List(list), Chain::Clean);
        visited
    }

    /// Every member was visited: takes what the answer of the collection says beside that. `brought`: the subscriber had
    /// brought something along.
    #[inline(always)]
    fn end_walk(
        &mut self,
        id: SubscriberId,
        link: LinkKey,
        (list, walk): (ListKey, WalkKey),
        brought: bool,
        pulled: &mut Pulled,
    ) -> ControlFlow<()> {
        let Walk { answered, complete, gone_cursor, .. } = self.subscribers[walk];
        let answer = self.store[list].answer;
        // What is unreadable may be all there is of it, or may be what went.
        if answer == Answer::Complete && !complete && !self.store.lacks_unreadable(list) {
            self.complete_walk(id, link, list, walk);
        }
        if brought && answer == Answer::Complete {
            self.remove_resumed(id, link, list, pulled)?;
        } else if brought {
            self.subscribers[id].owed.take_sweep(link);
        }
        if answer != Answer::None && !answered {
            let walk = &mut self.subscribers[walk];
            walk.answered = true;
            pulled.answered = true;
            pulled.empty |= !walk.spoken;
        }
        if self.note_errors_within(link, list) {
            // One cursor is for both.
            self.pull_tombstones(link);
        } else if self.store[list].newest_gone() > gone_cursor {
            self.subscribers[id].parting.insert(link);
        }
        ControlFlow::Continue(())
    }

    /// Tells what a complete answer says: that there is nothing, and what is gone.
    #[inline(never)]
    fn complete_walk(&mut self, id: SubscriberId, link: LinkKey, list: ListKey, walk: WalkKey) {
        let members = &self.store[list];
        let type_key = members.type_key;
        // What went before it came, it may have missed (rule 100): but not of what it asked for by name.
        let since = self.subscribers[walk].since;
        let before = members.gone_before(since).into_iter();
        // That it is empty is said below.
        let missed = before.filter(|(name, gone)| {
            let told = self.subscribers[id].owed.owes(Debt::Concluded, name);
            let itself = name.is_glob() || self.is_asked_for(id, type_key, name);
            !told && !itself && !self.saw_go(id, link, name, *gone)
        });
        let missed: Vec<_> = missed.map(|(name, _)| name.clone()).collect();
        let empty = members.glob.clone().filter(|_| self.is_empty_for(id, list));
        self.subscribers[walk].conclude();
        let owed = &mut self.subscribers[id].owed;
        empty.into_iter().for_each(|glob| owed.empty(glob));
        missed.into_iter().for_each(|name| owed.missed(name));
    }

    /// The same as [`put`](Self::put), of a collection that was not answered.
    #[inline(never)]
    fn put_first(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        walk: WalkKey,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut spoken = false;
        let put = self.put(id, at, &mut |pull| {
            spoken = true;
            visitor(pull)
        });
        self.subscribers[walk].spoken |= spoken;
        put
    }

    /// Whether a name went while another collection of the subscriber had it, and that has told so.
    fn saw_go(&self, id: SubscriberId, link: LinkKey, name: &ResourceName, gone: Seq) -> bool {
        let type_key = self.subscribers[id].type_key;
        self.covering(id, type_key, name).filter(|other| *other != link).any(|other| {
            self.subscribers.walk(other).is_some_and(|walk| walk.opened < gone && gone <= walk.gone_cursor)
        })
    }

    /// What a subscriber brought along of a collection that is answered now, and that is not in it, is gone.
    #[inline(never)]
    fn remove_resumed(
        &mut self,
        id: SubscriberId,
        link: LinkKey,
        list: ListKey,
        pulled: &mut Pulled,
    ) -> ControlFlow<()> {
        let type_key = self.subscribers[id].type_key;
        let begun = self.subscribers[id].owed.take_sweep(link);
        let mut names = begun.unwrap_or_else(|| self.names_within(self.subscribers[id].owed.brought(), list));
        while let Some(name) = names.pop() {
            if self.look(pulled).is_break() {
                names.push(name);
                self.subscribers[id].owed.leave_sweep(link, names);
                return ControlFlow::Break(());
            }
            let error = self.store[type_key].errors.get(&name);
            let spared = error.is_some_and(|failure| failure.error.is_transient());
            if spared || self.is_asked_for(id, type_key, &name) {
                continue;
            }
            let slot = self.store.slot_of(type_key, &name);
            let there = slot.is_some_and(|at| self.seen(id, at).is_some());
            self.subscribers[id].owed.conclude(name, there);
        }
        self.subscribers.has_compared(id);
        ControlFlow::Continue(())
    }
}
