//! A list and a full scan: what a cache has to say, computed the slow way.

mod capacity;
mod checks;
mod ops;
mod restart;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use xdstp_uri::ResourceName;

use self::capacity::Capacity;
use self::ops::{Op, history};
use super::{interest, invariants, name};
use crate::resource_error::Told;
use crate::subscribers::{Debt, Subscriber};
use crate::{
    Cache, Interest, Options, Outcome, Outcomes, Removals, Resource, ResourceError, SubscriberId, TypeUrl, Version,
};

const NAMES: [&str; 7] = ["a", "b", "c", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "xdstp://x/T/e/1", "xdstp://x/T"];
const COLLECTIONS: [&str; 3] = ["*", "xdstp://x/T/d/*", "xdstp://x/T/e/*"];
const TYPES: [&str; 2] = ["A", "B"];
const SUBSCRIBERS: usize = 3;
const INTERESTS: usize = NAMES.len() + COLLECTIONS.len();

fn text(what: usize) -> &'static str {
    NAMES.iter().chain(&COLLECTIONS).nth(what).unwrap()
}

fn resource(version: u8, digest: u8) -> Resource<()> {
    Resource::new(version.to_string().into(), digest.into(), ())
}

/// What one client knows, and what it is owed.
struct Client {
    id: SubscriberId,
    of: usize,
    interests: BTreeSet<Interest>,
    view: Held,
    /// The versions it came with, as long as they count.
    resumed: BTreeMap<ResourceName, Version>,
    /// Must be put, if there.
    owed: BTreeSet<ResourceName>,
    /// May be put.
    may_put: BTreeSet<ResourceName>,
    /// Must be told as removed, if known to be absent.
    owed_removal: BTreeSet<ResourceName>,
    /// May be told as removed.
    may_remove: BTreeSet<ResourceName>,
    /// All it came with.
    brought: BTreeSet<ResourceName>,
    /// What it asked for of that at once.
    kept: BTreeSet<ResourceName>,
    /// Whose errors must be told, if they are not over.
    owed_errors: BTreeSet<ResourceName>,
    /// Whose errors may be told.
    may_errors: BTreeSet<ResourceName>,
    /// What it holds of globs from before, and does not say, as Envoy does not.
    silent: BTreeSet<ResourceName>,
    /// What was not there by an answer that was complete when it was looked at for this client.
    concluded: BTreeSet<ResourceName>,
}

/// What a client holds, by what it was told; the digest is not known of what it came with.
type Held = BTreeMap<ResourceName, (Version, Option<u128>)>;

impl Client {
    fn owe_error(&mut self, name: &ResourceName) {
        self.owed_errors.insert(name.clone());
        self.may_errors.insert(name.clone());
    }
}

struct Model {
    cache: Cache<()>,
    options: Options,
    now: Instant,
    resources: [BTreeMap<ResourceName, (Version, u128)>; 2],
    /// Names somebody is subscribed to that were said to be absent.
    absent: [BTreeSet<ResourceName>; 2],
    /// Names removed since they were last there.
    removed: [BTreeSet<ResourceName>; 2],
    known: [BTreeSet<Interest>; 2],
    /// Of these, what is all there is.
    complete: [BTreeSet<Interest>; 2],
    clients: [Option<Client>; SUBSCRIBERS],
    /// Who went, of which type, and what it held of the globs it had asked for.
    away: [Option<(usize, Held)>; SUBSCRIBERS],
    errors: [BTreeMap<ResourceName, ResourceError>; 2],
    /// Of these, what is told to nobody but who asked for just that name.
    unlisted: [BTreeSet<ResourceName>; 2],
    /// What was evicted, but for its error, which lets somebody keep what it holds.
    spared: [BTreeSet<ResourceName>; 2],
    capacity: Capacity,
}

fn universe() -> impl Iterator<Item = ResourceName> {
    NAMES.iter().map(|text| name(text))
}

