//! What its user holds of one type: not the resources, only what tells them apart.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use xdstp_cache::{Resource, Version};
use xdstp_uri::ResourceName;

use crate::deadlines::Deadlines;
use crate::frame::Frame;

#[derive(Debug, Default)]
pub(crate) struct Held {
    entries: Entries,
    /// Until when those live that do not live for ever: few, and `expiries` by name.
    lives: HashMap<ResourceName, Instant>,
    expiries: Deadlines<ResourceName>,
    /// What is over, but for something newer that waits for its verdict.
    overdue: Vec<ResourceName>,
}

/// Entries by name. Each is a block of its own: a table is half empty when it has just grown, and there may be a table for
/// every node group.
#[derive(Debug, Default)]
struct Entries {
    table: HashTable<Box<(ResourceName, Entry)>>,
    seed: RandomState,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) version: Version,
    /// In native order; a `u128` would have the block aligned to 16 bytes.
    digest: [u8; 16],
    /// How many requests had been sent when it last came: the last 32 bits of that.
    seen: u32,
    /// The response that brought it was acknowledged: the version may be named to an origin (rule 30).
    pub(crate) accepted: bool,
    /// It may be asked for by other names than its own.
    pub(crate) has_aliases: bool,
    /// The origin said that it is gone, and it stays in use.
    deleted: bool,
}

/// What came, and has no verdict yet.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) entry: Entry,
    pub(crate) expires: Option<Instant>,
}

impl Received {
    pub(crate) fn new(resource: &Resource<Frame>, seen: u64) -> Self {
        Self { entry: Entry::new(resource, seen), expires: resource.value.expires() }
    }
}

impl Entry {
    fn new(resource: &Resource<Frame>, seen: u64) -> Self {
        Self {
            version: resource.version.clone(),
            digest: resource.digest().to_ne_bytes(),
            seen: seen as u32,
            accepted: false,
            has_aliases: resource.value.aliases().next().is_some(),
            deleted: false,
        }
    }

    /// How many of `requests` had been sent when it last came. Of what did not come for 2³² of them, it says too many.
    pub(crate) fn seen(&self, requests: u64) -> u64 {
        requests.saturating_sub((requests as u32).wrapping_sub(self.seen).into())
    }

    /// The same, with the fate of its response known.
    pub(crate) fn accepted(self, accepted: bool) -> Self {
        Self { accepted, ..self }
    }

    /// Whether the other has the same content at the same version.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.version == other.version && self.digest == other.digest
    }
}

impl Entries {
    fn hash(&self, name: &ResourceName) -> u64 {
        self.seed.hash_one(name)
    }

    fn get(&self, name: &ResourceName) -> Option<&Entry> {
        self.table.find(self.hash(name), |entry| entry.0 == *name).map(|entry| &entry.1)
    }

    fn get_mut(&mut self, name: &ResourceName) -> Option<&mut Entry> {
        let hash = self.hash(name);
        self.table.find_mut(hash, |entry| entry.0 == *name).map(|entry| &mut entry.1)
    }

    fn iter(&self) -> impl Iterator<Item = (&ResourceName, &Entry)> {
        self.table.iter().map(|entry| (&entry.0, &entry.1))
    }

    fn insert(&mut self, name: ResourceName, entry: Entry) {
        let (hash, seed) = (self.hash(&name), &self.seed);
        match self.table.entry(hash, |entry| entry.0 == name, |entry| seed.hash_one(&entry.0)) {
            Place::Occupied(mut occupied) => **occupied.get_mut() = (name, entry),
            Place::Vacant(vacant) => _ = vacant.insert(Box::new((name, entry))),
        }
    }

    fn remove(&mut self, name: &ResourceName) {
        let hash = self.hash(name);
        if let Ok(found) = self.table.find_entry(hash, |entry| entry.0 == *name) {
            found.remove();
        }
    }
}

