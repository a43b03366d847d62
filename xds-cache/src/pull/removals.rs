//! Telling what is gone.

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::{Pull, Pulled};
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, Target};
use crate::store::State;
use crate::subscribers::{Link, Subscriber, Walk};

impl<V> Cache<V> {
    /// Visits what is gone, but for what stays to be told.
    pub(crate) fn pull_removals(
        &mut self,
        id: SubscriberId,
        stays: impl Fn(&ResourceName) -> bool,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.pull_parting(id);
        let mut waiting = Vec::new();
        let mut visited = ControlFlow::Continue(());
        while visited.is_continue()
            && let Some(name) = self.subscribers[id].owed.next_removal()
        {
            // What has an error is told with it.
            if stays(&name) || self.waits_for_error(id, &name) {
                waiting.push(name);
            } else if self.is_gone(id, &name) {
                self.subscribers[id].owed.told_gone(&name);
                let held = self.take_held(id, &name);
                visited = visitor(Pull::Removed { name: &name, variants: &held });
            } else {
                self.keeps_until_answered(id, &name);
                visited = self.look(pulled);
            }
        }
        self.subscribers[id].owed.defer_removals(waiting);
        visited
    }

    /// A subscriber asked anew for what it was to be told to be gone: as long as nobody answers, it holds that.
    fn keeps_until_answered(&mut self, id: SubscriberId, name: &ResourceName) {
        let slot = self.store.slot_of(self.subscribers[id].type_key, name);
        if let Some(at) = slot.filter(|at| matches!(self.store[*at].state, State::Unknown))
            && let Some(link) = self.subscribers.link_of(id, Target::Slot(at))
        {
            self.subscribers[link].set_sent(true);
        }
    }

    /// Takes the tombstones of every collection that has some to tell.
    pub(crate) fn pull_parting(&mut self, id: SubscriberId) {
        while let Some(link) = self.subscribers[id].parting.pop_first() {
            // What failed since the collection was pulled is behind the same cursor.
            if let Some((list, _)) = self.subscribers.to_list(link) {
                self.note_errors_within(link, list);
            }
            self.pull_tombstones(link);
        }
    }

    /// Takes the tombstones of a collection that its link has not passed.
    pub(crate) fn pull_tombstones(&mut self, link: LinkKey) {
        let Link { subscriber, .. } = self.subscribers[link];
        let Some((list, walk)) = self.subscribers.to_list(link) else { return };
        let Walk { gone_cursor, .. } = self.subscribers[walk];
        let members = &self.store[list];
        let newest = members.newest_gone_or_failed();
        if newest > gone_cursor {
            let Subscriber { owed, looked, .. } = &mut self.subscribers[subscriber];
            // Of what there was no variant for it, it knows.
            let news = members.gone_after(gone_cursor).filter(|name| looked.is_empty() || !looked.knows_absent(name));
            news.for_each(|name| owed.went(name));
            let gone: Vec<_> = members.gone_after(gone_cursor).filter(|_| !looked.is_empty()).cloned().collect();
            gone.iter().for_each(|name| self.forget_gone_look(subscriber, name));
            self.subscribers[walk].gone_cursor = newest;
            self.store.pass(list, Some(gone_cursor), Some(newest));
        }
    }

    /// Whether a name that was to be told as gone still is: it may be back, and sent, since.
    pub(crate) fn is_gone(&self, id: SubscriberId, name: &ResourceName) -> bool {
        if self.spares(id, name) {
            return false;
        }
        let type_key = self.subscribers[id].type_key;
        if name.is_glob() {
            let list = self.store.list_of(type_key, &Interest::Name(name.clone()));
            return list
                .is_some_and(|list| self.subscribers.holds(id, Target::List(list)) && self.is_known_empty(id, list));
        }
        let slot = self.store.slot_of(type_key, name);
        if let Some(at) = slot
            && self.links_to(id, at).next().is_some()
        {
            return self.is_absent_for(id, self.store.resolve(at));
        }
        let present = slot.is_some_and(|at| self.seen(id, at).is_some());
        !present || !self.covered(id, type_key, name)
    }
}
