//! What a scope does with what it [holds of others](super::of_others): of those before the server that counts in the choice among
//! several (gRFC A71), or of the one whose place that took.
//!
//! It is served as it was. What the server that counts says is gone, goes; so does a member of a collection, once that is complete
//! without it. What is equal is no news, and nothing is gone for a silence.

use std::collections::{BTreeMap, HashSet};

use xds_transport::Frame;
use xdstp_cache::{Cause, Interest, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use super::of_others::OfOthers;
use super::{Scope, State};
use crate::federation::changes::Changes;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};

impl Scope {
    /// What a server says from now on is that of another one, in the place of the one that was there. What is here is served, and no
    /// version of the type is that of the other.
    pub(crate) fn another_server(&self, server: usize) {
        let mut state = self.lock();
        if !state.heeds(server) {
            return;
        }
        // How far the one before answered says nothing of this one.
        state.cache.origin_lost();
        if let Some(recall) = &mut state.recall {
            recall.is_of_another();
        }
        let turn = state.of_others.begin();
        drop(state);
        self.note_held(turn);
        self.ask();
    }

    /// Whether what is here may be of different servers.
    pub(crate) fn may_hold_of_others(&self) -> bool {
        self.lock().may_hold_of_others()
    }

    /// What is here is of others than the server that counts since this turn.
    pub(super) fn note_held(&self, turn: u64) {
        let mut held: BTreeMap<TypeUrl, HashSet<ResourceName>> = BTreeMap::new();
        let name = |stored: xdstp_cache::Stored<'_, Frame>| {
            stored.resource.is_some().then(|| (stored.type_url.clone(), stored.name.clone()))
        };
        self.visit_stored(name, |stored| {
            if let Some((type_url, name)) = stored {
                held.entry(type_url).or_default().insert(name);
            }
        });
        let of_others = &mut self.lock().of_others;
        if of_others.turns == turn {
            // Beside what was served meanwhile of what was known before.
            held.into_iter().for_each(|(type_url, names)| of_others.held.entry(type_url).or_default().extend(names));
        }
    }
}

impl State {
    /// Whether what is here may be of different servers, whose versions say nothing of each other.
    pub(super) fn may_hold_of_others(&self) -> bool {
        self.several.is_some() || self.of_others.turns > 0
    }

    /// What the full state of a server does not have that surely answers it, is gone, whoever gave it, or said what is wrong with it:
    /// another server, or the same before a restart.
    pub(super) fn lose_lacking(&self, type_url: &TypeUrl, changes: &mut Changes) {
        let lacking = std::mem::take(&mut changes.lacking);
        #[cfg(test)]
        if planted(Fault::KeepLacking) {
            return;
        }
        let is_said = |error: &ResourceError| !matches!(error.cause, Cause::Silence | Cause::Deleted | Cause::Unasked);
        let is_known = |name: &ResourceName| {
            self.cache.resource(type_url, name).is_some() || self.cache.error(type_url, name).is_some_and(is_said)
        };
        changes.removed.extend(lacking.into_iter().filter(is_known));
    }

    /// What other servers gave and the one that counts does not have: of a collection that is complete it has said all. What it
    /// says nothing else of is not missing for that.
    pub(super) fn forsake(&mut self, type_url: &TypeUrl, changes: &mut Changes) {
        let Self { of_others: OfOthers { held, only_gives, .. }, demand, cache, .. } = self;
        let Some(of_others) = held.get_mut(type_url) else { return };
        changes.missing.retain(|name| !of_others.contains(name));
        // What each client fetches for itself it fetches from there, too.
        let led = demand.as_ref().is_some_and(|demand| demand.leads() > 0);
        let private = changes.changed.iter_mut().filter(|changed| led && changed.resource.value.do_not_cache());
        private.filter(|changed| of_others.contains(&changed.name)).for_each(|changed| changed.touched = true);
        if *only_gives {
            let changed: HashSet<_> = changes.changed.iter().map(|changed| &changed.name).collect();
            of_others.retain(|name| !changed.contains(name));
            changes.removed.retain(|name| !of_others.contains(name));
            changes.errors.retain(|(name, _)| !of_others.contains(name));
            return;
        }
        let said = changes.changed.iter().map(|changed| &changed.name).chain(&changes.removed);
        // Of what it could not be asked for it said nothing.
        let errors = changes.errors.iter().filter(|(_, error)| error.cause != Cause::Unasked);
        let said = said.chain(errors.map(|(name, _)| name));
        said.chain(changes.refreshed.iter().map(|(name, _)| name)).for_each(|name| _ = of_others.remove(name));
        let demand = demand.as_ref();
        #[cfg(test)]
        if planted(Fault::KeepMembersOfOthers) {
            return;
        }
        for collection in &changes.complete {
            if !demand.is_some_and(|demand| demand.wants(type_url, collection)) {
                continue;
            }
            let within = |name: &ResourceName| match collection {
                Interest::Name(glob) => name.answers(glob),
                Interest::Wildcard => cache.wildcard_covers_xdstp() || name.is_opaque(),
            };
            let is_asked = |name: &ResourceName| demand.is_some_and(|demand| demand.asks_for_itself(type_url, name));
            let gone: Vec<_> = of_others.iter().filter(|name| within(name) && !is_asked(name)).cloned().collect();
            gone.iter().for_each(|name| _ = of_others.remove(name));
            changes.removed.extend(gone);
        }
        if of_others.is_empty() {
            held.remove(type_url);
        }
    }

    /// What is as it is held is no news, whatever version another server has of it.
    pub(super) fn keep_versions(&self, type_url: &TypeUrl, changes: &mut Changes) {
        for changed in changes.changed.iter_mut().filter(|_| self.may_hold_of_others()) {
            let held = self.cache.resource(type_url, &changed.name);
            if let Some(held) = held.filter(|held| held.digest() == changed.resource.digest()) {
                changed.resource.version = held.version.clone();
            }
        }
    }
}
