//! Which errors there are, and who is told of them.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_uri::ResourceName;

use super::{COLLECTIONS, Client, Model, TYPES, interest};
use crate::resource_error::Told;
use crate::subscribers::Subscriber;
use crate::{Interest, Removals, ResourceError, TypeUrl};

impl Model {
    /// Takes over which errors a relay has forgotten: none that concerns anybody, and all that did no longer when they were
    /// evicted or since.
    pub(super) fn sync_errors(&mut self) {
        for (of, url) in TYPES.map(TypeUrl::from).into_iter().enumerate() {
            let is_of_interest = |name: &ResourceName| self.is_error_of_interest(of, name);
            let gone: Vec<_> =
                self.errors[of].keys().filter(|name| self.cache.error(&url, name).is_none()).cloned().collect();
            let lost = gone.iter().find(|name| is_of_interest(name));
            assert_eq!(lost, None, "an error is forgotten though somebody is subscribed");
            let brought = |name: &ResourceName| {
                let held = |subscriber: &Subscriber| subscriber.owed.owes(crate::subscribers::Debt::Comparison, name);
                self.cache.subscribers.all.values().any(held)
            };
            let spared: BTreeSet<_> = self.spared[of]
                .iter()
                .filter(|name| self.errors[of].contains_key(*name) && !gone.contains(*name) && !is_of_interest(name))
                .cloned()
                .collect();
            let left = spared.iter().find(|name| !brought(name));
            assert_eq!(left, None, "an error is kept that concerns nobody");
            gone.iter().for_each(|name| drop(self.errors[of].remove(name)));
            self.spared[of] = spared;
        }
    }

    pub(super) fn fail(&mut self, of: usize, name: &ResourceName, error: ResourceError, asked: bool) {
        // That of the wildcard has tests of its own.
        if name.as_str() == "*" {
            return;
        }
        let url = TypeUrl::from(TYPES[of]);
        let may_be_unlisted = asked && self.may_be_unlisted(of, name);
        let untold = (asked && self.is_untold(of, name)).then_some(self.cache.store.seq);
        self.change(|cache, now, woken| {
            cache.fail_asked(&url, name, error.clone(), Told { asked, beside: false }, now, woken);
        });
        self.failed(of, name, error, asked, may_be_unlisted);
        self.check_unseen(of, name, untold);
    }

    /// Nothing but the error ends, whatever was answered.
    pub(super) fn recover(&mut self, of: usize, collection: &Interest) {
        let url = TypeUrl::from(TYPES[of]);
        self.change(|cache, _, woken| cache.recover_collection(&url, collection, woken));
        if let Interest::Name(glob) = collection {
            self.errors[of].remove(glob);
        }
    }

    /// Once all is pulled, those of the globs that a client asks for, but that there is no such: as often as it is asked.
    pub(super) fn pull_refusals(&mut self, who: usize) {
        while self.pull(who, usize::MAX, Removals::Include) {}
        let Some(client) = &mut self.clients[who] else { return };
        let collections = COLLECTIONS.map(interest);
        let [told, all] = [Some(&collections[..]), None].map(|collections| {
            let mut told = BTreeMap::new();
            self.cache.pull_refusals(client.id, collections, &mut |name, error| {
                assert_eq!(told.insert(name.clone(), error.clone()), None, "{name} is told twice");
            });
            told
        });
        assert_eq!(told, all);
        let is_told = |name: &ResourceName, error: &ResourceError| {
            let is_asked = client.interests.contains(&Interest::Name(name.clone()));
            is_asked && name.is_glob() && error.code != ResourceError::NOT_FOUND
        };
        let mut expected = self.errors[client.of].clone();
        expected.retain(|name, error| is_told(name, error));
        assert_eq!(told, expected);
        for name in told.keys() {
            client.owed_errors.remove(name);
            client.may_errors.remove(name);
        }
    }

    /// Whether a collection of a type is refused.
    pub(super) fn refuses(&self, of: usize) -> bool {
        self.errors[of].iter().any(|(name, error)| name.is_glob() && error.code != ResourceError::NOT_FOUND)
    }

    /// Whether a name that is not there has an error of which only those were told who asked for just that name.
    pub(super) fn is_untold(&self, of: usize, name: &ResourceName) -> bool {
        let untold = self.unlisted[of].contains(name) && self.errors[of].contains_key(name);
        untold && !self.resources[of].contains_key(name)
    }

    /// What a stranger's name that nobody was told of leaves since a moment, takes the place of nothing that was here.
    pub(super) fn check_unseen(&self, of: usize, name: &ResourceName, untold_at: Option<u64>) {
        let glob = name.glob_parent().map(Interest::Name);
        let type_key = self.cache.store.type_keys.get(&TypeUrl::from(TYPES[of]));
        let list = glob.zip(type_key).and_then(|(glob, of)| self.cache.store.list_of(*of, &glob));
        let (Some(list), Some(before)) = (list, untold_at) else { return };
        let mut since = self.cache.store[list].gone.iter().filter(|gone| gone.seq > before);
        assert!(since.all(|gone| gone.name != *name || gone.unseen), "{name} takes the place of what was here");
    }

    /// Whether a glob has as many errors as it tells of names that are not there, because somebody asked for just them.
    fn may_be_unlisted(&self, of: usize, name: &ResourceName) -> bool {
        let Some(glob) = name.glob_parent() else { return false };
        let listed = |other: &&ResourceName| other.answers(&glob) && !self.unlisted[of].contains(*other);
        let told = self.errors[of].contains_key(name) && !self.unlisted[of].contains(name);
        !told
            && !self.resources[of].contains_key(name)
            && self.errors[of].keys().filter(listed).count() >= self.options.tombstones
    }

    fn failed(&mut self, of: usize, name: &ResourceName, error: ResourceError, asked: bool, unlisted: bool) {
        let ignored = !self.options.authoritative && !self.is_of_interest(of, name);
        // The same answer to who asked for just the name is no news to those who want its glob, though there is room by now.
        let is_known = self.errors[of].get(name) == Some(&error) && (asked || !self.unlisted[of].contains(name));
        if ignored || is_known {
            return;
        }
        if error.code == ResourceError::NOT_FOUND && !name.is_glob() {
            self.removed(of, name);
        }
        match unlisted {
            true => self.unlisted[of].insert(name.clone()),
            false => self.unlisted[of].remove(name),
        };
        if unlisted && !error.is_transient() {
            // Who brought it along may not have it, and is not told the error.
            self.removed[of].insert(name.clone());
            let brought = |client: &&mut Client| client.of == of && client.brought.contains(name);
            self.clients
                .iter_mut()
                .flatten()
                .filter(brought)
                .for_each(|client| _ = client.may_remove.insert(name.clone()));
        }
        if unlisted && self.cache.error(&TYPES[of].into(), name).is_none() {
            assert!(!self.is_watched(of, &Interest::Name(name.clone())), "who asked for {name} is not told");
            self.errors[of].remove(name);
            return;
        }
        // What is not sent was said to be all there is, and is not from now on.
        if name.is_glob() && error.code != ResourceError::NOT_FOUND {
            self.complete[of].remove(&Interest::Name(name.clone()));
        }
        self.errors[of].insert(name.clone(), error);
        if self.is_watched(of, &Interest::Name(name.clone())) && !self.resources[of].contains_key(name) {
            self.absent[of].insert(name.clone());
        }
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if client.of == of && self.hears(&client, name) {
                    assert!(self.cache.has_work(client.id), "{name} failed");
                    client.owe_error(name);
                }
                client
            })
        });
    }
}
