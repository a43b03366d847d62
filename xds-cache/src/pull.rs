//! The change set of one subscriber: visited by a pull, never stored.

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, SlotKey, Target, WalkKey};
use crate::links::{Answer, Chain, Link, Seq, State, Walk};
use crate::resource::Resource;
use crate::subscribe::Subscriber;

/// One entry of a change set.
#[derive(Debug)]
#[non_exhaustive]
pub enum Pull<'a, V> {
    /// A resource the subscriber has not been sent at this version.
    Put {
        /// Its name.
        name: &'a ResourceName,
        /// The resource.
        resource: &'a Resource<V>,
    },
    /// A name that is gone, or that never was; or a glob without members (rule 99).
    Removed {
        /// The name.
        name: &'a ResourceName,
    },
}

/// Whether a pull visits removals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removals {
    /// Once every addition is visited (rule 134).
    Include,
    /// They wait for a later pull: other types go first (rule 122). Not those of what the subscriber cannot have (rule
    /// 158): a name that was not there when it first asked for it, and that a glob is empty.
    Defer,
}

/// What a pull left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pulled {
    /// The visitor stopped it, or it has paused: there is more.
    pub more: bool,
    /// It has looked at [many](crate::Options::looks) names of which there is nothing to visit, and lets others have their
    /// turn: another pull goes on, whether this one visited anything or not. What is to come after it has to wait for that.
    pub paused: bool,
    /// A wildcard or glob was answered for the first time.
    pub answered: bool,
    /// And there was nothing to visit of it: an empty change set is owed (rule 86).
    pub empty: bool,
}

/// What a [`visit`](Cache::visit) could not visit, because it was not answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// Names.
    pub names: usize,
    /// Globs, and the wildcard, of which nothing came.
    pub collections: usize,
    /// Globs, and the wildcard, of which something came, and more may be there.
    pub incomplete: usize,
    /// Of the names, those that the subscriber may have been sent before: a cache has what it sent, but what is asked for
    /// anew for one subscriber is not there meanwhile.
    pub held: usize,
}

impl Unanswered {
    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Self::default()
    }

    /// All together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            names: self.names + other.names,
            collections: self.collections + other.collections,
            incomplete: self.incomplete + other.incomplete,
            held: self.held + other.held,
        }
    }
}

impl Pulled {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            more: self.more || other.more,
            paused: self.paused || other.paused,
            answered: self.answered || other.answered,
            empty: self.empty || other.empty,
        }
    }
}

