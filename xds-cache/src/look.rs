//! Looking at single resources.

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::links::{State, Target};
use crate::resource::{Resource, TypeUrl};
use crate::subscribe::SubscriberId;

impl<V> Cache<V> {
    /// Whether a subscriber is interested in a name, by whatever interest.
    pub fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.is_open(id) && self.is_wanted(id, self.subscribers[id.index()].type_index, name)
    }

    /// The resource of a name that a subscriber is interested in, by whatever interest.
    pub fn wanted(&self, id: SubscriberId, name: &ResourceName) -> Option<&Resource<V>> {
        if !self.is_open(id) {
            return None;
        }
        let type_index = self.subscribers[id.index()].type_index;
        let at = self.slot_of(type_index, name)?;
        self.is_wanted(id, type_index, name).then(|| self.slots[at as usize].state.resource()).flatten()
    }

    /// Whether a subscriber is yet to be told what became of a name that it brought along. If so, it will be told,
    /// whichever version it said it has: for who says something else of the name meanwhile.
    pub fn will_tell(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let held = self.subscribers[id.index()].resumed.get_mut(name);
        held.map(|version| *version = None).is_some()
    }

    /// Whether a name that a subscriber asked for stands for a resource that is there (rule 105).
    pub fn is_alias(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let at = self.slot_of(self.subscribers[id.index()].type_index, name);
        at.is_some_and(|at| self.link_of(id, Target::Slot(at)).is_some() && self.resolve(at) != at)
    }

    /// Whether a name that is not there, is known not to be: it was answered itself, or a collection of the subscriber
    /// that covers it is complete.
    pub fn is_absent(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let type_index = self.subscribers[id.index()].type_index;
        match self.slot_of(type_index, name) {
            Some(at) if self.link_of(id, Target::Slot(at)).is_some() => {
                matches!(self.slots[at as usize].state, State::Absent)
            }
            Some(at) if self.slots[at as usize].state.resource().is_some() => false,
            _ => self.is_answered(id, type_index, name),
        }
    }

    /// What is held of a name, to change what is not its content, such as how long it lives: nobody is told.
    pub fn value_mut(&mut self, type_url: &TypeUrl, name: &ResourceName) -> Option<&mut V> {
        let at = self.find(type_url, name)?;
        self.slots[at as usize].state.resource_mut().map(|resource| &mut resource.value)
    }
}
