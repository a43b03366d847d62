//! The version of a whole type, where the origin gave none: the same on every relay.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use xdstp_cache::{SubscriberId, Version};
use xdstp_uri::ResourceName;

use crate::frame::digest;
use crate::server::source::Source;

/// An order-free hash over (name, version): the sum, modulo 2^128, of the first 128 bits of SHA-256
/// over each canonical name and version, either preceded by its length as eight bytes, big end
/// first; written as 32 hex digits.
///
/// Part of the interop contract: a SotW client may move between relays that got the resources over
/// delta (rules 33, 34). A weaker hash will not do: summed, its differences cancel out, and two
/// resources that go from version 1 to 2 must not leave the version of their type what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeHash(u128);

impl TypeHash {
    pub(crate) fn add(&mut self, name: &ResourceName, version: &Version) {
        self.0 = self.0.wrapping_add(share(name, version));
    }

    fn subtract(&mut self, name: &ResourceName, version: &Version) {
        self.0 = self.0.wrapping_sub(share(name, version));
    }
}

/// The hash of what one session is interested in, moved by what changes: to tell a client of many names one of them
/// costs the same whatever the others are.
#[derive(Default)]
pub(crate) struct RunningHash {
    sum: TypeHash,
    /// What is in the sum.
    versions: HashMap<ResourceName, Version>,
    /// Some of it was asked for by an alias, or as a member.
    others: bool,
    /// Not every change was noted.
    stale: bool,
    /// It has what was not told then.
    ahead: bool,
    /// How far its source had changed when it was summed up.
    at: Option<u64>,
}

impl RunningHash {
    /// A resource was sent to who asked for `names`.
    pub(crate) fn put(&mut self, name: &ResourceName, version: &Version, names: &BTreeSet<ResourceName>) {
        self.others |= !names.contains(name);
        match self.versions.get_mut(name) {
            Some(before) if before == version => {}
            Some(before) => {
                self.sum.subtract(name, before);
                self.sum.add(name, version);
                *before = version.clone();
            }
            None => {
                self.sum.add(name, version);
                self.versions.insert(name.clone(), version.clone());
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &ResourceName) {
        match self.versions.remove(name) {
            Some(before) => self.sum.subtract(name, &before),
            // It may be an alias of what is in the sum.
            None => self.stale |= self.others,
        }
    }

    /// More is to be told than was noted, or all is by now: where the source did not change since the last part, that has
    /// summed it up already.
    pub(crate) fn told(&mut self, all: bool, at: Option<u64>) {
        let was_ahead = std::mem::replace(&mut self.ahead, !all);
        self.stale |= (was_ahead || !all) && (at.is_none() || at != self.at);
    }

    /// More changed than was noted.
    pub(crate) fn invalidate(&mut self) {
        self.stale = true;
    }

    /// No version is computed for now.
    pub(crate) fn rest(&mut self) {
        *self = Self { stale: true, ..Self::default() };
    }

    pub(crate) fn of(
        &mut self,
        id: SubscriberId,
        names: &BTreeSet<ResourceName>,
        source: &mut impl Source,
    ) -> TypeHash {
        if std::mem::take(&mut self.stale) {
            self.at = source.changes(id);
            let mut gone = self.versions.clone();
            source.visit(id, &mut |name, resource| {
                gone.remove(name);
                self.put(name, &resource.version, names);
            });
            gone.keys().for_each(|name| self.remove(name));
        }
        self.sum
    }
}

fn share(name: &ResourceName, version: &Version) -> u128 {
    digest(&[name.as_str().as_bytes(), version.as_str().as_bytes()])
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