/// How many names a subscriber is known to have been told of as gone before anybody said so. Of more it may be told again.
const MAX_CONCLUDED: usize = 1000;

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
        let subscriber = &self.subscribers[id.key()];
        // Where nothing changed, what it may not have is as it was.
        if !subscriber.unclaimed.is_empty() && subscriber.has_work() && !self.disclaim(id) {
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
        } else if self.subscribers[id.key()].has_removals() {
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
        self.is_open(id) && self.subscribers[id.key()].has_work()
    }

    /// Visits everything a subscriber is interested in, each name once: the full state of a SotW response.
    pub fn visit(&self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<V>)) -> Unanswered {
        let mut unanswered = Unanswered::default();
        if !self.is_open(id) {
            return unanswered;
        }
        let subscriber = &self.subscribers[id.key()];
        for link in &subscriber.links {
            match self.links[*link].target {
                Target::Slot(at) => {
                    let sends = self.resolve(at);
                    let slot = &self.slots[sends];
                    match &slot.state {
                        // Once, however many of its names were asked for.
                        State::Present(resource) if self.links_to(id, sends).next() == Some(*link) => {
                            visitor(&slot.name, resource);
                        }
                        State::Unknown => unanswered.names += 1,
                        State::Present(_) | State::Absent => {}
                    }
                }
                Target::List(list) => {
                    let members = &self.lists[list];
                    match members.answer {
                        Answer::None => unanswered.collections += 1,
                        Answer::Begun | Answer::Stale => unanswered.incomplete += 1,
                        Answer::Complete => {}
                    }
                    for at in members.members(&self.slots) {
                        let slot = &self.slots[at];
                        if let (Some(resource), None) = (slot.state.resource(), self.narrower(id, at, list).next()) {
                            visitor(&slot.name, resource);
                        }
                    }
                }
            }
        }
        unanswered
    }

    fn pull_additions(
        &mut self,
        id: SubscriberId,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.looks = self.visits;
        while let Some(link) = self.oldest(self.subscribers[id.key()].slots) {
            self.look(pulled)?;
            self.pull_slot(id, link, visitor)?;
        }
        // What is asked for by another name is sent for that by now.
        while !self.subscribers[id.key()].forced.is_empty() {
            self.look(pulled)?;
            let name = self.subscribers[id.key()].forced.pop_first();
            name.map_or(ControlFlow::Continue(()), |name| self.pull_forced(id, name, visitor))?;
        }
        while let Some(link) = self.next_list(id) {
            self.pull_list(id, link, pulled, visitor)?;
            if self.subscribers[id.key()].lists.is_some() {
                self.look(pulled)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// One more look, unless too many were not visits.
    fn look(&mut self, pulled: &mut Pulled) -> ControlFlow<()> {
        if self.looks.saturating_sub(self.visits) >= self.options.looks as u64 {
            pulled.paused = true;
            return ControlFlow::Break(());
        }
        self.looks += 1;
        ControlFlow::Continue(())
    }

    /// What the next pull visits is the rest of this answer.
    #[inline(never)]
    fn has_begun(&mut self, id: SubscriberId) {
        let waiting: Vec<_> = self.chain(self.subscribers[id.key()].lists).collect();
        for link in waiting {
            if let Some((list, walk)) = self.links[link].to_list() {
                self.walks[walk].spoken |= self.lists[list].answer != Answer::None;
            }
        }
    }

    /// What has waited on a chain for longest: where the visitor takes a little at a time, what changes all the time does
    /// not hold back what changed once.
    fn oldest(&self, head: Option<LinkKey>) -> Option<LinkKey> {
        self.links[head?].prev
    }

    /// A name that the subscriber left, and that a collection of its still covers, is answered once more.
    fn pull_forced(
        &mut self,
        id: SubscriberId,
        name: ResourceName,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let type_key = self.subscribers[id.key()].type_key;
        if self.is_asked_for(id, type_key, &name) {
            return ControlFlow::Continue(());
        }
        let Some(narrowest) = self.covering(id, type_key, &name).next() else { return ControlFlow::Continue(()) };
        let slot = self.slot_of(type_key, &name).map(|at| &self.slots[at]);
        if let Some(slot) = slot
            && let Some(resource) = slot.state.resource()
        {
            // Otherwise the collection is about to send it.
            let sent = self.links[narrowest].cursor >= slot.seq;
            if sent {
                if self.owes_error(id, &name) {
                    self.subscribers[id.key()].failing.insert(name.clone());
                }
                self.visits += 1;
                return visitor(Pull::Put { name: &name, resource });
            }
            // If it goes before that, the collection does not know that the name was sent.
            self.subscribers[id.key()].leaving.insert(name);
            return ControlFlow::Continue(());
        }
        let known = self.is_answered(id, type_key, &name);
        let subscriber = &mut self.subscribers[id.key()];
        if known {
            subscriber.leaving.insert(name);
        } else {
            self.bring(id, name, None);
        }
        ControlFlow::Continue(())
    }

    /// The next collection to walk: the wildcard last, because it passes over what the others sent.
    fn next_list(&self, id: SubscriberId) -> Option<LinkKey> {
        let head = self.subscribers[id.key()].lists;
        let first = self.oldest(head);
        if first == head {
            return first;
        }
        let Link { target, prev: second, .. } = self.links[first?];
        let is_wildcard = matches!(target, Target::List(list) if self.lists[list].glob.is_none());
        if is_wildcard { second } else { first }
    }

    pub(crate) fn pull_slot(
        &mut self,
        id: SubscriberId,
        link: LinkKey,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Target::Slot(at) = self.links[link].target else { return ControlFlow::Continue(()) };
        let seq = self.slots[at].seq;
        let news = self.links[link].cursor < seq;
        self.note_error(link, at);
        // It may have passed an error that is newer than the state.
        let cursor = &mut self.links[link].cursor;
        *cursor = seq.max(*cursor);
        self.rechain(link, Chain::Clean);
        if !news {
            return ControlFlow::Continue(());
        }
        let sends = if self.has_aliases(link) { self.send_by_alias(link, at) } else { at };
        match self.slots[sends].state {
            State::Present(_) => {
                self.links[link].sent = true;
                self.put(id, sends, visitor)
            }
            State::Absent => {
                let name = self.slots[at].name.clone();
                let sent = std::mem::take(&mut self.links[link].sent);
                let subscriber = &mut self.subscribers[id.key()];
                let new = subscriber.leaving.insert(name.clone());
                if !sent && new && !subscriber.resumed.contains(&name) {
                    subscriber.missing.insert(name);
                }
                ControlFlow::Continue(())
            }
            State::Unknown => ControlFlow::Continue(()),
        }
    }

    fn pull_list(
        &mut self,
        id: SubscriberId,
        link: LinkKey,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Link { cursor, .. } = self.links[link];
        let Some((list, walk)) = self.links[link].to_list() else { return ControlFlow::Continue(()) };
        let Walk { at: hint, answered, complete: was_complete, gone_cursor, .. } = self.walks[walk];
        let mut next = self.lists[list].first_after(list, &self.slots, cursor, hint);
        let Subscriber { links, resumed, .. } = &self.subscribers[id.key()];
        let (several, brought) = (links.len() > 1, !resumed.is_empty());
        let mut visited = ControlFlow::Continue(());
        while let Some(at) = next {
            let seq = self.slots[at].seq;
            self.links[link].cursor = seq;
            self.walks[walk].at = Some(at);
            let already = several && self.narrower(id, at, list).any(|other| self.links[other].cursor >= seq);
            let mut put = |this: &mut Self| {
                if answered { this.put(id, at, visitor) } else { this.put_first(id, at, walk, visitor) }
            };
            let mut put = if already { ControlFlow::Continue(()) } else { put(self) };
            next = self.lists[list].after(&self.slots, at);
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
                self.rechain(link, Chain::Work);
                return put;
            }
        }
        let answer = self.lists[list].answer;
        if answer == Answer::Complete && !was_complete {
            self.complete_walk(id, link, list, walk);
        }
        if brought && answer == Answer::Complete {
            let swept = self.remove_resumed(id, link, list, pulled);
            if swept.is_break() {
                self.rechain(link, Chain::Work);
                return swept;
            }
        } else if brought {
            self.subscribers[id.key()].resumed.take_sweep(link);
        }
        if answer != Answer::None && !answered {
            let walk = &mut self.walks[walk];
            walk.answered = true;
            pulled.answered = true;
            pulled.empty |= !walk.spoken;
        }
        if self.note_errors_within(link, list) {
            // One cursor is for both.
            self.pull_tombstones(link);
        } else if self.lists[list].newest_gone() > gone_cursor {
            self.subscribers[id.key()].parting.insert(link);
        }
        self.rechain(link, Chain::Clean);
        visited
    }

    /// Tells what a complete answer says: that there is nothing, and what is gone.
    #[inline(never)]
    fn complete_walk(&mut self, id: SubscriberId, link: LinkKey, list: ListKey, walk: WalkKey) {
        let members = &self.lists[list];
        let type_key = members.type_key;
        // What went before it came, it may have missed (rule 100): but not of what it asked for by name.
        let since = self.walks[walk].since;
        let before = members.gone_before(since).into_iter();
        // That it is empty is said below.
        let missed = before.filter(|(name, gone)| {
            let told = self.subscribers[id.key()].concluded.contains(*name);
            let itself = name.is_glob() || self.is_asked_for(id, type_key, name);
            !told && !itself && !self.saw_go(id, link, name, *gone)
        });
        let missed: Vec<_> = missed.map(|(name, _)| name.clone()).collect();
        let empty = members.glob.clone().filter(|_| members.live == 0);
        let walk = &mut self.walks[walk];
        walk.complete = true;
        let subscriber = &mut self.subscribers[id.key()];
        subscriber.missing.extend(empty.clone());
        subscriber.leaving.extend(empty);
        for name in missed {
            subscriber.missing.remove(&name);
            subscriber.leaving.insert(name);
        }
        (walk.since, walk.sent) = (0, walk.sent.max(walk.since));
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
        self.walks[walk].spoken |= spoken;
        put
    }

    /// Whether a name went while another collection of the subscriber had it, and that has told so.
    fn saw_go(&self, id: SubscriberId, link: LinkKey, name: &ResourceName, gone: Seq) -> bool {
        let type_key = self.subscribers[id.key()].type_key;
        self.covering(id, type_key, name)
            .filter(|other| *other != link)
            .any(|other| self.walk(other).is_some_and(|walk| walk.opened < gone && gone <= walk.gone_cursor))
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
        let type_key = self.subscribers[id.key()].type_key;
        let begun = self.subscribers[id.key()].resumed.take_sweep(link);
        let mut names = begun.unwrap_or_else(|| self.brought_within(id, list));
        while let Some(name) = names.pop() {
            if self.look(pulled).is_break() {
                names.push(name);
                self.subscribers[id.key()].resumed.leave_sweep(link, names);
                return ControlFlow::Break(());
            }
            let error = self.types[type_key].errors.get(&name);
            let spared = error.is_some_and(|failure| failure.error.is_transient());
            if spared || self.is_asked_for(id, type_key, &name) {
                continue;
            }
            let slot = self.slot_of(type_key, &name);
            let there = slot.is_some_and(|at| self.slots[at].state.resource().is_some());
            let Subscriber { resumed, leaving, concluded, .. } = &mut self.subscribers[id.key()];
            let brought = resumed.remove(&name).is_some();
            if brought && !there {
                if concluded.len() < MAX_CONCLUDED {
                    concluded.insert(name.clone());
                }
                leaving.insert(name);
            }
        }
        self.has_compared(id);
        ControlFlow::Continue(())
    }

    fn put(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Subscriber { resumed, missing, concluded, .. } = &self.subscribers[id.key()];
        if (!resumed.is_empty() || missing.len() + concluded.len() > 0) && self.is_held(id, at) {
            return ControlFlow::Continue(());
        }
        let slot = &self.slots[at];
        let Some(resource) = slot.state.resource() else { return ControlFlow::Continue(()) };
        // To its client, a resource that comes ends the error of its name: one that stays beside it is told again.
        if self.owes_error(id, &slot.name) {
            self.subscribers[id.key()].failing.insert(slot.name.clone());
        }
        self.visits += 1;
        visitor(Pull::Put { name: &slot.name, resource })
    }

    /// Whether the subscriber brought along what is there; what else was noted of it is over with this.
    #[inline(never)]
    fn is_held(&mut self, id: SubscriberId, at: SlotKey) -> bool {
        let slot = &self.slots[at];
        let Some(resource) = slot.state.resource() else { return false };
        let subscriber = &mut self.subscribers[id.key()];
        subscriber.missing.remove(&slot.name);
        subscriber.concluded.remove(&slot.name);
        let brought = subscriber.resumed.remove(&slot.name);
        let compared = brought.is_some();
        let held = brought.flatten();
        let is_held = held.is_some_and(|held| held == resource.version);
        let aliases = self.types[slot.type_key].aliases.of(&slot.name);
        if !is_held {
            // With this it sees that what it held under an alias itself is over.
            aliases.iter().for_each(|alias| _ = subscriber.resumed.remove(alias));
        } else if !aliases.is_empty() {
            subscriber.unsent.insert(slot.name.clone());
        }
        if compared {
            self.has_compared(id);
        }
        is_held
    }

    /// Visits what is gone, but for what stays to be told.
    pub(crate) fn pull_removals(
        &mut self,
        id: SubscriberId,
        stays: impl Fn(&ResourceName) -> bool,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.pull_parting(id);
        let mut waiting = Vec::new();
        let mut visited = ControlFlow::Continue(());
        while visited.is_continue()
            && let Some(name) = self.subscribers[id.key()].leaving.pop_first()
        {
            // What has an error is told with it.
            if stays(&name) || self.waits_for_error(id, &name) {
                waiting.push(name);
            } else if self.is_gone(id, &name) {
                let subscriber = &mut self.subscribers[id.key()];
                subscriber.missing.remove(&name);
                subscriber.resumed.remove(&name);
                visited = visitor(Pull::Removed { name: &name });
            } else {
                visited = self.look(pulled);
            }
        }
        self.subscribers[id.key()].leaving.extend(waiting);
        visited
    }

    /// Takes the tombstones of every collection that has some to tell.
    pub(crate) fn pull_parting(&mut self, id: SubscriberId) {
        while let Some(link) = self.subscribers[id.key()].parting.pop_first() {
            // What failed since the collection was pulled is behind the same cursor.
            if let Target::List(list) = self.links[link].target {
                self.note_errors_within(link, list);
            }
            self.pull_tombstones(link);
        }
    }

    /// Takes the tombstones of a collection that its link has not passed.
    pub(crate) fn pull_tombstones(&mut self, link: LinkKey) {
        let Link { subscriber, .. } = self.links[link];
        let Some((list, walk)) = self.links[link].to_list() else { return };
        let Walk { gone_cursor, .. } = self.walks[walk];
        let members = &self.lists[list];
        let newest = members.newest_gone_or_failed();
        if newest > gone_cursor {
            let Subscriber { leaving, missing, concluded, .. } = &mut self.subscribers[subscriber];
            for name in members.gone_after(gone_cursor) {
                if !concluded.is_empty() && concluded.remove(name) {
                    continue;
                }
                // What it was sent as a member of a collection it can have, whatever it asked for since.
                missing.remove(name);
                leaving.insert(name.clone());
            }
            self.walks[walk].gone_cursor = newest;
            self.pass(list, Some(gone_cursor), Some(newest));
        }
    }

    /// Whether a name that was to be told as gone still is: it may be back, and sent, since.
    pub(crate) fn is_gone(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if self.spares(id, name) {
            return false;
        }
        let type_key = self.subscribers[id.key()].type_key;
        if name.is_glob() {
            let list = self.list_of(type_key, &Interest::Name(name.clone()));
            return list.is_some_and(|list| self.holds(id, Target::List(list)) && self.lists[list].live == 0);
        }
        let slot = self.slot_of(type_key, name);
        if let Some(at) = slot
            && self.links_to(id, at).next().is_some()
        {
            return matches!(self.slots[self.resolve(at)].state, State::Absent);
        }
        let present = slot.is_some_and(|at| self.slots[at].state.resource().is_some());
        !present || !self.covered(id, type_key, name)
    }

    /// The subscriber's other links that are sent this slot before `list` is walked: the name itself, its aliases,
    /// and its glob when `list` is the wildcard (rule 103).
    pub(crate) fn narrower(&self, id: SubscriberId, at: SlotKey, list: ListKey) -> impl Iterator<Item = LinkKey> {
        let several = self.subscribers[id.key()].links.len() > 1;
        let by_glob = move || {
            let glob = self.slots[at].places[1].list;
            glob.filter(|glob| *glob != list).and_then(|glob| self.link_of(id, Target::List(glob)))
        };
        let links = move || self.links_to(id, at).chain(std::iter::once_with(by_glob).flatten());
        several.then(links).into_iter().flatten()
    }

    /// Sends a name again to a subscriber that asked for it, although it did not change (rule 124).
    /// False when the subscriber did not ask for the name itself.
    pub fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        let interest = Interest::Name(name.clone());
        let subscribed = self.is_subscribed(id, &interest);
        if subscribed {
            self.subscribe(id, &interest);
        }
        subscribed
    }
}
