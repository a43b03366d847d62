//! Who is told of a change: moved from the chains of what changed to their own.

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, ListKey, Target};
use crate::subscribers::Chain;

impl<V> Cache<V> {
    /// Moves the up-to-date links of a target to the chains of work of their subscribers.
    pub(crate) fn mark(&mut self, target: Target, woken: &mut Vec<SubscriberId>) {
        self.subscribers.mark(target, &mut self.store.watchers_mut(target).clean, woken);
    }

    /// Moves a link to another chain.
    pub(crate) fn rechain(&mut self, at: LinkKey, chain: Chain) {
        let clean = &mut self.store.watchers_mut(self.subscribers[at].target).clean;
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
            let is_clean = self.subscribers[link].chain == Chain::Clean;
            let subscriber = &mut self.subscribers[id];
            let is_news = subscriber.owed.gone(name.clone()) && is_clean;
            woken.extend(Some(id).filter(|_| is_news && !subscriber.has_changes()));
            if is_news {
                self.rechain(link, Chain::Work);
            }
        }
    }
}
