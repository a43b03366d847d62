//! What is there, what is gone and what is answered, and who must be told of it.

use std::collections::BTreeSet;
use std::time::Instant;

use xdstp_uri::ResourceName;

use super::{COLLECTIONS, Client, Model, TYPES, resource, text};
use crate::tests::name;
use crate::{Cache, Interest, Outcome, Outcomes, Resource, ResourceError, SubscriberId, TypeUrl};

impl Model {
    pub(super) fn begun(&mut self, of: usize, collection: &Interest) {
        let url = TypeUrl::from(TYPES[of]);
        let before = self.cache.is_known(&url, collection);
        self.change(|cache, _, woken| cache.begin_answer(&url, collection, woken));
        let certain = self.options.capacity.is_none() || self.is_watched(of, collection);
        if certain || self.cache.is_known(&url, collection) {
            self.known[of].insert(collection.clone());
        }
        if !before && self.known[of].contains(collection) {
            self.renew_interest(of, collection);
        }
    }

    /// What an upsert does; the cache has done it already.
    pub(super) fn upserted(&mut self, of: usize, name: &ResourceName, resource: &Resource<()>) -> Outcome {
        let (version, digest) = (resource.version.clone(), resource.digest());
        let old = self.resources[of].insert(name.clone(), (version.clone(), digest));
        self.absent[of].remove(name);
        self.removed[of].remove(name);
        self.clients.iter_mut().flatten().filter(|client| client.of == of).for_each(|client| {
            client.concluded.remove(name);
        });
        let failed = self.errors[of].remove(name).is_some();
        let outcome = match old {
            None => Outcome::Added,
            Some((v, d)) => match (v == version, d == digest) {
                (true, true) if failed => Outcome::Recovered,
                (true, true) => return Outcome::Unchanged,
                (true, false) => Outcome::ChangedAtSameVersion,
                (false, true) => Outcome::Reversioned,
                (false, false) => Outcome::Changed,
            },
        };
        if let Some(glob) = name.glob_parent() {
            let authoritative = self.options.authoritative;
            self.errors[of]
                .retain(|failed, error| *failed != glob || !authoritative && error.code != ResourceError::NOT_FOUND);
        }
        self.owe(of, name);
        self.renew(of, name);
        outcome
    }

    pub(super) fn upsert_all(&mut self, of: usize, snapshot: bool, resources: &[(usize, u8, u8)]) {
        let url = TypeUrl::from(TYPES[of]);
        let resources: Vec<_> =
            resources.iter().map(|(what, version, digest)| (name(text(*what)), resource(*version, *digest))).collect();
        let outcomes = self.change(|cache, now, woken| match snapshot {
            true => cache.replace_raw(&url, resources.clone(), now, woken),
            false => cache.upsert_raw_all(&url, resources.clone(), now, woken),
        });
        let mut expected = Outcomes::default();
        for (name, resource) in &resources {
            expected.count(self.upserted(of, name, resource));
        }
        if snapshot {
            let listed: BTreeSet<_> = resources.iter().map(|(name, _)| name).collect();
            let gone: Vec<_> = self.resources[of].keys().filter(|name| !listed.contains(name)).cloned().collect();
            expected.removed = gone.len() as u64;
            gone.iter().for_each(|name| self.removed(of, name));
        }
        assert_eq!(Outcomes { evicted: 0, ..outcomes }, expected);
        self.sync_evictions();
    }

