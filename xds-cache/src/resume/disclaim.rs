//! What a subscriber holds and may have by an alias only.

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, Target};
use crate::store::State;
use crate::subscribers::{Debt, Subscriber};

impl<V> Cache<V> {
    /// What a subscriber holds and did not ask for, it may have by an alias: it is gone once every name it asked for
    /// was answered, and none of them stands for it. False where there is more to look at than a pull looks at: then it
    /// goes on there.
    pub(crate) fn disclaim(&mut self, id: SubscriberId) -> bool {
        let looks = self.store.options.looks;
        if self.subscribers[id].claims.is_empty() || self.awaits_names(id) {
            self.subscribers[id].claims.look_anew();
            return true;
        }
        let Subscriber { type_key, ref mut claims, .. } = self.subscribers[id];
        let part = claims.next_part(looks);
        for name in &part {
            let wanted = self.is_wanted(id, type_key, name);
            let Subscriber { owed, claims, .. } = &mut self.subscribers[id];
            if !owed.owes(Debt::Comparison, name) {
                claims.remove(name);
            } else if !wanted {
                claims.remove(name);
                owed.gone(name.clone());
                self.drop_brought(id, name);
            }
            // What is wanted stays until it is compared: its alias may yet go.
        }
        self.subscribers.has_compared(id);
        let claims = &mut self.subscribers[id].claims;
        claims.looked_at(part.into_iter().nth(looks - 1));
        !claims.are_looked_at()
    }

    /// The same, when what was looked at may have another answer by now.
    pub(crate) fn disclaim_anew(&mut self, id: SubscriberId) {
        self.subscribers[id].claims.look_anew();
        self.disclaim(id);
    }

    /// Whether a name that a subscriber asked for was not answered: it may be an alias of what the subscriber holds.
    pub fn awaits_names(&mut self, id: SubscriberId) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let links = &self.subscribers[id].links;
        let (first_unanswered, links) = (links.first_unanswered as usize, links.as_slice());
        let is_unanswered = |at: &LinkKey| match self.subscribers.target(*at) {
            Target::Slot(slot) => matches!(self.store[slot].state, State::Unknown),
            Target::List(_) => false,
        };
        // What was answered stays so: each link is looked at once.
        let unanswered = links.iter().skip(first_unanswered).position(is_unanswered);
        let first = unanswered.map_or(links.len(), |further| first_unanswered + further);
        self.subscribers[id].links.first_unanswered = first as u32;
        unanswered.is_some()
    }
}
