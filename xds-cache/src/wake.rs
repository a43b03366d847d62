//! Who is told of a change: moved from the chains of what changed to their own. A change of the cache reaches subscribers by
//! what is here, and by nothing else.

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, ListKey, SelectorKey, SlotKey, Target, TypeKey};
use crate::store::{Slot, State};
use crate::subscribers::{Chain, Debt};

impl<V> Cache<V> {
    /// The slot changed now: it is the newest of its lists, and its watchers have something to pull.
    pub(crate) fn changed(&mut self, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        let seq = self.store.next_seq();
        let slot = &mut self.store[at];
        slot.seq = seq;
        let (type_key, lists) = (slot.type_key, slot.lists());
        self.mark(Target::Slot(at), woken);
        if !self.store[type_key].aliases.is_empty() {
            for alias in self.store.alias_slots(at).collect::<Vec<_>>() {
                let slot = &mut self.store[alias];
                (slot.state, slot.seq) = (State::Absent, seq);
                self.mark(Target::Slot(alias), woken);
            }
        }
        for list in lists {
            self.store.leave_list(list, at);
            self.store.append(list, at);
            self.mark(Target::List(list), woken);
        }
    }

    /// It is as it was: who was not sent it because of another version is sent it now, with all others.
    pub(crate) fn confirm_slot(&mut self, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        if self.store.stale.remove(&at) == Some(true) {
            self.changed(at, woken);
        }
    }

    /// Moves the up-to-date links of a target to the chains of work of their subscribers.
    pub(crate) fn mark(&mut self, target: Target, woken: &mut Vec<SubscriberId>) {
        self.subscribers.mark(target, &mut self.store.watchers_mut(target).clean, woken);
    }

    /// Moves the links of a target, which is or has the name in a slot, to the work of those for whom that changed just now.
    pub(crate) fn mark_affected(&mut self, target: Target, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        let mut clean = self.store.watchers_mut(target).clean.take();
        let Self { store, subscribers, .. } = self;
        let Slot { state, seq, .. } = &store[at];
        let is_affected = |key: Option<SelectorKey>| state.varied().is_none_or(|varied| varied.changed_for(key, *seq));
        subscribers.mark_some(target, &mut clean, is_affected, woken);
        self.store.watchers_mut(target).clean = clean;
    }

    /// Moves a link to a target to another chain.
    #[inline]
    pub(crate) fn rechain(&mut self, at: LinkKey, target: Target, chain: Chain) {
        let clean = &mut self.store.watchers_mut(target).clean;
        self.subscribers.unchain(clean, at);
        self.subscribers.push(clean, at, chain);
    }

    /// A name is gone that not all are told of: those are who said that they hold it, whatever was looked at of that.
    pub(crate) fn tell_who_brought(&mut self, list: ListKey, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        let type_key = self.store[list].type_key;
        self.subscribers.drop_compared();
        let aliases = &self.store[type_key].aliases;
        let stands_for = if aliases.is_empty() { None } else { aliases.canonical(name).cloned() };
        for id in self.subscribers.who_brought_it(type_key, name).collect::<Vec<_>>() {
            // Who wants what it stands for sees from that what became of it.
            if stands_for.as_ref().is_some_and(|canonical| self.is_wanted(id, type_key, canonical)) {
                continue;
            }
            let Some(link) = self.subscribers.link_of(id, Target::List(list)) else { continue };
            let is_clean = self.subscribers[link].chain() == Chain::Clean;
            let subscriber = &mut self.subscribers[id];
            let is_news = subscriber.owed.gone(name.clone()) && is_clean;
            woken.extend(Some(id).filter(|_| is_news && !subscriber.has_changes()));
            if is_news {
                self.rechain(link, Target::List(list), Chain::Work);
            }
        }
    }

    /// Whether anybody said that they hold a name, and was not told what became of it.
    pub(crate) fn is_brought(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        self.subscribers.who_brought_it(type_key, name).next().is_some()
    }

    /// An alias stands for a resource no longer: who is looking at what it may hold by one, and was past the resource, goes
    /// on before it.
    pub(crate) fn look_again(&mut self, type_key: TypeKey, name: &ResourceName) {
        for id in self.subscribers.who_brought_it(type_key, name).collect::<Vec<_>>() {
            self.subscribers[id].claims.look_again(name);
        }
    }

    /// Drops what is owed to nobody: a name that came after all a link has sent, and went before the link came to it.
    ///
    /// What is left is no more than was there when the link last sent something, and what it did not pass since.
    pub(crate) fn drop_unneeded(&mut self, at: ListKey) {
        let mut owed = std::mem::take(&mut self.store[at].owed);
        let newest = owed.back().map_or(0, |gone| gone.seq);
        let mut lagging = Vec::new();
        for link in self.subscribers.links.values() {
            let walk = link.walk().map(|walk| &self.subscribers[walk]).filter(|walk| walk.list == at);
            if let Some(walk) = walk.filter(|walk| walk.gone_cursor < newest) {
                lagging.push((walk.gone_cursor, walk.sent_up_to(link.cursor()), link.subscriber));
            }
        }
        lagging.sort_unstable();
        let Self { subscribers, .. } = self;
        let (mut before, mut sent_up_to) = (0, 0);
        owed.retain(|gone| {
            while let Some((_, sent, _)) = lagging.get(before).filter(|(cursor, ..)| *cursor < gone.seq) {
                sent_up_to = sent_up_to.max(*sent);
                before += 1;
            }
            let needed = gone.born <= sent_up_to;
            for (.., subscriber) in lagging.iter().take(before).filter(|_| !needed) {
                let owed = &mut subscribers[*subscriber].owed;
                // It may hold what it was not sent, but brought along; and of the glob itself one is enough.
                if owed.owes(Debt::Comparison, &gone.name) || gone.name.is_glob() {
                    owed.gone(gone.name.clone());
                }
            }
            needed
        });
        let list = &mut self.store[at];
        (list.needed, list.owed) = (owed.len(), owed);
    }
}
