//! Errors of resources and globs: why they are not sent.

use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::edit::Edit;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{Target, TypeKey};
use crate::resource_error::{Cause, Failure, ResourceError, Told};
use crate::store::{Answer, State, collection_of};
use crate::text::TypeUrl;

impl<V> Edit<'_, V> {
    /// Records why a resource, or a whole glob, is not sent (TP3). Who asked for the name, or for a glob that it
    /// belongs to, is told once, by [`pull_errors`](Cache::pull_errors); the same error again is not told again.
    ///
    /// The error stays beside a resource that is there, which is served as before: whether it may still be used is
    /// its client's decision. `NOT_FOUND` alone is a removal as well. A [`put`](Self::put) or
    /// [`remove`](Self::remove) of the name ends the error; that of a glob ends with the next change of a member or when
    /// the glob is [`answered`](Self::answered). In a relay's cache a member may be there because somebody asked for its name:
    /// there, unless it is `NOT_FOUND`, the answer alone ends it, or that it is said to [`recover`](Self::recover).
    ///
    /// TP3 says nothing of errors of a wildcard: that of `*` says that all resources of the type are not sent to who asks for all,
    /// whatever its code is nothing of what is there. It ends when the wildcard is answered. Who asked for nothing but a wildcard is
    /// told of no other error. A relay's cache ignores errors of names that nobody asked for.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, ResourceError};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart: xdstp_uri::ResourceName = "cart".parse().unwrap();
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Name(cart.clone()));
    ///
    /// let error = ResourceError::new(ResourceError::PERMISSION_DENIED, "not yours");
    /// let mut edit = cache.edit(Instant::now());
    /// edit.fail(&clusters, &cart, error.clone());
    /// let _ = edit.finish();
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
    pub fn fail(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError) {
        self.change(|cache, now, woken| cache.fail(type_url, name, error, now, woken));
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
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let name = |text: &str| format!("xdstp://a/envoy.config.cluster.v3.Cluster/{text}").parse().unwrap();
    /// let mut options = Options::default();
    /// (options.authoritative, options.tombstones) = (false, 2);
    /// let mut cache = Cache::<()>::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Name(name("*")));
    /// let mut edit = cache.edit(Instant::now());
    /// for text in ["one", "two", "three", "four"] {
    ///     edit.fail_by_name(&clusters, &name(text), ResourceError::new(ResourceError::PERMISSION_DENIED, "not yours"));
    /// }
    /// let _ = edit.finish();
    /// cache.pull(subscriber, Removals::Include, &mut |_| unreachable!());
    /// let mut told = 0;
    /// cache.pull_errors(subscriber, Removals::Include, &mut |_| {
    ///     told += 1;
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(told, 2);
    /// ```
    pub fn fail_by_name(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError) {
        let told = Told { asked: true, beside: false };
        self.change(|cache, now, woken| cache.fail_asked(type_url, name, error, told, now, woken));
    }

    /// Does what [`fail_by_name`](Self::fail_by_name) does, but what is there stays in use whatever the error: who asked goes on
    /// with it (gRFC A88).
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Cause, Interest, Options, Removals, Resource, ResourceError};
    ///
    /// let (clusters, cart) = ("type.googleapis.com/envoy.config.cluster.v3.Cluster".into(), "cart".parse().unwrap());
    /// let mut options = Options::default();
    /// options.authoritative = false;
    /// let mut cache = Cache::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Name(cart));
    /// let cart = "cart".parse().unwrap();
    /// let mut edit = cache.edit(Instant::now());
    /// edit.put(&clusters, &cart, Resource::unversioned(7, "body"));
    /// edit.fail_beside(&clusters, &cart, ResourceError::new(5, "it was deleted").found_by(Cause::Deleted));
    /// let _ = edit.finish();
    /// cache.pull(subscriber, Removals::Include, &mut |_| ControlFlow::Continue(()));
    /// cache.pull_errors(subscriber, Removals::Include, &mut |failed| {
    ///     assert!(failed.beside && !failed.removed);
    ///     ControlFlow::Continue(())
    /// });
    /// assert!(cache.resource(&clusters, &cart).is_some());
    /// ```
    pub fn fail_beside(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError) {
        let told = Told { asked: true, beside: true };
        self.change(|cache, now, woken| cache.fail_asked(type_url, name, error, told, now, woken));
    }
}

impl<V> Cache<V> {
    pub(crate) fn fail(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        error: ResourceError,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.fail_asked(type_url, name, error, Told::default(), now, woken);
    }

    pub(crate) fn fail_asked(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        error: ResourceError,
        Told { asked, beside }: Told,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) {
        self.expire(now);
        let type_key = self.store.type_key(type_url);
        let known = self.store[type_key].errors.get(name);
        let is_known = known.is_some_and(|failure| failure.error == error && (failure.listed || asked));
        if is_known || !(self.store.options.authoritative || self.store.is_of_interest(type_key, name)) {
            self.store.drop_type_if_unused(type_key);
            return;
        }
        let listed = !asked || known.is_some_and(|failure| failure.listed) || self.store.lists_error(type_key, name);
        let is_collection = Interest::from(name.clone()).is_collection();
        if error.code == ResourceError::NOT_FOUND && !beside && !is_collection {
            self.remove_asked(type_url, name, asked, now, woken);
        }
        let type_key = self.store.type_key(type_url);
        let seq = self.store.next_seq();
        let (lasting, is_said) = (!error.is_transient(), error.cause != Cause::Unasked);
        let before = self.store.set_error(type_key, name.clone(), Failure { error, seq, listed, at: Some(now) });
        let was_spared = before.as_ref().is_some_and(|failure| failure.error.is_transient());
        let present = self.store.is_here(type_key, name) || self.resource(type_url, name).is_some();
        if lasting && was_spared && !present && !is_collection {
            self.end_sparing(type_key, name, woken);
        }
        if let Some(at) = self.store.slot_of(type_key, name) {
            let slot = &mut self.store[at];
            // Of what the origin was not asked for, it did not say that it is not there.
            if is_said && matches!(slot.state, State::Unknown) {
                (slot.state, slot.seq) = (State::Absent, seq);
            }
            self.mark(Target::Slot(at), woken);
        }
        if !listed {
            // Nobody else is told: it is kept for who asked for the name, and for who brought it along.
            if lasting
                && let Some(list) = collection_of(name).and_then(|collection| self.store.list_of(type_key, &collection))
            {
                self.tell_who_brought(list, name, woken);
            }
            self.forget_error(type_key, name);
            self.store.drop_type_if_unused(type_key);
        } else if let Some(collection) = collection_of(name) {
            let list = self.store.list(type_key, &collection);
            let failed = &mut self.store[list].failed;
            failed.insert(seq, name.clone());
            if let Some(before) = before {
                failed.remove(&before.seq);
            }
            self.store.doubt(list);
            self.mark(Target::List(list), woken);
        }
    }

    /// Who was to keep what it holds of a name that is not there, is not any more: what it has of a collection that is
    /// complete may have been looked at already.
    pub(crate) fn end_sparing(&mut self, type_key: TypeKey, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        for list in self.store.collections_of(type_key, name).into_iter().flatten() {
            if self.store[list].answer == Answer::Complete {
                self.tell_who_brought(list, name, woken);
            }
        }
    }
}