    /// What a removal does; the cache has done it already.
    pub(super) fn removed(&mut self, of: usize, name: &ResourceName) {
        self.errors[of].remove(name);
        self.resources[of].remove(name);
        self.removed[of].insert(name.clone());
        if self.is_watched(of, &Interest::Name(name.clone())) {
            self.absent[of].insert(name.clone());
        }
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if client.of == of && self.wanted(&client, name) {
                    client.may_remove.insert(name.clone());
                }
                client
            })
        });
    }

    pub(super) fn answered(&mut self, of: usize, collection: &Interest) {
        let url = TypeUrl::from(TYPES[of]);
        let kept = self.resources[of].keys().any(|name| self.matches(collection, name));
        let before = self.cache.is_known(&url, collection);
        let forgets = self.options.capacity.is_some() || self.options.authoritative;
        let certain =
            !forgets || *collection == Interest::Wildcard || self.is_watched(of, collection) || kept || before;
        self.change(|cache, _, woken| cache.answered(&url, collection, woken));
        // A glob of which there is nothing yet may or may not have a list because of its tombstones.
        if certain || self.cache.is_known(&url, collection) {
            self.known[of].insert(collection.clone());
        }
        if let Interest::Name(glob) = collection {
            self.errors[of].remove(glob);
        }
        if self.known[of].contains(collection) && self.complete[of].insert(collection.clone()) {
            self.renew_interest(of, collection);
        }
    }

    /// Changes the cache and checks who is woken: exactly those who had nothing to pull before and have now; and
    /// those who had nothing but errors and removals to pull, which may wait for others, or were about to look at what they
    /// brought along, may be.
    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut Cache<()>, Instant, &mut Vec<SubscriberId>) -> T) -> T {
        let ids: Vec<_> = self.clients.iter().flatten().map(|client| client.id).collect();
        let idle: Vec<_> = ids.into_iter().filter(|id| !self.cache.has_work(*id)).collect();
        let mut woken = Vec::new();
        let result = change(&mut self.cache, self.now, &mut woken);
        let mut expected: Vec<_> = idle.into_iter().filter(|id| self.cache.has_work(*id)).collect();
        expected.sort();
        woken.sort();
        assert!(woken.is_sorted_by(|a, b| a < b), "each once: {woken:?}");
        let waiting = |id: &SubscriberId| {
            let subscriber = &self.cache.subscribers[*id];
            subscriber.owed.owes_any(crate::subscribers::Debt::Error)
                || subscriber.has_removals()
                || subscriber.claims.are_looked_at()
        };
        woken.retain(|id| expected.contains(id) || !waiting(id));
        assert_eq!(woken, expected);
        result
    }

    pub(super) fn owe(&mut self, of: usize, name: &ResourceName) {
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if client.of == of && self.wanted(&client, name) {
                    assert!(self.cache.has_work(client.id), "{name} changed");
                    client.may_put.insert(name.clone());
                    client.owed.insert(name.clone());
                }
                client
            })
        });
    }

    pub(super) fn evict(&mut self, of: usize, interest: &Interest) {
        self.cache.evict(&TYPES[of].into(), interest, self.now);
        if self.options.authoritative {
            return;
        }
        if interest.is_collection() {
            if self.is_watched(of, interest) {
                return;
            }
            self.known[of].remove(interest);
        }
        let collections: Vec<_> = COLLECTIONS.iter().map(|text| super::interest(text)).collect();
        let kept = |name: &ResourceName| {
            self.is_watched(of, &Interest::Name(name.clone()))
                || collections.iter().any(|collection| {
                    self.matches(collection, name)
                        && (self.is_watched(of, collection) || self.known[of].contains(collection))
                })
        };
        let gone: Vec<_> =
            self.resources[of].keys().filter(|name| self.matches(interest, name) && !kept(name)).cloned().collect();
        for name in gone {
            self.resources[of].remove(&name);
        }
        if let Interest::Name(asked) = interest {
            // A glob does not know of what only who asked for a name is told: that goes with the interest in the name.
            let reaches = |name: &ResourceName| name == asked || !self.unlisted[of].contains(name);
            let over =
                |name: &&ResourceName| name.answers(asked) && reaches(name) && !self.is_error_of_interest(of, name);
            let over: Vec<_> = self.errors[of].keys().filter(over).cloned().collect();
            for name in over {
                // It may be what lets somebody keep what it holds.
                let error = &self.errors[of][&name];
                let held = |client: &Client| client.of == of && client.brought.contains(&name);
                let spares = error.is_transient() && self.clients.iter().flatten().any(held);
                if !spares || self.cache.error(&TYPES[of].into(), &name).is_none() {
                    self.errors[of].remove(&name);
                } else {
                    self.spared[of].insert(name);
                }
            }
        }
    }
}
