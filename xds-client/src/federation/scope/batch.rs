//! What of an origin's changes is stored under one hold of a scope's lock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use xds_transport::Frame;
use xds_transport::client::Changed;
use xdstp_cache::{Cause, Edit, Interest, Outcome, ResourceError, TypeUrl, Version};
use xdstp_uri::ResourceName;

use super::BATCH;
use super::restated::Restated;
use super::said_gone::SaidGone;
use super::stub::{may_be_held, stub};
use crate::federation::demand::Demand;
use crate::federation::markers::is_marker;

/// What is yet to be stored.
pub(super) struct Pending {
    changed: IntoIter<Changed>,
    /// And whether it is gone by a word of the origin.
    removed: IntoIter<(ResourceName, bool)>,
    errors: IntoIter<(ResourceName, ResourceError)>,
    /// Those of collections, in the answer that has them empty: an answer ends the errors before it.
    errors_of_answered: Vec<(ResourceName, ResourceError)>,
    refreshed: IntoIter<(ResourceName, Duration)>,
}

impl Pending {
    pub(super) fn new(
        changed: Vec<Changed>,
        (removed, said, silent): (Vec<ResourceName>, bool, Vec<ResourceName>),
        (errors, complete): (Vec<(ResourceName, ResourceError)>, &[Interest]),
        refreshed: Vec<(ResourceName, Duration)>,
    ) -> Self {
        let is_answered = |name: &ResourceName| name.is_glob() && complete.contains(&Interest::Name(name.clone()));
        let (errors_of_answered, errors): (Vec<_>, Vec<_>) =
            errors.into_iter().partition(|(name, _)| is_answered(name));
        // What watches are told is gone by a word, and then what is by a silence.
        let removed = removed.into_iter().map(|name| (name, said));
        let removed: Vec<_> = removed.chain(silent.into_iter().map(|name| (name, false))).collect();
        Self {
            changed: changed.into_iter(),
            removed: removed.into_iter(),
            errors: errors.into_iter(),
            errors_of_answered,
            refreshed: refreshed.into_iter(),
        }
    }

    /// Stores as many as may be under one hold of the lock. Whether that was all.
    pub(super) fn store(&mut self, batch: &mut Batch<'_>, now: Instant) -> bool {
        let Self { changed, removed, errors, refreshed, .. } = self;
        let refuses = batch.edit.refuses(batch.type_url);
        changed.by_ref().take(BATCH).for_each(|changed| batch.put(changed, refuses));
        if changed.len() == 0 {
            removed.by_ref().take(BATCH).for_each(|(name, said)| batch.remove(name, said));
        }
        // What an error is about may be removed too, and a removal ends an error.
        if changed.len() == 0 && removed.len() == 0 {
            errors.by_ref().take(BATCH).for_each(|(name, error)| batch.fail(name, error));
        }
        refreshed.by_ref().take(BATCH).for_each(|(name, ttl)| batch.refresh(&name, ttl, now));
        changed.len() + removed.len() + errors.len() + refreshed.len() == 0
    }

    pub(super) fn errors_of_answered(&mut self) -> Vec<(ResourceName, ResourceError)> {
        std::mem::take(&mut self.errors_of_answered)
    }
}

/// One hold of the lock.
pub(super) struct Batch<'a> {
    pub(super) type_url: &'a TypeUrl,
    pub(super) edit: Edit<'a, Frame>,
    pub(super) demand: Option<&'a Demand>,
    /// Something of the type is being given up.
    pub(super) gives_up: bool,
    pub(super) said_gone: &'a mut SaidGone,
    pub(super) restated: &'a mut Restated,
    /// What lost an alias: it may be all that it was wanted by. So may be what came as it was given up.
    pub(super) bereft: &'a mut BTreeSet<ResourceName>,
    /// Collections that the server does not send.
    pub(super) refused: &'a BTreeSet<Interest>,
    /// What comes because another scope asks for it.
    pub(super) asked_elsewhere: &'a BTreeSet<ResourceName>,
    /// What changed may be asked for by its aliases.
    pub(super) by_alias: bool,
    /// The scope is shared, and holds only stubs of what must not be.
    pub(super) shared: bool,
    /// What is here may be of different servers.
    pub(super) of_others: bool,
    /// Who uses the scope is one program.
    pub(super) watched: bool,
}

