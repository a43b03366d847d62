//! What is to be said to a subscriber about names of one collection.

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{ListKey, Target};
use crate::subscribers::Names;

impl<V> Cache<V> {
    /// Those of a subscriber's names that belong to a collection.
    pub(crate) fn names_within(&self, names: &impl Names, list: ListKey) -> Vec<ResourceName> {
        match &self.store[list].glob {
            Some(glob) => names.of_glob(glob).cloned().collect(),
            None => names.iter().filter(|name| self.store.is_in_wildcard(name)).cloned().collect(),
        }
    }

    /// What is still to be said about names of a collection: not that a glob is empty, which is said of the glob.
    pub(crate) fn pending_within(&self, id: SubscriberId, target: Target) -> Vec<ResourceName> {
        let Target::List(list) = target else { return Vec::new() };
        let owed = &self.subscribers[id].owed;
        let mut pending = self.names_within(owed.removals(), list);
        pending.extend(self.names_within(owed.answers(), list));
        pending.extend(self.names_within(owed.brought(), list));
        pending.retain(|name| !name.is_glob());
        pending
    }
}
