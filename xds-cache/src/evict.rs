//! Forgetting what nobody is subscribed to.

use crate::cache::Cache;
use crate::interest::Interest;
use crate::links::{NONE, State};
use crate::resource::TypeUrl;

impl<V> Cache<V> {
    /// Forgets what only `interest` kept: nobody is subscribed to it any more, so nobody is told.
    /// What others are subscribed to stays, and so does what belongs to an answered collection.
    ///
    /// An authoritative cache forgets nothing: there, what is not in it does not exist.
    pub fn evict(&mut self, type_url: &TypeUrl, interest: &Interest) {
        if self.options.authoritative {
            return;
        }
        let Some(type_index) = self.type_index.get(type_url).copied() else { return };
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                if let Some(at) = self.slot_of(type_index, name) {
                    self.evict_slot(at);
                }
            }
            collection => {
                let Some(list) = self.list_of(type_index, collection) else { return };
                if self.lists[list as usize].watchers > 0 {
                    return;
                }
                self.lists[list as usize].known = false;
                self.trim(list, |_| true);
                let members: Vec<_> = self.lists[list as usize].members(&self.slots).collect();
                for at in members {
                    self.evict_slot(at);
                }
                if self.lists.contains(list as usize) {
                    self.drop_list_if_unused(list);
                }
            }
        }
        self.drop_type_if_unused(type_index);
    }

    fn evict_slot(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        let mut lists =
            slot.places.iter().filter(|place| place.list != NONE).map(|place| &self.lists[place.list as usize]);
        if slot.watchers > 0 || lists.any(|list| list.watchers > 0 || list.known) {
            return;
        }
        let (places, name) = (slot.places, slot.name.clone());
        self.slots[at as usize].state = State::Absent;
        for place in places.into_iter().filter(|place| place.list != NONE) {
            self.lists[place.list as usize].unlink(&mut self.slots, at);
            self.unbury(place.list, &name);
            self.drop_list_if_unused(place.list);
        }
        self.drop_slot_if_unused(at);
    }
}
