//! What its user holds of one type: not the resources, only what tells them apart.

use std::collections::HashMap;
use std::time::Instant;

use xdstp_cache::{Resource, Version};
use xdstp_uri::ResourceName;

use crate::deadlines::Deadlines;
use crate::frame::Frame;

#[derive(Debug, Default)]
pub(super) struct Held {
    entries: HashMap<ResourceName, Entry>,
    expiries: Deadlines<ResourceName>,
    /// What is over, but for something newer that waits for its verdict.
    overdue: Vec<ResourceName>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) version: Version,
    digest: u128,
    /// The response that brought it was acknowledged: the version may be named to an origin (rule 30).
    pub(super) accepted: bool,
    /// How many requests had been sent when it last came.
    pub(super) seen: u64,
    /// It may be asked for by other names than its own.
    pub(super) has_aliases: bool,
    expires: Option<Instant>,
    /// The origin said that it is gone, and it stays in use.
    deleted: bool,
}

impl Entry {
    pub(super) fn new(resource: &Resource<Frame>, seen: u64) -> Self {
        Self {
            version: resource.version.clone(),
            digest: resource.digest,
            accepted: false,
            seen,
            has_aliases: resource.value.aliases().next().is_some(),
            expires: resource.value.expires(),
            deleted: false,
        }
    }

    /// The same, with the fate of its response known.
    pub(super) fn accepted(self, accepted: bool) -> Self {
        Self { accepted, ..self }
    }

    /// Whether it is over at some time, unless it is refreshed.
    pub(super) fn expires(&self) -> bool {
        self.expires.is_some()
    }

    /// It lives until `expires`.
    pub(super) fn refresh(&mut self, expires: Option<Instant>) {
        self.expires = expires;
    }

    /// Whether the other has the same content at the same version.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.version == other.version && self.digest == other.digest
    }
}

impl Held {
    pub(super) fn get(&self, name: &ResourceName) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceName, &Entry)> {
        self.entries.iter()
    }

    pub(super) fn insert(&mut self, name: ResourceName, entry: Entry) {
        self.remove(&name);
        if let Some(expires) = entry.expires {
            self.expiries.insert(expires, name.clone());
        }
        self.entries.insert(name, entry);
    }

    pub(super) fn remove(&mut self, name: &ResourceName) {
        if let Some(expires) = self.entries.remove(name).and_then(|entry| entry.expires) {
            self.expiries.remove(expires, name.clone());
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        let gone: Vec<_> = self.entries.keys().filter(|name| !keep(name)).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
    }

    pub(super) fn set_seen(&mut self, name: &ResourceName, seen: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.seen = seen;
        }
    }

    /// Forgets what `gone` names, and takes it from there if it is to be kept: then it is named in `kept`, once.
    pub(super) fn delete(&mut self, keep: bool, gone: &mut Vec<ResourceName>, kept: &mut Vec<ResourceName>) {
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
    pub(super) fn refresh(&mut self, name: &ResourceName, expires: Option<Instant>) {
        if let Some(mut entry) = self.entries.get(name).cloned() {
            entry.refresh(expires);
            self.insert(name.clone(), entry);
        }
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.next()
    }

    /// Forgets one resource whose TTL ran out (rule 115). Not what its user was sent anew and has no verdict on: if that
    /// is used, it is not over.
    pub(super) fn pop_expired(
        &mut self,
        now: Instant,
        awaits_verdict: impl Fn(&ResourceName) -> bool,
    ) -> Option<ResourceName> {
        loop {
            let name = self.expiries.pop(now)?;
            if !awaits_verdict(&name) {
                self.entries.remove(&name);
                return Some(name);
            }
            self.overdue.push(name);
        }
    }

    /// There is a verdict: what is over still, is over now.
    pub(super) fn resume_expiries(&mut self) {
        for name in std::mem::take(&mut self.overdue) {
            if let Some(expires) = self.entries.get(&name).and_then(|entry| entry.expires) {
                self.expiries.insert(expires, name);
            }
        }
    }
}
