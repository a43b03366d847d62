//! When what nobody is subscribed to was last wanted or changed.

use crate::keys::{ListKey, SlotKey, Target};
use crate::store::list::Answer;
use crate::store::tables::Store;

impl<V> Store<V> {
    /// A resource changed, or lost its last watcher: it, or the collections it is part of, may be evicted now.
    pub(crate) fn renew(&mut self, at: SlotKey) {
        if self.capacity().is_none() {
            return;
        }
        let at = self.resolve(at);
        let slot = &self.slots[at];
        if !slot.state.is_present() || self.is_watched(at) {
            return;
        }
        if slot.lists().any(|list| self.lists[list].watchers.count > 0) {
            return;
        }
        let mut whole = false;
        for list in self.slots[at].lists() {
            if self.lists[list].answer != Answer::None {
                whole = true;
                self.idle.renew(Target::List(list));
            }
        }
        if !whole {
            self.idle.renew(Target::Slot(at));
        }
    }

    /// The same of a collection.
    pub(crate) fn renew_list(&mut self, at: ListKey) {
        if self.capacity().is_none() || self.lists[at].watchers.count > 0 {
            return;
        }
        if self.lists[at].answer != Answer::None {
            self.idle.renew(Target::List(at));
        } else {
            let members: Vec<_> = self.members(at).collect();
            members.into_iter().for_each(|at| self.renew(at));
        }
    }

    pub(crate) fn capacity(&self) -> Option<usize> {
        self.options.capacity.filter(|_| !self.options.authoritative)
    }
}