impl Held {
    pub(crate) fn get(&self, name: &ResourceName) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ResourceName, &Entry)> {
        self.entries.iter()
    }

    pub(crate) fn insert(&mut self, name: ResourceName, entry: Entry, expires: Option<Instant>) {
        self.let_live(&name, expires);
        self.entries.insert(name, entry);
    }

    pub(crate) fn remove(&mut self, name: &ResourceName) {
        self.let_live(name, None);
        self.entries.remove(name);
    }

    /// Whether it is over at some time, unless it is refreshed.
    pub(crate) fn expires(&self, name: &ResourceName) -> bool {
        self.lives.contains_key(name)
    }

    fn let_live(&mut self, name: &ResourceName, expires: Option<Instant>) {
        // Mostly nothing is over at any time, and no name is hashed for that.
        if !self.lives.is_empty()
            && let Some(before) = self.lives.remove(name)
        {
            self.expiries.remove(before, name.clone());
        }
        if let Some(expires) = expires {
            self.lives.insert(name.clone(), expires);
            self.expiries.insert(expires, name.clone());
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        let gone: Vec<_> = self.iter().map(|(name, _)| name).filter(|name| !keep(name)).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
    }

    pub(crate) fn set_seen(&mut self, name: &ResourceName, seen: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.seen = seen as u32;
        }
    }

    /// It is not in use any more: its version is not named.
    pub(crate) fn doubt(&mut self, name: &ResourceName) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.accepted = false;
        }
    }

    /// The same of all.
    pub(crate) fn doubt_all(&mut self) {
        self.entries.table.iter_mut().for_each(|entry| entry.1.accepted = false);
    }

    /// Forgets what `gone` names, and takes it from there if it is to be kept: then it is named in `kept`, once.
    pub(crate) fn delete(&mut self, keep: bool, gone: &mut Vec<ResourceName>, kept: &mut Vec<ResourceName>) {
        gone.retain(|name| match self.entries.get_mut(name).filter(|_| keep) {
            Some(entry) => {
                if !std::mem::replace(&mut entry.deleted, true) {
                    kept.push(name.clone());
                }
                false
            }
            None => {
                self.remove(name);
                true
            }
        });
    }

    /// A heartbeat: it lives until `expires` (rule 112).
    pub(crate) fn refresh(&mut self, name: &ResourceName, expires: Option<Instant>) {
        if self.get(name).is_some() {
            self.let_live(name, expires);
        }
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.next()
    }

    /// Forgets one resource whose TTL ran out (rule 115). Not what its user was sent anew and has no verdict on: if that
    /// is used, it is not over.
    pub(crate) fn pop_expired(
        &mut self,
        now: Instant,
        awaits_verdict: impl Fn(&ResourceName) -> bool,
    ) -> Option<ResourceName> {
        loop {
            let name = self.expiries.pop(now)?;
            if !awaits_verdict(&name) {
                self.lives.remove(&name);
                self.entries.remove(&name);
                return Some(name);
            }
            self.overdue.push(name);
        }
    }

    /// There is a verdict: what is over still, is over now.
    pub(crate) fn resume_expiries(&mut self) {
        for name in std::mem::take(&mut self.overdue) {
            if let Some(expires) = self.lives.get(&name) {
                self.expiries.insert(*expires, name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_requests_is_told_from_its_last_32_bits() {
        let resource = Frame::of_message(&"type.example.com/T".into(), b"body").into_resource(None);
        for seen in [0, 7, u64::from(u32::MAX), 1 << 32, (1 << 40) + 3] {
            let entry = Entry::new(&resource, seen);
            for later in [0, 1, 1 << 31, u64::from(u32::MAX)] {
                assert_eq!(entry.seen(seen + later), seen);
            }
        }
    }

    #[test]
    fn an_entry_is_a_block_of_64_bytes_with_its_name() {
        assert_eq!(size_of::<(ResourceName, Entry)>(), 64);
    }
}
