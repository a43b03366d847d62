//! What a subscriber takes along when it goes on in another cache.

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::along::{Along, HeldAlong};
use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, Target, TypeKey};
use crate::store::State;
use crate::subscribers::{Debt, Names as _};

impl<V> Cache<V> {
    /// What a subscriber wants, and was told: it can go on in another cache, which is subscribed to the same and
    /// [told](Self::resume) what it holds. It stays as it is here.
    ///
    /// O(what it wants, and what there is of that).
    ///
    /// ```
    /// use std::{ops::ControlFlow, time::Instant};
    /// use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let names = ["cart", "shop", "wares"].map(|name| name.parse().unwrap());
    /// let cache = |digests: [u128; 3]| {
    ///     let mut cache = Cache::new(Options::default());
    ///     let subscriber = cache.open(&clusters);
    ///     let mut edit = cache.edit(Instant::now());
    ///     for (name, digest) in names.iter().zip(digests).filter(|(_, digest)| *digest > 0) {
    ///         edit.put(&clusters, name, Resource::unversioned(digest, ()));
    ///     }
    ///     let _ = edit.finish();
    ///     (cache, subscriber)
    /// };
    /// let (mut one, subscriber) = cache([1, 1, 1]);
    /// one.subscribe(subscriber, &Interest::Wildcard);
    /// one.pull(subscriber, Removals::Include, &mut |_| ControlFlow::Continue(()));
    ///
    /// let along = one.along(subscriber);
    /// let (mut other, subscriber) = cache([1, 2, 0]);
    /// along.interests.iter().for_each(|interest| _ = other.subscribe(subscriber, interest));
    /// let held = along.held.into_iter().map(|held| {
    ///     let there = other.resource(&clusters, &held.name).map(Resource::digest);
    ///     (held.name.clone(), held.version_beside(there))
    /// });
    /// let held: Vec<_> = held.collect();
    /// other.resume(subscriber, held);
    /// let mut said = Vec::new();
    /// other.pull(subscriber, Removals::Include, &mut |pull| {
    ///     said.push(match pull {
    ///         Pull::Put { name, .. } => format!("{name} is new"),
    ///         Pull::Removed { name, .. } => format!("{name} is gone"),
    ///         _ => unreachable!(),
    ///     });
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(said, ["shop is new", "wares is gone"]);
    /// ```
    pub fn along(&self, id: SubscriberId) -> Along {
        if !self.is_open(id) {
            return Along::default();
        }
        let subscriber = &self.subscribers[id];
        let interests: Vec<_> = self.interests(id).collect();
        let mut names = BTreeSet::new();
        for (interest, link) in interests.iter().zip(subscriber.links.as_slice()) {
            if self.has_said_any(*link) {
                names.extend(self.may_hold(id, interest));
            }
        }
        names.extend(subscriber.owed.removals().iter().filter(|name| subscriber.owed.is_leaving(name)).cloned());
        names.extend(subscriber.owed.brought().iter().cloned());
        names.extend(subscriber.owed.answers().iter().cloned());
        let absent = interests.iter().zip(subscriber.links.as_slice());
        let absent: BTreeSet<_> = absent.filter_map(|(interest, link)| self.told_absent(id, interest, *link)).collect();
        names.retain(|name| !name.is_glob() && !absent.contains(name));
        let held = names.into_iter().filter_map(|name| self.held_along(id, subscriber.type_key, name)).collect();
        let is_answered = subscriber.links.as_slice().iter().all(|link| self.is_answered_by(*link));
        Along { interests, held, absent, is_answered }
    }

    /// Whether the subscriber may have been sent something because of a link.
    fn has_said_any(&self, link: LinkKey) -> bool {
        let of = &self.subscribers[link];
        let walk = self.subscribers.walk(link);
        of.sent() || walk.is_some_and(|walk| of.cursor() > 0 || walk.sent > 0 || walk.answered || walk.spoken)
    }

    /// What the subscriber has of a name: none if it is an alias of what it has.
    fn held_along(&self, id: SubscriberId, type_key: TypeKey, name: ResourceName) -> Option<HeldAlong> {
        let at = self.store.slot_of(type_key, &name);
        if at.is_some_and(|at| self.store.resolve(at) != at) {
            return None;
        }
        let owed = &self.subscribers[id].owed;
        let version = if owed.owes(Debt::Comparison, &name) {
            owed.brought().version(&name).cloned().flatten().map(|version| (version, None))
        } else {
            let there = at.filter(|_| self.is_sent(id, &name)).and_then(|at| self.seen(id, at));
            there.map(|resource| (resource.version.clone(), Some(resource.digest())))
        };
        // What has none may be anything.
        Some(HeldAlong { name, version: version.filter(|(version, _)| !version.as_str().is_empty()) })
    }

    /// The name or glob of a link, if the subscriber was told that there is no such thing.
    fn told_absent(&self, id: SubscriberId, interest: &Interest, link: LinkKey) -> Option<ResourceName> {
        let Interest::Name(name) = interest else { return None };
        let is_told = match self.subscribers.target(link) {
            Target::Slot(at) => {
                // What came since, it was not sent.
                let link = &self.subscribers[link];
                let (cursor, sent) = (link.cursor(), link.sent());
                let slot = &self.store[self.store.resolve(at)];
                let told = cursor > 0 && !sent && (matches!(slot.state, State::Absent) || cursor < slot.seq);
                told && !self.store.is_unreadable(slot.type_key, name)
            }
            Target::List(list) => {
                self.subscribers.walk(link).is_some_and(|walk| walk.complete) && self.is_known_empty(id, list)
            }
        };
        (is_told && !self.subscribers[id].owed.owes(Debt::Removal, name)).then(|| name.clone())
    }

    fn is_answered_by(&self, link: LinkKey) -> bool {
        self.subscribers.walk(link).is_none_or(|walk| walk.answered)
    }
}
