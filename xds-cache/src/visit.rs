//! The full state of one subscriber.

mod leaving;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::{Unanswered, Visited};
use crate::id::SubscriberId;
use crate::keys::{ListKey, Target};
use crate::resource::Resource;
use crate::store::{Answer, State};

impl<V> Cache<V> {
    /// Visits everything a subscriber is interested in, each name once: the full state of a SotW response.
    pub fn visit(&self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<V>)) -> Unanswered {
        self.visit_selected(id, &mut |visited| visitor(visited.name, visited.resource))
    }

    /// The same, with which of its variants each resource is (TP2).
    pub fn visit_selected(&self, id: SubscriberId, visitor: &mut dyn FnMut(Visited<'_, V>)) -> Unanswered {
        let mut unanswered = Unanswered::default();
        if !self.is_open(id) {
            return unanswered;
        }
        let subscriber = &self.subscribers[id];
        let seen = |at| {
            let (variant, resource) = self.store.select(at, subscriber.selector)?;
            Some((variant.filter(|variant| !variant.is_plain()), resource))
        };
        for link in subscriber.links.as_slice() {
            match self.subscribers.target(*link) {
                Target::Slot(at) => {
                    let sends = self.store.resolve(at);
                    let slot = &self.store[sends];
                    match seen(sends) {
                        // Once, however many of its names were asked for.
                        Some((variant, resource)) if self.links_to(id, sends).next() == Some(*link) => {
                            visitor(Visited { name: &slot.name, variant, resource });
                        }
                        None if matches!(slot.state, State::Unknown)
                            || self.store.is_unreadable(slot.type_key, &slot.name) =>
                        {
                            unanswered.names += 1;
                        }
                        Some(_) | None => {}
                    }
                }
                Target::List(list) => {
                    self.count_unanswered(list, &mut unanswered);
                    for at in self.store.members(list) {
                        let slot = &self.store[at];
                        if let (Some((variant, resource)), None) = (seen(at), self.narrower(id, at, list).next()) {
                            visitor(Visited { name: &slot.name, variant, resource });
                        }
                    }
                }
            }
        }
        unanswered
    }

    /// What is not answered of the collections that a subscriber wants: what is there is not visited for that.
    pub fn unanswered_collections(&self, id: SubscriberId) -> Unanswered {
        let mut unanswered = Unanswered::default();
        if self.is_open(id) {
            for link in self.subscribers[id].links.as_slice() {
                if let Target::List(list) = self.subscribers.target(*link) {
                    self.count_unanswered(list, &mut unanswered);
                }
            }
        }
        unanswered
    }

    fn count_unanswered(&self, list: ListKey, unanswered: &mut Unanswered) {
        match self.store[list].answer {
            Answer::Complete if self.store.lacks_unreadable(list) => unanswered.incomplete += 1,
            Answer::Complete => {}
            // Whatever was answered before.
            _ if self.store.is_refused(list) => unanswered.refused += 1,
            Answer::None => unanswered.collections += 1,
            Answer::Begun | Answer::Stale => unanswered.incomplete += 1,
        }
    }
}
