//! What there is of what was asked for, by which names it is covered, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use super::event::{Failure, What};

/// Resources, and whoever of what was asked for, by its place, has them.
#[derive(Debug, Default)]
pub(super) struct Covered {
    held: BTreeMap<ResourceName, Held>,
    /// What is wrong with what is used on, by its name.
    amiss: BTreeMap<ResourceName, Amiss>,
}

/// A resource as it came last.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) version: Version,
    pub(crate) any: Bytes,
    server: usize,
    stale: bool,
    /// The places of what was asked for that cover it.
    by: BTreeSet<usize>,
}

#[derive(Debug)]
struct Amiss {
    failure: Failure,
    /// The places that were told so.
    by: BTreeSet<usize>,
}

impl Covered {
    /// That what was wrong is over is told before what came.
    pub(super) fn put(&mut self, place: usize, name: &ResourceName, mut held: Held) -> Vec<What> {
        held.by.insert(place);
        let mut told: Vec<What> = self.well(place, name).into_iter().collect();
        let put = What::Put { version: held.version.clone(), any: held.any.clone(), stale: held.stale };
        match self.held.get_mut(name) {
            Some(before) if before.is_like(&held) => {
                before.by.insert(place);
                if before.stale && !held.stale {
                    before.stale = false;
                    told = vec![What::Ambient(None)];
                }
            }
            before => {
                held.by.extend(before.iter().flat_map(|before| &before.by));
                self.held.insert(name.clone(), held);
                told.push(put);
            }
        }
        told
    }

    /// One name does not cover a resource any more. It is gone if none does.
    pub(super) fn gone(&mut self, place: usize, name: &ResourceName) -> Option<What> {
        let _ = self.well(place, name);
        let held = self.held.get_mut(name)?;
        held.by.remove(&place);
        if held.by.is_empty() { self.held.remove(name).map(|_| What::Removed) } else { None }
    }

    /// Something is wrong with what is used on, which is said once.
    pub(super) fn amiss(&mut self, place: usize, name: &ResourceName, failure: Failure) -> Option<What> {
        let by = BTreeSet::new();
        let is_new = self.amiss.get(name).is_none_or(|amiss| amiss.failure != failure);
        let amiss = self.amiss.entry(name.clone()).or_insert_with(|| Amiss { failure: failure.clone(), by });
        amiss.by.insert(place);
        amiss.failure = failure.clone();
        is_new.then_some(What::Ambient(Some(failure)))
    }

    /// Nothing is wrong with it any more, if anything was, and nobody else was told so.
    pub(super) fn well(&mut self, place: usize, name: &ResourceName) -> Option<What> {
        let amiss = self.amiss.get_mut(name)?;
        amiss.by.remove(&place);
        if amiss.by.is_empty() { self.amiss.remove(name).map(|_| What::Ambient(None)) } else { None }
    }

    /// What one name covers is not stale any more: what was told as that, and of which server.
    pub(super) fn confirmed(&mut self, place: usize) -> Vec<(ResourceName, usize)> {
        let stale = self.held.iter_mut().filter(|(_, held)| held.stale && held.by.contains(&place));
        let told = stale.map(|(name, held)| {
            held.stale = false;
            (name.clone(), held.server)
        });
        told.collect()
    }

    /// What is from before, and of which server: nobody has said yet that it is so.
    pub(super) fn stale(&self) -> impl Iterator<Item = (&ResourceName, usize)> {
        self.held.iter().filter(|(_, held)| held.stale).map(|(name, held)| (name, held.server))
    }

    /// Whether a name covers a resource that there is.
    pub(super) fn has(&self, place: usize, name: &ResourceName) -> bool {
        self.held.get(name).is_some_and(|held| held.by.contains(&place))
    }

    /// Whether any of these does so for any.
    pub(super) fn has_any(&self, is_one: impl Fn(usize) -> bool) -> bool {
        self.held.values().flat_map(|held| &held.by).any(|place| is_one(*place))
    }

    /// All that a name covers.
    pub(super) fn of(&self, place: usize) -> Vec<ResourceName> {
        self.held.iter().filter(|(_, held)| held.by.contains(&place)).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn into_held(self) -> BTreeMap<ResourceName, Held> {
        self.held
    }
}

impl Held {
    pub(super) fn new(version: Version, any: Bytes, server: usize, stale: bool) -> Self {
        Self { version, any, server, stale, by: BTreeSet::new() }
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.version, &self.any, self.server) == (&other.version, &other.any, other.server)
    }
}
