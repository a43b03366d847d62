//! Telling what is gone.

use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::{Pull, Pulled};
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, Target};
use crate::store::State;
use crate::subscribers::{Link, Walk};

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
                visited = visitor(Pull::Removed { name: &name });
            } else {
                visited = self.look(pulled);
            }
        }
        self.subscribers[id].owed.defer_removals(waiting);
        visited
    }

    /// Takes the tombstones of every collection that has some to tell.
    pub(crate) fn pull_parting(&mut self, id: SubscriberId) {
        while let Some(link) = self.subscribers[id].parting.pop_first() {
            // What failed since the collection was pulled is behind the same cursor.
            if let Target::List(list) = self.subscribers[link].target {
                self.note_errors_within(link, list);
            }
            self.pull_tombstones(link);
        }
    }

    /// Takes the tombstones of a collection that its link has not passed.
    pub(crate) fn pull_tombstones(&mut self, link: LinkKey) {
        let Link { subscriber, .. } = self.subscribers[link];
        let Some((list, walk)) = self.subscribers[link].to_list() else { return };
        let Walk { gone_cursor, .. } = self.subscribers[walk];
        let members = &self.store[list];
        let newest = members.newest_gone_or_failed();
        if newest > gone_cursor {
            let owed = &mut self.subscribers[subscriber].owed;
            members.gone_after(gone_cursor).for_each(|name| owed.went(name));
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
                .is_some_and(|list| self.subscribers.holds(id, Target::List(list)) && self.store[list].live == 0);
        }
        let slot = self.store.slot_of(type_key, name);
        if let Some(at) = slot
            && self.links_to(id, at).next().is_some()
        {
            return matches!(self.store[self.store.resolve(at)].state, State::Absent);
        }
        let present = slot.is_some_and(|at| self.store[at].state.resource().is_some());
        !present || !self.covered(id, type_key, name)
    }
}
