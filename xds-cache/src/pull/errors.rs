//! Telling errors.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use xdstp_uri::{NameKey, ResourceName};

use crate::cache::Cache;
use crate::change_set::Removals;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, SlotKey, Target, TypeKey};
use crate::resource_error::{Cause, Failed, ResourceError};
use crate::store::refuses;
use crate::subscribers::{Debt, Link, Names};

impl<V> Cache<V> {
    /// Visits the errors that a subscriber has not been told of. A visitor that returns `Break` has taken that one
    /// and stops before the next; true when it did.
    ///
    /// To be called when a [`pull`](Self::pull) had nothing to visit: in one response, no name may have both a
    /// resource and an error. As with a pull, those that remove what the subscriber may have can wait.
    pub fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        if !self.is_open(id) {
            return false;
        }
        let mut deferred = BTreeSet::new();
        let stopped = self.visit_errors(id, removals, &mut deferred, visitor);
        self.subscribers[id].owed.defer_errors(deferred);
        stopped
    }

    fn visit_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        deferred: &mut BTreeSet<ResourceName>,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        while let Some(name) = self.subscribers[id].owed.next_error() {
            if !self.owes_error(id, &name) {
                continue;
            }
            if removals == Removals::Defer && !self.breaks_nothing(id, &name) {
                deferred.insert(name);
                continue;
            }
            let beside = self.is_there(id, &name);
            let removed = !beside && !self.spares(id, &name);
            let subscriber = &mut self.subscribers[id];
            subscriber.owed.told_error(&name, removed);
            if removed {
                self.take_held(id, &name);
                self.unlook(id, &name);
            }
            let subscriber = &self.subscribers[id];
            let of = &self.store[subscriber.type_key];
            if let Some(failure) = of.errors.get(&name)
                && visitor(Failed { name: &name, error: &failure.error, beside, removed }).is_break()
            {
                return true;
            }
        }
        false
    }

    /// Visits why collections are not sent that a subscriber asks for, to be told beside what is sent of them all the same: who has
    /// that by its collection alone would take it for the answer. Of these `collections`, or of all that it asks for: a full state
    /// speaks of all. It counts as told by [`pull_errors`](Self::pull_errors). That there is no such glob is not told so: then there
    /// is nothing of it.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource, ResourceError};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut options = Options::default();
    /// options.authoritative = false;
    /// let mut cache = Cache::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// let mut edit = cache.edit(Instant::now());
    /// edit.fail(&clusters, &"*".parse().unwrap(), ResourceError::new(ResourceError::PERMISSION_DENIED, "ask by name"));
    /// edit.put(&clusters, &"cart".parse().unwrap(), Resource::unversioned(7, ()));
    /// let _ = edit.finish();
    /// let pulled = cache.pull(subscriber, Removals::Include, &mut |_| ControlFlow::Continue(()));
    /// assert!(pulled.refused);
    /// let mut told = Vec::new();
    /// cache.pull_refusals(subscriber, Some(&[Interest::Wildcard]), &mut |name, _| told.push(name.to_string()));
    /// assert_eq!(told, ["*"]);
    /// cache.pull_errors(subscriber, Removals::Include, &mut |_| unreachable!());
    /// ```
    pub fn pull_refusals(
        &mut self,
        id: SubscriberId,
        collections: Option<&[Interest]>,
        visitor: &mut dyn FnMut(&ResourceName, &ResourceError),
    ) {
        if self.refusals(id) == 0 {
            return;
        }
        let lists: Vec<_> = match collections {
            None => self.subscribers[id]
                .links
                .as_slice()
                .iter()
                .filter_map(|link| Some(self.subscribers.to_list(*link)?.0))
                .collect(),
            Some(collections) => {
                let type_key = self.subscribers[id].type_key;
                let known = collections.iter().filter_map(|collection| self.store.list_of(type_key, collection));
                known.filter(|list| self.subscribers.link_of(id, Target::List(*list)).is_some()).collect()
            }
        };
        for list in lists {
            let Some((name, failure)) = self.store.refusal(list).filter(|(name, of)| refuses(name, &of.error)) else {
                continue;
            };
            let owed = &mut self.subscribers[id].owed;
            if owed.clear(Debt::Error, name) {
                owed.told_error(name, false);
            }
            visitor(name, &failure.error);
        }
    }

    /// Of how many collections a subscriber may have to be told that they are not sent: of all that it asks for, if one of the type is
    /// not, and of none otherwise.
    pub fn refusals(&self, id: SubscriberId) -> usize {
        if !self.is_open(id) {
            return 0;
        }
        let subscriber = &self.subscribers[id];
        if self.store[subscriber.type_key].refused > 0 { subscriber.collections as usize } else { 0 }
    }

    /// Whether there is an error of a name, and the subscriber is one that is told of it: not while one of its links
    /// has yet to be pulled, or that one would tell it again.
    #[inline]
    pub(crate) fn owes_error(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let type_key = self.subscribers[id].type_key;
        !self.store[type_key].errors.is_empty() && self.owes_an_error(id, type_key, name)
    }

    fn owes_an_error(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        let of = &self.store[type_key];
        let Some(failure) = of.errors.get(name) else { return false };
        let list = match name.is_glob() {
            true => of.globs.get(name),
            false if name.as_str() == "*" => Some(&of.wildcard),
            false => name.glob_parent_key().and_then(|glob| of.globs.get(&glob as &dyn NameKey)),
        };
        let list = list.filter(|_| failure.listed);
        let targets = [list.copied().map(Target::List), self.store.slot_of(type_key, name).map(Target::Slot)];
        let links = targets.into_iter().flatten().filter_map(|target| self.subscribers.link_of(id, target));
        let mut told = links.map(|link| self.subscribers.told_up_to(link)).peekable();
        told.peek().is_some() && told.all(|cursor| cursor >= failure.seq)
    }

    /// Whether what a subscriber holds of a name must be left to it, though the name is not there: it said that it
    /// holds it, and the origin has an error that says nothing about that. That of the wildcard never does. Of what is unreadable
    /// it need not have said so: others may have told it.
    pub(crate) fn spares(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let subscriber = &self.subscribers[id];
        let holds = || match name.is_glob() {
            true => subscriber.owed.brought().of_glob(name).next().is_some(),
            false => subscriber.owed.owes(Debt::Comparison, name),
        };
        let failure = self.store[subscriber.type_key].errors.get(name);
        // Who reads no errors goes on to wait for what the origin was not asked for.
        name.as_str() == "*"
            || self.store.is_unreadable(subscriber.type_key, name)
            || failure
                .is_some_and(|failure| failure.error.cause == Cause::Unasked || failure.error.is_transient() && holds())
    }

    /// What a subscriber is to be told of a name it asked for, when it pulls.
    pub(crate) fn note_error(&mut self, link: LinkKey, at: SlotKey) {
        let slot = &self.store[at];
        let errors = &self.store[slot.type_key].errors;
        if !errors.is_empty()
            && let Some(failure) = errors.get(&slot.name)
            && failure.seq > self.subscribers.told_up_to(link)
        {
            let (name, seq) = (slot.name.clone(), failure.seq);
            self.subscribers[link].set_cursor(seq);
            let subscriber = self.subscribers[link].subscriber;
            self.subscribers[subscriber].owed.fail(name);
        }
    }

    /// The same of a glob. True when there were any.
    // Each update looks whether there are any.
    #[inline(always)]
    pub(crate) fn note_errors_within(&mut self, link: LinkKey, list: ListKey) -> bool {
        let failed = &self.store[list].failed;
        if failed.is_empty() {
            return false;
        }
        let Link { subscriber, .. } = self.subscribers[link];
        let told = self.subscribers.told_up_to(link);
        let news = failed.last_key_value().is_some_and(|(newest, _)| *newest > told);
        if news {
            let owed = &mut self.subscribers[subscriber].owed;
            failed.range(told + 1..).for_each(|(_, name)| owed.fail(name.clone()));
        }
        news
    }

    /// Who asks for a glob is told of all its errors, those too that its link has passed.
    pub(crate) fn repeat_errors_within(&mut self, link: LinkKey, list: ListKey) {
        let Link { subscriber, .. } = self.subscribers[link];
        let told = self.subscribers.told_up_to(link);
        let owed = &mut self.subscribers[subscriber].owed;
        self.store[list].failed.range(..=told).for_each(|(_, name)| owed.fail(name.clone()));
    }

    /// Whether a name, or a member of a collection, is there.
    pub(crate) fn is_there(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let type_key = self.subscribers[id].type_key;
        let globs = &self.store[type_key].globs;
        match name.is_glob() {
            true => globs.get(name).is_some_and(|list| !self.is_empty_for(id, *list)),
            false if name.as_str() == "*" => !self.is_empty_for(id, self.store[type_key].wildcard),
            false => {
                let at = self.store.slot_of(type_key, name).map(|at| self.store.resolve(at));
                at.is_some_and(|at| self.seen(id, at).is_some())
            }
        }
    }
}
