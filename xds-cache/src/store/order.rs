//! The members of a list, in order of last change.

use crate::interest::Interest;
use crate::keys::{ListKey, SlotKey};
use crate::moments::Seq;
use crate::store::list::List;
use crate::store::slot::{Place, Slot};
use crate::store::tables::Store;

impl<V> Store<V> {
    /// Appends a slot to a list as the one that changed last.
    pub(crate) fn append(&mut self, list: ListKey, at: SlotKey) {
        let Self { slots, lists, .. } = self;
        let members = &mut lists[list];
        let (side, older) = (members.side, members.newest);
        slots[at].places[side] = Place { list: Some(list), older, newer: None };
        match older {
            None => members.oldest = Some(at),
            Some(older) => slots[older].places[side].newer = Some(at),
        }
        members.newest = Some(at);
        members.live += 1;
    }

    /// Takes a slot out of a list.
    pub(crate) fn leave_list(&mut self, list: ListKey, at: SlotKey) {
        let Self { slots, lists, .. } = self;
        let members = &mut lists[list];
        let side = members.side;
        let Place { older, newer, .. } = std::mem::replace(&mut slots[at].places[side], Place::NOWHERE);
        match older {
            None => members.oldest = newer,
            Some(older) => slots[older].places[side].newer = newer,
        }
        match newer {
            None => members.newest = older,
            Some(newer) => slots[newer].places[side].older = older,
        }
        members.live -= 1;
    }

    /// The first slot of a list that changed after `cursor`; O(1) when `hint` is where the last walk stopped, and is what changed at
    /// `cursor` still: no two slots did.
    pub(crate) fn first_after(&self, list: ListKey, cursor: Seq, hint: Option<SlotKey>) -> Option<SlotKey> {
        let List { side, oldest, newest, .. } = self.lists[list];
        if let Some(slot) = hint.and_then(|hint| self.slots.peek(hint))
            && slot.seq == cursor
            && slot.places[side].list == Some(list)
        {
            return slot.places[side].newer;
        }
        if cursor == 0 {
            return oldest;
        }
        let (mut first, mut next) = (None, newest);
        while let Some(at) = next.filter(|at| self.slots[*at].seq > cursor) {
            first = next;
            next = self.slots[at].places[side].older;
        }
        first
    }

    /// The next slot of a list.
    pub(crate) fn after(&self, list: ListKey, at: SlotKey) -> Option<SlotKey> {
        self.slots[at].places[self.lists[list].side].newer
    }

    /// When a member of a list last changed.
    pub(crate) fn newest_seq(&self, list: ListKey) -> Seq {
        self.lists[list].newest.map_or(0, |at| self.slots[at].seq)
    }

    /// Every member of a list, in order of last change.
    pub(crate) fn members(&self, list: ListKey) -> impl Iterator<Item = SlotKey> {
        let List { side, oldest, .. } = self.lists[list];
        std::iter::successors(oldest, move |at| self.slots[*at].places[side].newer)
    }

    /// The slot, whose resource came, is one of its collections.
    pub(crate) fn enter_lists(&mut self, at: SlotKey) {
        let Slot { type_key, name, .. } = &self.slots[at];
        let (type_key, name) = (*type_key, name.clone());
        let [wildcard, mut directory] = self.collections_of(type_key, &name);
        if directory.is_none()
            && let Some(glob) = name.glob_parent()
        {
            directory = Some(self.list(type_key, &Interest::Name(glob)));
        }
        for list in [wildcard, directory].into_iter().flatten() {
            self.append(list, at);
        }
    }
}