impl Batch<'_> {
    /// It `refuses` a collection: what comes may end that.
    fn put(&mut self, Changed { name, resource, touched, .. }: Changed, refuses: bool) {
        let aliases: Vec<_> = resource.value.aliases().filter(|_| self.by_alias).collect();
        if refuses {
            self.recover(&name, &aliases);
        }
        let Self { type_url, edit, .. } = self;
        let resource = if self.shared && resource.value.do_not_cache() {
            stub(&resource, edit.resource(type_url, &name).is_some_and(may_be_held))
        } else {
            resource
        };
        let (ttl, expires) = (resource.value.ttl(), resource.value.expires());
        let owners = aliases.iter().filter_map(|alias| edit.canonical(type_url, alias));
        self.bereft.extend(owners.filter(|owner| **owner != name).cloned());
        if self.gives_up {
            self.bereft.insert(name.clone());
        }
        aliases.iter().chain([&name]).for_each(|name| self.said_gone.came(type_url, name));
        if edit.put_with_aliases(type_url, &name, aliases, resource) == Outcome::ChangedAtSameVersion {
            self.restated.add(Restated { resources: 1, first: Some(name.clone()) });
        }
        // What another server gave may be equal, and live for another time.
        if (touched || self.of_others)
            && let Some(held) = edit.value_mut(type_url, &name)
        {
            held.refresh(ttl, expires);
        }
        // Envoy waits for what it is sent again; to a program what is as it was is no news (rule 43).
        if touched && !self.watched {
            edit.touch(type_url, &name);
        }
    }

    /// It comes, and nobody asks for just that: the collection that it comes with is not refused any more, if its server does not say
    /// so still. Before anybody sees it, who would take it for something that others asked for.
    fn recover(&mut self, name: &ResourceName, aliases: &[ResourceName]) {
        if aliases.iter().chain([name]).any(|name| self.is_asked(name)) {
            return;
        }
        let glob = name.glob_parent().map(Interest::Name);
        let is_wanted = |glob: &Interest| self.demand.is_some_and(|demand| demand.wants(self.type_url, glob));
        let by_wildcard = !glob.as_ref().is_some_and(is_wanted) && !self.asked_elsewhere.contains(name);
        for collection in glob.into_iter().chain(by_wildcard.then_some(Interest::Wildcard)) {
            if !self.refused.contains(&collection) {
                self.edit.recover(self.type_url, &collection);
            }
        }
    }

    /// By a word of the origin, as far as `said`.
    fn remove(&mut self, name: ResourceName, said: bool) {
        self.bereft.extend(self.edit.canonical(self.type_url, &name).cloned());
        if is_marker(&name) {
            // It is for the relay that asked for it, and nobody has it: said to all it would go through the whole tree.
            return self.edit.remove_by_name(self.type_url, &name);
        }
        if self.is_asked(&name) {
            self.edit.deny(self.type_url, &name);
        } else {
            self.edit.remove(self.type_url, &name);
        }
        if said {
            self.said_gone.went(&mut self.edit, self.type_url, name);
        }
    }

    fn fail(&mut self, name: ResourceName, error: ResourceError) {
        let collection = Interest::from(name.clone());
        // That a collection is refused says nothing of what is in it.
        let says_gone = !error.is_transient()
            && (!collection.is_collection()
                || collection != Interest::Wildcard && error.code == ResourceError::NOT_FOUND);
        let said = self.watched && error.cause == Cause::Said && says_gone;
        // Its server has spoken of what is used on.
        if self.watched && error.cause == Cause::Deleted {
            self.edit.confirm(self.type_url, &Interest::Name(name.clone()));
        }
        match self.is_asked(&name) {
            true if self.watched => self.edit.fail_beside(self.type_url, &name, error),
            true => self.edit.fail_by_name(self.type_url, &name, error),
            false => self.edit.fail(self.type_url, &name, error),
        }
        if said {
            self.said_gone.went(&mut self.edit, self.type_url, name);
        }
    }

    fn refresh(&mut self, name: &ResourceName, ttl: Duration, now: Instant) {
        if let Some(held) = self.edit.value_mut(self.type_url, name) {
            held.refresh(Some(ttl), now.checked_add(ttl));
        }
    }

    /// Forgets what nothing asks for by any of its names, of what may have lost the last of them.
    pub(super) fn forget_bereft(&mut self) {
        let Self { type_url, edit, demand, .. } = self;
        for name in std::mem::take(self.bereft) {
            forget_unwanted(edit, *demand, type_url, name);
        }
    }

    /// An answer may come in as it is given up: nothing would end what is known then. The errors are those of what is answered.
    pub(super) fn answer(
        &mut self,
        begun: &[Interest],
        complete: &[Interest],
        errors: Vec<(ResourceName, ResourceError)>,
    ) {
        let Self { type_url, edit, demand, .. } = self;
        let is_wanted = |collection: &&Interest| demand.is_none_or(|demand| demand.wants(type_url, collection));
        begun.iter().filter(is_wanted).for_each(|collection| edit.begun(type_url, collection));
        for collection in complete.iter().filter(is_wanted) {
            edit.answered(type_url, collection);
            edit.confirm(type_url, collection);
        }
        errors.into_iter().for_each(|(name, error)| self.fail(name, error));
    }

    /// What is here is not of one version any more, once another server than the one that gave it speaks. Before anybody sees any of
    /// that.
    pub(super) fn doubt_version(&mut self) {
        if self.of_others && self.demand.is_some_and(|demand| demand.wants_type(self.type_url)) {
            self.edit.set_type_version(self.type_url, None);
        }
    }

    /// With the last of what it is the version of: nobody must see it beside older content.
    pub(super) fn set_versions(
        &mut self,
        of_type: Option<&Version>,
        of_system: Option<&Version>,
        system_versions: &mut BTreeMap<TypeUrl, Version>,
    ) {
        if !self.demand.is_some_and(|demand| demand.wants_type(self.type_url)) {
            return;
        }
        if of_type.is_some() {
            self.edit.set_type_version(self.type_url, of_type.cloned());
        }
        if let Some(version) = of_system {
            system_versions.insert(self.type_url.clone(), version.clone());
        }
    }

    /// Who asked for just this may have left, and decides how much of it there is.
    fn is_asked(&self, name: &ResourceName) -> bool {
        self.demand.is_some_and(|demand| demand.asks_for_itself(self.type_url, name))
    }
}

/// Forgets a resource that nothing asks for by any of its names.
fn forget_unwanted(edit: &mut Edit<'_, Frame>, demand: Option<&Demand>, type_url: &TypeUrl, name: ResourceName) {
    let (Some(demand), Some(resource)) = (demand, edit.resource(type_url, &name)) else { return };
    let aliases = resource.value.aliases().filter(|alias| edit.canonical(type_url, alias) == Some(&name));
    if !aliases.chain([name.clone()]).any(|name| demand.wants_by(type_url, &name)) {
        edit.evict(type_url, &Interest::Name(name));
    }
}