impl Model {
    fn new(options: Options) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        Self {
            cache: Cache::new(options.clone()),
            options,
            now,
            resources: Default::default(),
            absent: Default::default(),
            removed: Default::default(),
            known: Default::default(),
            complete: Default::default(),
            clients: Default::default(),
            away: Default::default(),
            errors: Default::default(),
            unlisted: Default::default(),
            spared: Default::default(),
            capacity: Capacity::default(),
        }
    }

    fn matches(&self, interest: &Interest, name: &ResourceName) -> bool {
        match interest {
            Interest::Wildcard => name.is_opaque() || self.options.wildcard_covers_xdstp,
            Interest::Name(asked) => name.answers(asked),
        }
    }

    fn covered(&self, client: &Client, name: &ResourceName) -> bool {
        client.interests.iter().any(|interest| interest.is_collection() && self.matches(interest, name))
    }

    fn named(client: &Client, name: &ResourceName) -> bool {
        client.interests.contains(&Interest::Name(name.clone()))
    }

    fn wanted(&self, client: &Client, name: &ResourceName) -> bool {
        Self::named(client, name) || self.covered(client, name)
    }

    fn is_known(&self, of: usize, collection: &Interest) -> bool {
        self.options.authoritative || self.known[of].contains(collection)
    }

    fn is_complete(&self, of: usize, collection: &Interest) -> bool {
        self.options.authoritative || self.complete[of].contains(collection)
    }

    /// Whether a name that is not there is known not to be, as far as a client is concerned.
    fn known_absent(&self, client: &Client, name: &ResourceName) -> bool {
        if Self::named(client, name) {
            return self.options.authoritative
                || self.absent[client.of].contains(name)
                || self.errors[client.of].contains_key(name);
        }
        client.interests.iter().any(|interest| {
            interest.is_collection() && self.matches(interest, name) && self.is_complete(client.of, interest)
        })
    }

    /// Whether a client is told of the errors of a name.
    fn hears(&self, client: &Client, name: &ResourceName) -> bool {
        if self.unlisted[client.of].contains(name) && self.errors[client.of].contains_key(name) {
            return Self::named(client, name);
        }
        let asked = |interest: &Interest| matches!(interest, Interest::Name(asked) if name.answers(asked));
        client.interests.iter().any(asked)
    }

    fn apply(&mut self, op: &Op) {
        self.capacity.step();
        let url = |of: usize| TypeUrl::from(TYPES[of]);
        match op {
            Op::Open { who, of, asks, holds } => {
                self.close(*who);
                let id = self.cache.open(&url(*of));
                self.clients[*who] = Some(Client {
                    id,
                    of: *of,
                    interests: BTreeSet::new(),
                    view: BTreeMap::new(),
                    resumed: BTreeMap::new(),
                    owed: BTreeSet::new(),
                    may_put: BTreeSet::new(),
                    owed_removal: BTreeSet::new(),
                    may_remove: BTreeSet::new(),
                    brought: BTreeSet::new(),
                    kept: BTreeSet::new(),
                    owed_errors: BTreeSet::new(),
                    may_errors: BTreeSet::new(),
                    silent: BTreeSet::new(),
                    concluded: BTreeSet::new(),
                });
                for what in asks {
                    self.subscribe(*who, &interest(text(*what)));
                }
                self.resume(*who, holds);
                self.come_back(*who);
            }
            Op::Close { who } => self.close(*who),
            Op::Resume { who, holds } => self.resume(*who, holds),
            Op::Subscribe { who, what } => self.subscribe(*who, &interest(text(*what))),
            Op::Unsubscribe { who, what } => self.unsubscribe(*who, &interest(text(*what))),
            Op::Upsert { of, what, version, digest } => {
                let (name, resource) = (name(text(*what)), resource(*version, *digest));
                let outcome =
                    self.change(|cache, now, woken| cache.upsert_raw(&url(*of), &name, resource.clone(), now, woken));
                assert_eq!(self.upserted(*of, &name, &resource), outcome);
                self.sync_evictions();
            }
            Op::Upserts { of, snapshot, resources } => self.upsert_all(*of, *snapshot, resources),
            Op::Touch { of, what } => {
                let name = name(text(*what));
                self.change(|cache, _, woken| cache.touch(&url(*of), &name, woken));
                if self.resources[*of].contains_key(&name) {
                    self.errors[*of].remove(&name);
                    self.owe(*of, &name);
                    self.renew(*of, &name);
                }
            }
            Op::Remove { of, what, asked } => {
                let name = name(text(*what));
                let untold = (*asked && self.is_untold(*of, &name)).then_some(self.cache.store.seq);
                self.change(|cache, now, woken| cache.remove_asked(&url(*of), &name, *asked, now, woken));
                self.removed(*of, &name);
                self.check_unseen(*of, &name, untold);
            }
            Op::Fail { of, what, code, message, asked } => {
                self.fail(*of, &name(text(*what)), ResourceError::new(*code, *message), *asked);
            }
            Op::FailAll { of, code, asked } => {
                universe().for_each(|name| self.fail(*of, &name, ResourceError::new(*code, "all"), *asked));
            }
            Op::Answered { of, what } => self.answered(*of, &interest(text(*what))),
            Op::Begun { of, what } => self.begun(*of, &interest(text(*what))),
            Op::Lost => {
                self.cache.origin_lost();
                self.complete = Default::default();
            }
            Op::Evict { of, what } => self.evict(*of, &interest(text(*what))),
            Op::Pull { who, entries, defer } => {
                let removals = if *defer { Removals::Defer } else { Removals::Include };
                self.pull(*who, *entries, removals);
            }
            Op::PullErrors { who, entries, defer } => {
                let removals = if *defer { Removals::Defer } else { Removals::Include };
                self.pull_errors(*who, *entries, removals);
            }
            Op::PullAll { who } => self.pull_all(*who),
            Op::Wait { seconds } => {
                self.now += Duration::from_secs(*seconds);
                // The next change would do it too, but after it one cannot see which collections are forgotten.
                self.cache.expire(self.now);
            }
        }
        for (known, of) in self.known.iter_mut().zip(TYPES).filter(|_| !self.options.authoritative) {
            let is_known = |collection: &Interest| self.cache.is_known(&of.into(), collection);
            if self.options.capacity.is_some() {
                // Of its own accord: a glob without members, watchers and tombstones, and with it that it was answered.
                known.retain(is_known);
            }
            let all = COLLECTIONS.iter().map(|text| interest(text));
            assert_eq!(*known, all.filter(is_known).collect(), "what is known until it is evicted");
        }
        for (complete, known) in self.complete.iter_mut().zip(&self.known) {
            complete.retain(|collection| known.contains(collection));
        }
        if !self.options.authoritative {
            self.sync_errors();
        }
    }

    /// Takes over which errors a relay has forgotten: none that concerns anybody, and all that did no longer when they were
    /// evicted or since.
    fn sync_errors(&mut self) {
        for (of, url) in TYPES.map(TypeUrl::from).into_iter().enumerate() {
            let is_of_interest = |name: &ResourceName| self.is_error_of_interest(of, name);
            let gone: Vec<_> =
                self.errors[of].keys().filter(|name| self.cache.error(&url, name).is_none()).cloned().collect();
            let lost = gone.iter().find(|name| is_of_interest(name));
            assert_eq!(lost, None, "an error is forgotten though somebody is subscribed");
            let brought = |name: &ResourceName| {
                let held = |subscriber: &Subscriber| subscriber.owed.owes(Debt::Comparison, name);
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

    fn fail(&mut self, of: usize, name: &ResourceName, error: ResourceError, asked: bool) {
        let url = TypeUrl::from(TYPES[of]);
        let may_be_unlisted = asked && self.may_be_unlisted(of, name);
        let untold = (asked && self.is_untold(of, name)).then_some(self.cache.store.seq);
        self.change(|cache, now, woken| {
            cache.fail_asked(&url, name, error.clone(), Told { asked, beside: false }, now, woken);
        });
        self.failed(of, name, error, asked, may_be_unlisted);
        self.check_unseen(of, name, untold);
    }

    /// Whether a name that is not there has an error of which only those were told who asked for just that name.
    fn is_untold(&self, of: usize, name: &ResourceName) -> bool {
        let untold = self.unlisted[of].contains(name) && self.errors[of].contains_key(name);
        untold && !self.resources[of].contains_key(name)
    }

    /// What a stranger's name that nobody was told of leaves since a moment, takes the place of nothing that was here.
    fn check_unseen(&self, of: usize, name: &ResourceName, untold_at: Option<u64>) {
        let glob = name.glob_parent().map(Interest::Name);
        let type_key = self.cache.store.type_keys.get(&TypeUrl::from(TYPES[of]));
        let list = glob.zip(type_key).and_then(|(glob, of)| self.cache.store.list_of(*of, &glob));
        let (Some(list), Some(before)) = (list, untold_at) else { return };
        let mut since = self.cache.store[list].gone.iter().filter(|gone| gone.seq > before);
        assert!(since.all(|gone| gone.name != *name || gone.unseen), "{name} takes the place of what was here");
    }

    fn begun(&mut self, of: usize, collection: &Interest) {
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
    fn upserted(&mut self, of: usize, name: &ResourceName, resource: &Resource<()>) -> Outcome {
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
            self.errors[of].remove(&glob);
        }
        self.owe(of, name);
        self.renew(of, name);
        outcome
    }

    fn upsert_all(&mut self, of: usize, snapshot: bool, resources: &[(usize, u8, u8)]) {
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
    fn removed(&mut self, of: usize, name: &ResourceName) {
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
        if name.as_str() == "*" || ignored || is_known {
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

    fn answered(&mut self, of: usize, collection: &Interest) {
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
    fn change<T>(&mut self, change: impl FnOnce(&mut Cache<()>, Instant, &mut Vec<SubscriberId>) -> T) -> T {
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
            subscriber.owed.owes_any(Debt::Error) || subscriber.has_removals() || subscriber.claims.are_looked_at()
        };
        woken.retain(|id| expected.contains(id) || !waiting(id));
        assert_eq!(woken, expected);
        result
    }

    fn owe(&mut self, of: usize, name: &ResourceName) {
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

    /// A client holds what it was sent: it brought along what it was not.
    fn resume(&mut self, who: usize, holds: &[(usize, u8)]) {
        let Some(mut client) = self.clients[who].take() else { return };
        let holds = holds.iter().map(|(what, version)| (name(text(*what)), Version::from(version.to_string())));
        let holds: BTreeMap<_, _> = holds.filter(|(name, _)| !client.view.contains_key(name)).collect();
        self.cache.resume(client.id, holds.clone());
        let kept: Vec<_> = holds.keys().filter(|name| self.wanted(&client, name)).cloned().collect();
        client.kept.extend(kept);
        client.may_remove.extend(holds.keys().cloned());
        client.brought.extend(holds.keys().cloned());
        client.view.extend(holds.iter().map(|(name, version)| (name.clone(), (version.clone(), None))));
        client.resumed.extend(holds);
        self.clients[who] = Some(client);
    }

    fn subscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        self.cache.subscribe(client.id, interest);
        let before: BTreeSet<_> = universe().filter(|name| self.wanted(&client, name)).collect();
        let again = !client.interests.insert(interest.clone());
        for name in universe().filter(|name| self.matches(interest, name)) {
            // What a narrower interest has sent, a new collection need not send.
            if again || !interest.is_collection() || !before.contains(&name) {
                client.owed.insert(name.clone());
            }
            client.may_put.insert(name.clone());
            // A tombstone of the glob, or the name itself.
            client.may_remove.insert(name.clone());
            if again || !interest.is_collection() {
                client.resumed.remove(&name);
            }
            if !interest.is_collection() {
                client.owed_removal.insert(name);
            }
        }
        self.conclude(&mut client);
        if let Interest::Name(asked) = interest {
            for name in self.errors[client.of].keys().filter(|name| name.answers(asked)) {
                // A glob repeats none that it does not tell.
                match name != asked && self.unlisted[client.of].contains(name) {
                    true => _ = client.may_errors.insert(name.clone()),
                    false => client.owe_error(name),
                }
            }
        }
        self.clients[who] = Some(client);
    }

    fn unsubscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        let had = client.interests.remove(interest);
        let last = !self.clients.iter().flatten().any(|c| c.of == client.of && c.interests.contains(interest));
        assert_eq!(self.cache.unsubscribe(client.id, interest), had && last);
        if had {
            let keeps = client.interests.contains(&Interest::Wildcard);
            for name in universe().filter(|name| self.matches(interest, name)) {
                if !self.wanted(&client, &name) {
                    // To the client, its wildcard covers every name: it has to be told of what is not in it.
                    if keeps {
                        client.may_remove.insert(name.clone());
                    } else {
                        client.view.remove(&name);
                    }
                    client.may_put.remove(&name);
                    client.resumed.remove(&name);
                    client.owed.remove(&name);
                    client.owed_removal.remove(&name);
                } else if !interest.is_collection() {
                    // It may hold it, and hears from what else covers it.
                    client.brought.insert(name.clone());
                    client.resumed.remove(&name);
                    client.owed.insert(name.clone());
                    client.owed_removal.insert(name.clone());
                    client.may_put.insert(name.clone());
                    client.may_remove.insert(name.clone());
                } else {
                    // What was asked for again was left again: the wider one has sent it.
                    let current = self.resources[client.of].get(&name);
                    let held = client.view.get(&name);
                    if let (Some((version, digest)), Some((of, Some(known)))) = (current, held)
                        && (version, digest) == (of, known)
                    {
                        client.owed.remove(&name);
                    }
                    // The wider one may not have come as far as the one that was left.
                    client.may_put.insert(name.clone());
                    client.may_remove.insert(name.clone());
                }
            }
        }
        let of = client.of;
        let told: BTreeSet<_> = client.may_errors.iter().filter(|name| self.hears(&client, name)).cloned().collect();
        // What was asked for again was left again: it was told by the other interest.
        client.owed_errors.retain(|name| told.contains(name) && !self.matches(interest, name));
        client.may_errors = told;
        self.clients[who] = Some(client);
        self.forget_absent(of);
        if had && last {
            self.renew_interest(of, interest);
        }
        self.sync_evictions();
    }

    fn close(&mut self, who: usize) {
        let Some(client) = self.clients[who].take() else { return };
        let left: BTreeSet<_> = self.cache.close(client.id).into_iter().collect();
        let of_globs = |name: &ResourceName| Self::globs_of(&client, name).next().is_some();
        // What it was not sent, but brought along, nobody here may ever have seen.
        let held = client.view.iter().filter(|(name, (_, digest))| digest.is_some() && of_globs(name));
        self.away[who] = Some((client.of, held.map(|(name, held)| (name.clone(), held.clone())).collect()));
        let others: BTreeSet<_> =
            self.clients.iter().flatten().filter(|c| c.of == client.of).flat_map(|c| c.interests.clone()).collect();
        assert_eq!(left, client.interests.difference(&others).cloned().collect());
        if !self.options.authoritative {
            // What let only this one keep what it held need not stay.
            let stays = |name: &ResourceName| self.cache.error(&TYPES[client.of].into(), name).is_some();
            let over = |name: &&ResourceName| !self.is_error_of_interest(client.of, name) && !stays(name);
            let over: Vec<_> = self.errors[client.of].keys().filter(over).cloned().collect();
            over.iter().for_each(|name| drop(self.errors[client.of].remove(name)));
        }
        self.forget_absent(client.of);
        left.iter().for_each(|interest| self.renew_interest(client.of, interest));
        self.sync_evictions();
        self.capacity.step();
    }

    /// The globs a client asked for that cover a name.
    fn globs_of<'a>(client: &'a Client, name: &'a ResourceName) -> impl Iterator<Item = &'a Interest> {
        let covers =
            move |glob: &&Interest| matches!(glob, Interest::Name(glob) if glob.is_glob() && name.answers(glob));
        client.interests.iter().filter(covers)
    }

    /// A client that was away still holds what it held of the globs that it asks for again, and does not say so: what
    /// is gone of it only tombstones can tell, if they are kept for long enough.
    fn come_back(&mut self, who: usize) {
        let bounded = self.options.tombstones < 1000 || self.options.tombstone_age < Duration::from_secs(3600);
        let (Some(client), Some((of, held))) = (&mut self.clients[who], self.away[who].take()) else { return };
        if of != client.of || bounded {
            return;
        }
        for (name, held) in held {
            if Self::globs_of(client, &name).next().is_some() && !client.view.contains_key(&name) {
                client.silent.insert(name.clone());
                client.view.insert(name, held);
            }
        }
    }

    /// Whether a client may still hold what nobody knows that it holds: no glob of that was answered.
    fn may_be_silent(&self, client: &Client, name: &ResourceName) -> bool {
        client.silent.contains(name) && !Self::globs_of(client, name).any(|glob| self.is_complete(client.of, glob))
    }

    /// That a name is absent is known as long as somebody asks for it.
    fn forget_absent(&mut self, of: usize) {
        let clients = &self.clients;
        self.absent[of].retain(|name| clients.iter().flatten().any(|c| c.of == of && Self::named(c, name)));
    }

    fn evict(&mut self, of: usize, interest: &Interest) {
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
            let over = |name: &&ResourceName| name.answers(asked) && !self.is_error_of_interest(of, name);
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

    /// Closes and removes everything: nothing is left.
    fn end(mut self) {
        for who in 0..SUBSCRIBERS {
            self.pull_all(who);
            self.close(who);
        }
        for of in TYPES.map(TypeUrl::from) {
            for what in 0..INTERESTS {
                self.cache.evict(&of, &interest(text(what)), self.now);
            }
            for name in universe() {
                self.cache.remove(&of, &name, self.now, &mut Vec::new());
            }
            for glob in COLLECTIONS.map(interest) {
                if matches!(&glob, Interest::Name(name) if self.cache.error(&of, name).is_some()) {
                    self.cache.answered(&of, &glob, &mut Vec::new());
                }
            }
        }
        invariants::check(&self.cache);
        self.now += self.options.tombstone_age + Duration::from_secs(1);
        self.cache.remove(&TYPES[0].into(), &name("a"), self.now, &mut Vec::new());
        let Cache { store, subscribers, .. } = &self.cache;
        let stored = [store.types().len(), store.slots().len(), store.lists().len()];
        let told = [subscribers.links.len(), subscribers.held.len(), subscribers.all.len()];
        assert_eq!((stored, told), ([0; 3], [0; 3]), "types, slots, lists; links, held, subscribers");
    }
}

/// `PROPTEST_CASES` counts fourfold: a case is cheap, and what goes wrong needs several calls to meet.
fn cases() -> u32 {
    ProptestConfig::default().cases * 4
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_random_history_is_what_a_full_scan_says(
        authoritative in any::<bool>(),
        wildcard_covers_xdstp in any::<bool>(),
        capacity in prop::option::of(0..5_usize),
        tombstones in prop_oneof![Just(1000), 0..4_usize],
        tombstone_age in prop_oneof![Just(3600), 1..9_u64],
        looks in prop_oneof![Just(usize::MAX), 0..4_usize],
        history in history(),
    ) {
        let tombstone_age = Duration::from_secs(tombstone_age);
        let options = Options { authoritative, wildcard_covers_xdstp, capacity, tombstones, tombstone_age, looks, ..Options::default() };
        let mut model = Model::new(options);
        for op in &history {
            model.apply(op);
            invariants::check(&model.cache);
        }
        model.end();
    }
}
