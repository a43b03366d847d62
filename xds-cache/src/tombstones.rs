//! Names that are gone, kept for those who come back: bounded in number and age.

use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::links::{Gone, List, NONE, Target};
use crate::subscribe::SubscriberId;

impl<V> Cache<V> {
    /// Leaves a tombstone in the collections of a name.
    ///
    /// A name nobody here has seen may still be held by a subscriber that reconnected (rule 100): they are told of it
    /// once, or `again` where an error has let them keep it.
    pub(crate) fn bury_in_collections(
        &mut self,
        type_index: u32,
        gone: &Gone,
        was_present: bool,
        again: bool,
        woken: &mut Vec<SubscriberId>,
    ) {
        let collections = self.collections_of(type_index, &gone.name);
        for list in collections.into_iter().filter(|list| *list != NONE) {
            let members = &self.lists[list as usize];
            let told = || !again && members.gone.iter().rev().any(|before| before.name == gone.name);
            if was_present || members.watchers > 0 && !told() {
                self.bury(list, gone.clone());
                self.mark(Target::List(list), woken);
            }
            self.drop_list_if_unused(list);
        }
    }

    pub(crate) fn bury(&mut self, list: u32, gone: Gone) {
        self.lists[list as usize].gone.push_back(gone);
        let oldest = self.lists[list as usize].gone.front().map(|gone| gone.at);
        self.buried.extend(oldest.map(|at| (at, list)));
        let excess = self.lists[list as usize].gone.len().saturating_sub(self.options.tombstones);
        let mut dropped = 0;
        self.trim(list, |_| {
            dropped += 1;
            dropped <= excess
        });
    }

    /// Drops the tombstones that are older than they may be.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.now = Some(now);
        let age = self.options.tombstone_age;
        while let Some((oldest, list)) = self.buried.first().copied()
            && now.saturating_duration_since(oldest) > age
        {
            self.trim(list, |gone| now.saturating_duration_since(gone.at) > age);
            let type_index = self.lists[list as usize].type_index;
            self.drop_list_if_unused(list);
            self.drop_type_if_unused(type_index);
        }
    }

    /// Drops the oldest tombstones of a list, as long as `drops` says so.
    pub(crate) fn trim(&mut self, index: u32, mut drops: impl FnMut(&Gone) -> bool) {
        self.with_tombstones(index, |list| {
            while let Some(oldest) = list.gone.front()
                && drops(oldest)
            {
                list.trimmed = oldest.seq;
                list.gone.pop_front();
            }
        });
    }

    /// A name that is forgotten is not known to be gone.
    pub(crate) fn unbury(&mut self, index: u32, name: &ResourceName) {
        self.with_tombstones(index, |list| list.gone.retain(|gone| gone.name != *name));
    }

    fn with_tombstones(&mut self, index: u32, change: impl FnOnce(&mut List)) {
        let list = &mut self.lists[index as usize];
        let Some(was) = list.gone.front().map(|gone| gone.at) else { return };
        change(list);
        let is = list.gone.front().map(|gone| gone.at);
        if is != Some(was) {
            self.buried.remove(&(was, index));
            self.buried.extend(is.map(|at| (at, index)));
        }
    }
}
