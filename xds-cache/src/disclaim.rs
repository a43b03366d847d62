//! What a subscriber holds and may have by an alias only.

use std::ops::Bound;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, Target, TypeKey};
use crate::store::State;
use crate::subscribers::Subscriber;

impl<V> Cache<V> {
    /// What a subscriber holds and did not ask for, it may have by an alias: it is gone once every name it asked for
    /// was answered, and none of them stands for it. False where there is more to look at than a pull looks at: then it
    /// goes on there.
    pub(crate) fn disclaim(&mut self, id: SubscriberId) -> bool {
        let from = self.subscribers[id].disclaimed.take();
        if self.subscribers[id].unclaimed.is_empty() || self.awaits_names(id) {
            return true;
        }
        let Subscriber { type_key, ref unclaimed, .. } = self.subscribers[id];
        let after = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let part: Vec<_> = unclaimed
            .range::<ResourceName, _>((after, Bound::Unbounded))
            .take(self.store.options.looks)
            .cloned()
            .collect();
        for name in &part {
            let wanted = self.is_wanted(id, type_key, name);
            let Subscriber { resumed, leaving, unclaimed, .. } = &mut self.subscribers[id];
            if !resumed.contains(name) {
                unclaimed.remove(name);
            } else if !wanted {
                unclaimed.remove(name);
                leaving.insert(name.clone());
                self.drop_brought(id, name);
            }
            // What is wanted stays until it is compared: its alias may yet go.
        }
        self.subscribers.has_compared(id);
        let subscriber = &mut self.subscribers[id];
        let last = part.into_iter().nth(self.store.options.looks - 1);
        subscriber.disclaimed = last.filter(|_| !subscriber.unclaimed.is_empty());
        subscriber.disclaimed.is_none()
    }

    /// The same, when what was looked at may have another answer by now.
    pub(crate) fn disclaim_anew(&mut self, id: SubscriberId) {
        self.subscribers[id].disclaimed = None;
        self.disclaim(id);
    }

    /// An alias stands for a resource no longer: who is looking at what it may hold by one, and was past the resource, goes
    /// on before it.
    pub(crate) fn look_again(&mut self, type_key: TypeKey, name: &ResourceName) {
        for id in self.subscribers.who_brought_it(type_key, name).collect::<Vec<_>>() {
            let Subscriber { unclaimed, disclaimed, .. } = &mut self.subscribers[id];
            if disclaimed.as_ref().is_some_and(|up_to| up_to >= name) {
                *disclaimed =
                    unclaimed.range::<ResourceName, _>((Bound::Unbounded, Bound::Excluded(name))).next_back().cloned();
            }
        }
    }

    /// Whether a name that a subscriber asked for was not answered: it may be an alias of what the subscriber holds.
    pub fn awaits_names(&mut self, id: SubscriberId) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let Subscriber { ref links, first_unanswered, .. } = self.subscribers[id];
        let is_unanswered = |at: &LinkKey| match self.subscribers[*at].target {
            Target::Slot(slot) => matches!(self.store[slot].state, State::Unknown),
            Target::List(_) => false,
        };
        // What was answered stays so: each link is looked at once.
        let unanswered = links.iter().skip(first_unanswered).position(is_unanswered);
        let first = unanswered.map_or(links.len(), |further| first_unanswered + further);
        self.subscribers[id].first_unanswered = first;
        unanswered.is_some()
    }
}
