//! What a server gets from its cache.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use xds_transport::Frame;
use xds_transport::server::{Source, Tally};
use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, ResourceError, Selector, SubscriberId, TypeUrl,
    Unanswered, Version, Visited,
};
use xdstp_uri::ResourceName;

use super::Fault;

/// A cache whose books are wrong in one way.
pub(crate) struct Books<'a> {
    pub(crate) cache: &'a mut Cache<Frame>,
    pub(crate) memory: &'a mut Memory,
    pub(crate) fault: Option<Fault>,
}

/// What was said before, for faults that begin there.
#[derive(Default)]
pub(crate) struct Memory {
    /// By what everybody selects among variants.
    pub(crate) selector: Selector,
    types: BTreeMap<SubscriberId, TypeUrl>,
    /// What a client brought along, until it is told of it.
    held: BTreeMap<SubscriberId, BTreeMap<ResourceName, Version>>,
    /// Names and globs that were told as failing, and whether for good.
    failing: BTreeMap<SubscriberId, BTreeMap<ResourceName, bool>>,
}

impl Books<'_> {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Whether anybody brought along what is there at another version, and was not told so yet.
    fn any_held_changed(&self) -> bool {
        let changed = |id, name: &ResourceName, version: &Version| {
            let mut changed = false;
            Source::look_up(&*self.cache, id, name, &mut |there| changed = there.version != *version);
            changed
        };
        self.memory.held.iter().any(|(id, held)| held.iter().any(|(name, version)| changed(*id, name, version)))
    }

    /// The names that a client is not told what became of after their errors.
    fn lost(&self, id: SubscriberId) -> BTreeSet<ResourceName> {
        let Memory { types, failing, .. } = &self.memory;
        let error = |name| types.get(&id).and_then(|of| self.cache.error(of, name));
        let passes = |name| error(name).is_some_and(ResourceError::is_transient);
        let asked_for = |name: &ResourceName| self.cache.is_subscribed(id, &Interest::Name(name.clone()));
        let told = failing.get(&id).into_iter().flatten();
        let lost = told.filter(|(name, for_good)| match self.fault {
            Some(Fault::LoseEndOfGlobErrors) => name.is_glob(),
            Some(Fault::LoseEndOfMemberErrors) => !name.is_glob() && !asked_for(name),
            Some(Fault::LoseReturnOfDenied) => **for_good && passes(name),
            _ => false,
        });
        lost.map(|(name, _)| name.clone()).collect()
    }
}

impl Source for Books<'_> {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let id = self.cache.open_selecting(type_url, &self.memory.selector);
        self.memory.types.insert(id, type_url.clone());
        id
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        let others = Selector::Parameters([("env", "test"), ("v", "2")].into_iter().collect());
        let selector = if self.has(Fault::SelectForOthers) { &others } else { selector };
        let id = self.cache.open_selecting(type_url, selector);
        self.memory.types.insert(id, type_url.clone());
        id
    }

    fn visit_selected(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(Visited<'_, Frame>)) -> Unanswered {
        Source::visit_selected(self.cache, id, visitor)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        if !self.has(Fault::LeakSubscriber) {
            Source::close(self.cache, id, tally);
        }
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if let Interest::Name(name) = interest
            && let Some(glob) = name.glob_parent()
            && self.has(Fault::SubscribeToMore)
        {
            self.cache.subscribe(id, &Interest::Name(glob));
        }
        let again = self.cache.is_subscribed(id, interest);
        !(again && self.has(Fault::SwallowResubscribe)) && Source::subscribe(self.cache, id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        self.has(Fault::DropUnsubscribe) || Source::unsubscribe(self.cache, id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        self.memory.held.insert(id, held.iter().cloned().collect());
        if !self.has(Fault::ForgetInitialVersions) {
            Source::resume(self.cache, id, held);
        }
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let early = self.has(Fault::RemoveBeforeHeldChanges) && self.any_held_changed();
        let early = early || self.has(Fault::RemoveBeforeOthersAdd);
        let removals = if early { Removals::Include } else { removals };
        let lost = self.lost(id);
        let (no_tombstones, denied) = (self.has(Fault::LoseTombstone), self.has(Fault::LoseReturnOfDenied));
        let (forgets, loses) = (self.has(Fault::ForgetVariant), self.has(Fault::LoseVariant));
        let mut held = self.memory.held.get_mut(&id);
        let mut visitor = |pull: Pull<'_, Frame>| {
            let (Pull::Put { name, .. } | Pull::Removed { name, .. }) = &pull else { return visitor(pull) };
            held.as_mut().map(|held| held.remove(*name));
            match &pull {
                Pull::Put { variant: Some(_), replaces: [_, ..], .. } if forgets => ControlFlow::Continue(()),
                Pull::Removed { variants: [_, ..], .. } if loses => ControlFlow::Continue(()),
                Pull::Removed { .. } if no_tombstones => ControlFlow::Continue(()),
                Pull::Removed { name, .. } if !denied && lost.contains(*name) => ControlFlow::Continue(()),
                Pull::Put { name, .. } if denied && lost.contains(*name) => ControlFlow::Continue(()),
                _ => visitor(pull),
            }
        };
        Source::pull(self.cache, id, removals, &mut visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Source::visit(self.cache, id, visitor)
    }

    fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        if !self.has(Fault::RemoveWithAdditions) {
            Source::visit_leaving(self.cache, id, removals, visitor);
        }
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        self.cache.has_work(id)
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        !self.has(Fault::PassOverFullWindow) && self.cache.has_additions(id)
    }

    fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.cache.covers(id, name)
    }

    fn newest_removal(&self, id: SubscriberId) -> u64 {
        self.cache.newest_removal(id)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        let failing = self.memory.failing.entry(id).or_default();
        let mut visitor = |failed: Failed<'_>| {
            failing.insert(failed.name.clone(), !failed.error.is_transient());
            visitor(failed)
        };
        self.fault != Some(Fault::TellNoErrors) && Source::pull_errors(self.cache, id, removals, &mut visitor)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        let mut look = |resource: &Resource<Frame>| match self.has(Fault::RefreshForOthers) {
            true => {
                let mut own = resource.clone();
                own.value = own.value.until(None);
                look(&own);
            }
            false => look(resource),
        };
        if !self.has(Fault::RefreshNothing) {
            Source::look_up(self.cache, id, name, &mut look);
        }
    }

    fn type_version(&self, id: SubscriberId) -> Option<Version> {
        let version = Source::type_version(self.cache, id);
        if self.has(Fault::StaleTypeVersion) { version.map(|_| "t1".into()) } else { version }
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        !self.has(Fault::ForgetDependents) && self.cache.resend(id, name)
    }
}
