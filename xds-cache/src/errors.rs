//! Errors of resources and globs, told to who asked for them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

use xdstp_uri::{NameKey, ResourceName};

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, SlotKey, Target, TypeKey};
use crate::links::{Answer, Gone, Link, NEVER, Seq, State};
use crate::pull::Removals;
use crate::resource::TypeUrl;
use crate::resource_error::{Failed, Failure, ResourceError};

impl<V> Cache<V> {
    /// Records why a resource, or a whole glob, is not sent (TP3). Who asked for the name, or for a glob that it
    /// belongs to, is told once, by [`pull_errors`](Self::pull_errors); the same error again is not told again.
    ///
    /// The error stays beside a resource that is there, which is served as before: whether it may still be used is
    /// its client's decision. `NOT_FOUND` alone is a removal as well. An [`upsert_raw`](Self::upsert_raw) or
    /// [`remove`](Self::remove) of the name ends the error; that of a glob ends with the next change of a member or when
    /// the glob is [`answered`](Self::answered).
    ///
    /// TP3 has no errors for a wildcard: `*` is ignored here, and who asked for nothing but a wildcard is told of none.
    /// A relay's cache ignores errors of names that nobody asked for.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, ResourceError};
    ///
    /// let (now, mut woken) = (Instant::now(), Vec::new());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart: xdstp_uri::ResourceName = "cart".parse().unwrap();
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Name(cart.clone()));
    ///
    /// let error = ResourceError::new(ResourceError::PERMISSION_DENIED, "not yours");
    /// cache.fail(&clusters, &cart, error.clone(), now, &mut woken);
    ///
    /// // Changes first, of which there are none; errors after them, in a response of their own.
    /// cache.pull(subscriber, Removals::Include, &mut |_| unreachable!());
    /// let mut told = 0;
    /// cache.pull_errors(subscriber, Removals::Include, &mut |failed| {
    ///     assert_eq!((failed.name, failed.error, failed.removed), (&cart, &error, true));
    ///     told += 1;
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(told, 1);
    /// ```
    pub fn fail(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        error: ResourceError,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.fail_asked(type_url, name, error, false, now, woken);
    }

    /// Does what [`fail`](Self::fail) does, for the answer to who asked for just this name. Of such names that are not
    /// there, those who want the glob that they belong to are told no more errors than it keeps
    /// [tombstones](crate::Options::tombstones), as with [`deny`](Self::deny).
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, ResourceError};
    ///
    /// let (now, mut woken) = (Instant::now(), Vec::new());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let name = |text: &str| format!("xdstp://a/envoy.config.cluster.v3.Cluster/{text}").parse().unwrap();
    /// let mut options = Options::default();
    /// (options.authoritative, options.tombstones) = (false, 2);
    /// let mut cache = Cache::<()>::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Name(name("*")));
    /// for text in ["one", "two", "three", "four"] {
    ///     let error = ResourceError::new(ResourceError::PERMISSION_DENIED, "not yours");
    ///     cache.fail_by_name(&clusters, &name(text), error, now, &mut woken);
    /// }
    /// cache.pull(subscriber, Removals::Include, &mut |_| unreachable!());
    /// let mut told = 0;
    /// cache.pull_errors(subscriber, Removals::Include, &mut |_| {
    ///     told += 1;
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(told, 2);
    /// ```
    pub fn fail_by_name(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        error: ResourceError,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.fail_asked(type_url, name, error, true, now, woken);
    }

    fn fail_asked(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        error: ResourceError,
        asked: bool,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.expire(now);
        if name.as_str() == "*" {
            return;
        }
        let type_key = self.type_key(type_url);
        let known = self.types[type_key].errors.get(name);
        let is_known = known.is_some_and(|failure| failure.error == error && (failure.listed || asked));
        if is_known || !(self.options.authoritative || self.is_of_interest(type_key, name)) {
            self.drop_type_if_unused(type_key);
            return;
        }
        let listed = !asked || known.is_some_and(|failure| failure.listed) || self.lists_error(type_key, name);
        if error.code == ResourceError::NOT_FOUND && !name.is_glob() {
            self.remove_asked(type_url, name, asked, now, woken);
        }
        let type_key = self.type_key(type_url);
        let seq = self.next_seq();
        let lasting = !error.is_transient();
        let before = self.types[type_key].errors.insert(name.clone(), Failure { error, seq, listed });
        let was_spared = before.as_ref().is_some_and(|failure| failure.error.is_transient());
        let present = self.resource(type_url, name).is_some();
        if lasting && was_spared && !present && !name.is_glob() {
            self.end_sparing(type_key, name, woken);
        }
        if let Some(at) = self.slot_of(type_key, name) {
            let slot = &mut self.slots[at];
            if matches!(slot.state, State::Unknown) {
                (slot.state, slot.seq) = (State::Absent, seq);
            }
            self.mark(Target::Slot(at), woken);
        }
        if !listed {
            // Nobody else is told: it is kept for who asked for the name, and for who brought it along.
            if lasting && let Some(list) = glob_of(name).and_then(|glob| self.list_of(type_key, &Interest::Name(glob)))
            {
                self.tell_who_brought(list, name, woken);
            }
            self.forget_error(type_key, name);
            self.drop_type_if_unused(type_key);
        } else if let Some(glob) = glob_of(name) {
            let list = self.list(type_key, &Interest::Name(glob));
            let failed = &mut self.lists[list].failed;
            failed.insert(seq, name.clone());
            if let Some(before) = before {
                failed.remove(&before.seq);
            }
            self.mark(Target::List(list), woken);
        }
    }

    /// Whether those who want the glob of a name are told of an error that is the answer to who asked for just this name:
    /// who asks for names that are not there decides how many these are.
    fn lists_error(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        let Some(glob) = name.glob_parent() else { return true };
        let list = self.list_of(type_key, &Interest::Name(glob));
        let listed = list.map_or(0, |list| self.lists[list].failed.len());
        listed < self.options.tombstones || self.is_here(type_key, name)
    }

    /// The error of a name, or of a glob.
    pub fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&ResourceError> {
        let of = &self.types[*self.type_keys.get(type_url)?];
        Some(&of.errors.get(name)?.error)
    }

    /// Every error there is.
    pub fn errors(&self) -> impl Iterator<Item = (&TypeUrl, &ResourceName, &ResourceError)> {
        self.types.values().flat_map(|of| of.errors.iter().map(|(name, failure)| (&of.url, name, &failure.error)))
    }

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
        self.subscribers[id.key()].failing.append(&mut deferred);
        stopped
    }

    fn visit_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        deferred: &mut BTreeSet<ResourceName>,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        while let Some(name) = self.subscribers[id.key()].failing.pop_first() {
            if !self.owes_error(id, &name) {
                continue;
            }
            if removals == Removals::Defer && !self.breaks_nothing(id, &name) {
                deferred.insert(name);
                continue;
            }
            let beside = self.is_there(id, &name);
            let removed = !beside && !self.spares(id, &name);
            let subscriber = &mut self.subscribers[id.key()];
            if removed {
                subscriber.leaving.remove(&name);
                subscriber.missing.remove(&name);
                subscriber.resumed.remove(&name);
            } else if let Some(version) = subscriber.resumed.version_mut(&name) {
                // Only the resource says that the error is over: it is sent at whatever version it comes back.
                *version = None;
            }
            // That it is over is told by the removal.
            subscriber.concluded.remove(&name);
            let of = &self.types[subscriber.type_key];
            if let Some(failure) = of.errors.get(&name)
                && visitor(Failed { name: &name, error: &failure.error, beside, removed }).is_break()
            {
                return true;
            }
        }
        false
    }

    /// Whether there is an error of a name, and the subscriber is one that is told of it: not while one of its links
    /// has yet to be pulled, or that one would tell it again.
    pub(crate) fn owes_error(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let type_key = self.subscribers[id.key()].type_key;
        let of = &self.types[type_key];
        let Some(failure) = of.errors.get(name) else { return false };
        let glob = match name.is_glob() {
            true => of.globs.get(name),
            false => name.glob_parent_key().and_then(|glob| of.globs.get(&glob as &dyn NameKey)),
        };
        let glob = glob.filter(|_| failure.listed);
        let targets = [glob.copied().map(Target::List), self.slot_of(type_key, name).map(Target::Slot)];
        let links = targets.into_iter().flatten().filter_map(|target| self.link_of(id, target));
        let mut told = links.map(|link| self.told_up_to(link)).peekable();
        told.peek().is_some() && told.all(|cursor| cursor >= failure.seq)
    }

    /// The errors of the link's target that are older were told, or are about to be.
    fn told_up_to(&self, link: LinkKey) -> Seq {
        self.walk(link).map_or(self.links[link].cursor, |walk| walk.gone_cursor)
    }

    /// Whether what a subscriber holds of a name must be left to it, though the name is not there: it said that it
    /// holds it, and the origin has an error that says nothing about that.
    pub(crate) fn spares(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let subscriber = &self.subscribers[id.key()];
        let holds = || match name.is_glob() {
            true => subscriber.resumed.of_glob(name).next().is_some(),
            false => subscriber.resumed.contains(name),
        };
        let failure = self.types[subscriber.type_key].errors.get(name);
        failure.is_some_and(|failure| failure.error.is_transient()) && holds()
    }

    /// What a subscriber is to be told of a name it asked for, when it pulls.
    pub(crate) fn note_error(&mut self, link: LinkKey, at: SlotKey) {
        let slot = &self.slots[at];
        let errors = &self.types[slot.type_key].errors;
        if !errors.is_empty()
            && let Some(failure) = errors.get(&slot.name)
            && failure.seq > self.told_up_to(link)
        {
            let (name, seq) = (slot.name.clone(), failure.seq);
            self.links[link].cursor = seq;
            self.subscribers[self.links[link].subscriber].failing.insert(name);
        }
    }

    /// The same of a glob. True when there were any.
    // Each update looks whether there are any.
    #[inline(always)]
    pub(crate) fn note_errors_within(&mut self, link: LinkKey, list: ListKey) -> bool {
        let failed = &self.lists[list].failed;
        if failed.is_empty() {
            return false;
        }
        let Link { subscriber, .. } = self.links[link];
        let told = self.told_up_to(link);
        let news = failed.last_key_value().is_some_and(|(newest, _)| *newest > told);
        if news {
            let names = failed.range(told + 1..).map(|(_, name)| name.clone());
            self.subscribers[subscriber].failing.extend(names);
        }
        news
    }

    /// Who asks for a glob is told of all its errors, those too that its link has passed.
    pub(crate) fn repeat_errors_within(&mut self, link: LinkKey, list: ListKey) {
        let Link { subscriber, .. } = self.links[link];
        let told = self.told_up_to(link);
        let names = self.lists[list].failed.range(..=told).map(|(_, name)| name.clone());
        self.subscribers[subscriber].failing.extend(names);
    }

    /// Who was to keep what it holds of a name that is not there, is not any more: what it has of a collection that is
    /// complete may have been looked at already.
    pub(crate) fn end_sparing(&mut self, type_key: TypeKey, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        for list in self.collections_of(type_key, name).into_iter().flatten() {
            if self.lists[list].answer == Answer::Complete {
                self.tell_who_brought(list, name, woken);
            }
        }
    }

    /// Ends the error of a name, if there is one.
    pub(crate) fn clear_error(&mut self, type_key: TypeKey, name: &ResourceName) -> Option<Failure> {
        let of = &mut self.types[type_key];
        if of.errors.is_empty() {
            return None;
        }
        let failure = of.errors.remove(name)?;
        if let Some(list) = glob_of(name).and_then(|glob| of.globs.get(&glob).copied()) {
            self.lists[list].failed.remove(&failure.seq);
            self.drop_list_if_unused(list);
        }
        Some(failure)
    }

    /// Forgets an error that nobody is interested in: not one that spares what somebody holds.
    pub(crate) fn forget_error(&mut self, type_key: TypeKey, name: &ResourceName) {
        let Some(failure) = self.types[type_key].errors.get(name) else { return };
        let is_of_interest = match failure.listed {
            true => self.is_of_interest(type_key, name),
            false => self.slot_of(type_key, name).is_some(),
        };
        if is_of_interest {
            return;
        }
        let spares = failure.error.is_transient() && self.who_brought_it(type_key, name).next().is_some();
        if !spares {
            self.clear_error(type_key, name);
        }
    }

    /// Ends the error of a collection that is answered: who was told of it is told that it is empty, if it is.
    pub(crate) fn end_collection_error(&mut self, list: ListKey, woken: &mut Vec<SubscriberId>) -> bool {
        let Some(glob) = self.lists[list].glob.clone() else { return false };
        if !self.types[self.lists[list].type_key].errors.contains_key(&glob) {
            return false;
        }
        if let Some(at) = self.now
            && self.lists[list].live == 0
        {
            let seq = self.next_seq();
            self.bury(list, Gone { name: glob.clone(), seq, at, born: NEVER, unseen: false }, woken);
        }
        self.clear_error(self.lists[list].type_key, &glob).is_some()
    }

    /// Ends the error of a glob that a member came to. The member says so, or if it goes before it is told, that the glob
    /// is empty.
    pub(crate) fn recover(&mut self, type_key: TypeKey, glob: ResourceName, woken: &mut Vec<SubscriberId>) {
        if self.clear_error(type_key, &glob).is_some()
            && let Some(at) = self.now
            && let Some(list) = self.list_of(type_key, &Interest::Name(glob.clone()))
            && self.lists[list].watchers > 0
        {
            let seq = self.next_seq();
            self.bury(list, Gone { name: glob, seq, at, born: NEVER, unseen: false }, woken);
        }
    }

    /// Whether a relay has a reason to know about a name: somebody asked for it, or it is there.
    pub(crate) fn is_of_interest(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        let of = &self.types[type_key];
        let directory =
            if name.is_glob() { of.globs.get(name).copied() } else { self.collections_of(type_key, name)[1] };
        self.slot_of(type_key, name).is_some()
            || directory.is_some_and(|list| {
                let list = &self.lists[list];
                list.watchers > 0 || list.answer != Answer::None
            })
    }

    /// Whether a name, or a member of a glob, is there.
    pub(crate) fn is_there(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let type_key = self.subscribers[id.key()].type_key;
        let globs = &self.types[type_key].globs;
        match name.is_glob() {
            true => globs.get(name).is_some_and(|list| self.lists[*list].live > 0),
            false => {
                let at = self.slot_of(type_key, name).map(|at| self.resolve(at));
                at.is_some_and(|at| self.slots[at].state.resource().is_some())
            }
        }
    }
}

/// The glob whose subscribers are told of an error.
fn glob_of(name: &ResourceName) -> Option<ResourceName> {
    if name.is_glob() { Some(name.clone()) } else { name.glob_parent() }
}
