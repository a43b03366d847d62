//! What is sent to who asked by another name (rule 105).

use crate::cache::Cache;
use crate::keys::{LinkKey, SlotKey, Target};
use crate::subscribers::Link;

impl<V> Cache<V> {
    /// Whether there is anything to follow when a link to a name is pulled.
    pub(crate) fn has_aliases(&self, link: LinkKey) -> bool {
        let subscriber = &self.subscribers[self.subscribers[link].subscriber];
        !(subscriber.aliased.is_empty() && self.store[subscriber.type_key].aliases.is_empty())
    }

    /// The slot that a link to the name in `at` is sent; that counts as sent by all links of the subscriber that ask
    /// for it.
    pub(crate) fn send_by_alias(&mut self, link: LinkKey, at: SlotKey) -> SlotKey {
        let Link { subscriber, .. } = self.subscribers[link];
        let sends = self.store.resolve(at);
        let id = self.subscribers.id_of(subscriber);
        let there = self.seen(id, sends).is_some();
        for other in self.links_to(id, sends).collect::<Vec<_>>() {
            let Target::Slot(at) = self.subscribers.target(other) else { continue };
            let link = &mut self.subscribers[other];
            link.set_cursor(self.store[at].seq.max(link.cursor()));
            link.set_sent(there || link.sent());
            self.follow_alias(other, at, sends);
        }
        sends
    }

    /// What a link to an alias was sent, and is not sent any more, is gone unless something else covers it.
    pub(crate) fn follow_alias(&mut self, link: LinkKey, at: SlotKey, sends: SlotKey) {
        let Link { subscriber, .. } = self.subscribers[link];
        let subscriber = &mut self.subscribers[subscriber];
        let name = (sends != at).then(|| self.store[sends].name.clone());
        let before = match &name {
            Some(name) => subscriber.aliased.insert(link, name.clone()),
            None => subscriber.aliased.remove(link),
        };
        if let Some(before) = before.filter(|before| name.as_ref() != Some(before)) {
            subscriber.owed.gone(before);
        }
    }
}
